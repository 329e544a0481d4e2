package stack

import (
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent/kernels"
)

// Launch launches st. barrier is the address of its barrier state.
func Launch(t *launch.Target, st *Stack, barrier uint64) launch.Command {
	sizes := codegen.Constants(
		"SPREAD", 1, "ORDERED", 1, "CLUSTER", 1, "BAND", blockUnits, "LAYERS", len(st.layers), "BLOCKS", st.blocks,
		"SEQUENCES", st.sequences(), "SAMPLES", st.samples, "PARTS", st.parts, "SPLIT", st.split, "CELLS", cellWarps,
		"CHUNKS", st.chunks, "RESIDENT", st.own, "NEAR", st.near, "TAKES", st.takes, "DEPTH", keptSteps,
		"PLACES", st.places, "MORE", st.more, "FEWER", st.fewer, "BOUNDED", st.bounded(),
		"EXACT", ints.FromBool(st.Exact), "CLOCKS", t.Knobs["clocks"],
	)
	if st.bulk != nil {
		sizes = bulkSizes(t, st)
	}
	source := kernels.Stack{Kernel: st.Kernel(), Layers: st.layers, Sizes: sizes, Threads: st.threads()}
	for _, g := range st.lower {
		source.Beneath = append(source.Beneath, g.B)
	}
	src, args := source.Source(t, barrier)
	s := launch.New(src, [3]int{st.groups * len(st.layers) * st.blocks, 1, 1}, [3]int{st.threads(), 1, 1}, args...)
	s.Launch.Shared, s.Launch.Cooperative, s.About = st.shared(), true, st.about()
	s.Seconds = s.About.Seconds
	if st.bulk != nil {
		s.Launch.Cluster = st.bulk.cluster
	}
	return s
}
