package persistent

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// LaunchStack launches st. barrier is the address of its barrier state.
func LaunchStack(t *launch.Target, st *Stack, barrier uint64) launch.Command {
	op := st.layers[0]
	r := newRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
	groups := sequenceGroups(t, op)
	sizes := codegen.Constants(
		"SPREAD", 1, "ORDERED", 1, "CLUSTER", 1, "BAND", stackUnits, "LAYERS", len(st.layers), "BLOCKS", st.blocks,
		"SEQUENCES", st.sequences(), "SAMPLES", st.samples, "PARTS", st.parts, "SPLIT", st.split, "CELLS", stackCells,
		"CHUNKS", st.chunks, "RESIDENT", st.own, "NEAR", st.near, "TAKES", st.takes, "DEPTH", stackDepth,
		"PLACES", st.places, "MORE", st.more, "FEWER", st.fewer, "BOUNDED", st.bounded(),
		"EXACT", ints.FromBool(st.exact), "CLOCKS", t.Knobs["clocks"],
	)
	kernel := "stack"
	if st.bulk != nil {
		sizes, kernel = bulkSizes(t, st), "stack_bulk"
	}
	words := []any{kernel, " ", op.Cell.Name, functions(t), op.Train, op.Hidden(), sizes, t.Element(op.R[0])}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	name := codegen.KernelName(kernel, len(st.layers), op.Cell.Name, op.Hidden())
	write := func() codegen.Source {
		text := configure(sizes, kernel) + file("recurrence").Text + r.text(groups, t.Element(op.R[0]), functions(t))
		return codegen.Source{Name: name, Text: text + file("fragments").Text + file(kernel).Text + st.entry(name, groups)}
	}
	args := []uint64{uint64(op.Steps), uint64(st.batch), barrier, t.Status()}
	for l, op := range st.layers {
		args = append(args, t.Arguments(sequenceGroups(t, op))...)
		for _, w := range op.R {
			args = append(args, uint64(t.At(w)))
		}
		if l > 0 {
			args = append(args, uint64(t.At(st.lower[l-1].B)))
		}
	}
	s := launch.New(t.Source(write, words...), [3]int{st.groups * len(st.layers) * st.blocks, 1, 1}, [3]int{st.threads(), 1, 1}, args...)
	s.Launch.Shared, s.Launch.Cooperative, s.About = st.shared(), true, st.about()
	s.Seconds = s.About.Seconds
	if st.bulk != nil {
		s.Launch.Cluster = st.bulk.cluster
	}
	return s
}

// entry spells the kernel's entry, which sends each block to its layer.
func (st *Stack) entry(name string, groups []codegen.Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "extern \"C\" __global__ void __launch_bounds__(%d, 1)\n%s(int steps, int batch, unsigned* control, unsigned* status", st.threads(), name)
	cells := make([]string, len(st.layers))
	for l := range st.layers {
		mine := slices.Clone(groups)
		for i := range mine {
			mine[i].Name += fmt.Sprintf("_%d", l)
		}
		b.WriteString(codegen.Params(mine))
		cells[l] = codegen.List(mine, func(_ int, g codegen.Group) string { return fmt.Sprintf(", %s, ld_%s", g.Name, g.Name) })
		for g := range st.gates {
			fmt.Fprintf(&b, ", const W* weights%d_%d", g, l)
			cells[l] += fmt.Sprintf(", weights%d_%d", g, l)
		}
		if l > 0 {
			fmt.Fprintf(&b, ", const W* beneath_%d", l)
		}
	}
	b.WriteString(") {\n  const int layer = blockIdx.x / BLOCKS % LAYERS;\n")
	last := len(st.layers) - 1
	fmt.Fprintf(&b, "  if (layer == 0) return stack_layer<true>(Cell{{}%s}, (const W*)nullptr, layer, steps, batch, control, status);\n", cells[0])
	b.WriteString("  const Cell cell = ")
	for l := 1; l < last; l++ {
		fmt.Fprintf(&b, "layer == %d ? Cell{{}%s} : ", l, cells[l])
	}
	fmt.Fprintf(&b, "Cell{{}%s};\n  const W* const beneath = ", cells[last])
	for l := 1; l < last; l++ {
		fmt.Fprintf(&b, "layer == %d ? beneath_%d : ", l, l)
	}
	fmt.Fprintf(&b, "beneath_%d;\n  stack_layer<false>(cell, beneath, layer, steps, batch, control, status);\n}\n", last)
	return b.String()
}
