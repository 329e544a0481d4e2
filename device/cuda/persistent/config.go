package persistent

import (
	"fmt"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Config is a kernel and its division of a layer among groups of blocks. Each group has a copy of
// the weights and runs some of the sequences.
type Config struct {
	spread   bool         // over the GPU, not in clusters
	Order    WeightLayout // best layout of the packed weights
	few      bool         // launch no more groups than run at the same time; they take turns with the sequences
	blocks   int          // per group
	cluster  int          // blocks per cluster, if a spread group consists of clusters
	samples  int          // sequences that a group runs at a time
	threads  int          // per block
	shared   int          // bytes of shared memory per block
	together int          // groups that run at the same time
	cycles   float64      // predicted for a step of all sequences
	prior    int          // of equally fast configurations, the one with the highest comes first
	memory   int64        // bytes of weights that are streamed from memory at each step
	variant  *Variant     // nil: one group with a barrier
	sizes    string       // the kernel's constants
	Knobs    knob.Params
}

// Describe names the variant, its geometry and constants, and the predicted time of a step.
func (t Config) Describe() string {
	return t.variant.Name + " " + t.geometry()
}

func (t Config) geometry() string {
	return fmt.Sprintf("%d×%d %s, %.0f cycles", t.blocks, t.threads, t.sizes, t.cycles)
}

// launch launches the kernel for so many steps and sequences. urgent: other layers of a wave wait
// for it.
func (t Config) launch(steps, batch int, urgent bool, src *codegen.Source, args []uint64) launch.Command {
	running := ints.CeilDiv(batch, t.samples)
	if t.few {
		running = min(running, t.together)
	}
	s := launch.New(src, [3]int{running * t.blocks, 1, 1}, [3]int{t.threads, 1, 1}, args...)
	s.Launch.Shared, s.Launch.Cooperative, s.Launch.Urgent = t.shared, t.spread, urgent
	s.About, s.Seconds = t.about(steps, urgent), startTime+float64(steps)*t.Step()
	switch {
	case t.cluster > 1:
		s.Launch.Cluster = t.cluster
	case strategy(t.Knobs["resident"]).Clusters:
		s.Launch.Cluster = t.blocks
	}
	return s
}

// LaunchForward launches the grouped kernel of op. ordered: the weights are packed in form's
// layout.
func LaunchForward(t *launch.Target, op schedule.Persistent, form Config, control uint64, ordered, urgent bool) launch.Command {
	p := op.Step(0, schedule.View{}).Program()
	r := newRecurrence(&op.Sequence, p)
	groups := slices.Concat(sequenceGroups(t, op), keepGroup(t, &op.Sequence))
	form.sizes += ", " + codegen.Constants("ORDERED", ints.FromBool(ordered), "CLOCKS", t.Knobs["clocks"])
	words := []any{form.variant.Name, " ", op.Cell.Name, functions(t), op.Train, op.Hidden(), form.sizes, t.Element(op.R[0]), resetsWord(&op.Sequence)}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	name := codegen.KernelName("persistent", form.variant.Name, op.Cell.Name, fmt.Sprint(op.Hidden(), resetsWord(&op.Sequence)))
	write := func() codegen.Source {
		text := configure(form.sizes, form.variant.config...) + file("recurrence").Text + r.text(groups, t.Element(op.R[0]), functions(t)) + form.variant.text()
		text += fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(%d, 1)\n%s"+
			"(int steps, int batch, unsigned* control, unsigned* status%s%s) {\n  const Cell cell = {{}%s};\n  %s(cell, steps, batch, control, status);\n}\n",
			form.threads, name, codegen.Params(groups), codegen.WeightParams(len(op.R)), codegen.Members(groups, len(op.R)), form.variant.entry)
		return codegen.Source{Name: name, Text: text}
	}
	args := append([]uint64{uint64(op.Steps), uint64(op.Batch()), control, t.Status()}, t.Arguments(groups)...)
	for _, w := range op.R {
		args = append(args, uint64(t.At(w)))
	}
	return form.launch(op.Steps, op.Batch(), urgent, t.Source(write, words...), args)
}

// functions names the struct with a cell's sigmoids and tangents: see recurrence.cu.
func functions(t *launch.Target) string {
	if f := t.Knobs["functions"]; f == 2 || f == 0 && t.Precision == schedule.BF16 {
		return "Coarse"
	}
	return "Quick"
}

// ExchangeBytes bounds the memory through which groups exchange states. Each sequence has a
// counter, two buffers of words, twice the size of its states in shared memory, and two buffers of
// only 16-bit states.
func ExchangeBytes(hidden, batch int) int64 {
	return int64(batch+maxSamples-1) * (4*4*int64(hidden) + 6*maxPadding + launch.Alignment)
}

const maxSamples = 64

// maxPadding bounds the padding of a sequence's states in shared memory, in bytes.
const maxPadding = 64*8 + 64

const maxRegisters, registersOfSM = 255, 65536

// barrierConfig is one group with a barrier. Its cells use exact functions.
func barrierConfig() Config {
	return Config{Knobs: knob.Params{"resident": WithBarrier, "tensor": 2, "functions": 1}}
}

// Variant returns the kernel of t; nil: one group with a barrier.
func (t Config) Variant() *Variant { return t.variant }

// Cycles returns the predicted cycles of a step of all sequences.
func (t Config) Cycles() float64 { return t.cycles }

// Memory returns the bytes of weights that are streamed from memory at each step.
func (t Config) Memory() int64 { return t.memory }

// Grouped reports whether t divides a layer among groups of blocks.
func (t Config) Grouped() bool { return t.variant != nil }
