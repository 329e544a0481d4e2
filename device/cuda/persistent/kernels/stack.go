package kernels

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// A Stack runs stacked layers as one kernel.
type Stack struct {
	Kernel  string // "stack" or "stack-bulk"
	Layers  []schedule.Persistent
	Beneath []schedule.View // the weights by which each layer but the first multiplies the states beneath it
	Sizes   string          // the constants of its configuration
	Threads int             // per block
}

func (s Stack) file() string { return strings.ReplaceAll(s.Kernel, "-", "_") }

// Place says where the kernel is, and the function that its entry calls.
func (s Stack) Place() string { return placeOf("stack_layer", []string{s.file()}) }

// Source returns the source of s, and its arguments. barrier is the address of its barrier state.
func (s Stack) Source(t *launch.Target, barrier uint64) (*codegen.Source, []uint64) {
	op := s.Layers[0]
	r := NewRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
	groups, kernel := sequenceGroups(t, op), s.file()
	words := []any{kernel, " ", op.Cell.Name, functions(t), op.Train, op.Hidden(), s.Sizes, t.Element(op.R[0])}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	name := codegen.KernelName(kernel, len(s.Layers), op.Cell.Name, op.Hidden())
	write := func() codegen.Source {
		text := configure(s.Sizes, kernel) + file("recurrence").Text + r.text(groups, t.Element(op.R[0]), functions(t))
		return codegen.Source{Name: name, Text: text + file("fragments").Text + file(kernel).Text + s.entry(name, groups)}
	}
	args := []uint64{uint64(op.Steps), uint64(op.Batch()), barrier, t.Status()}
	for l, op := range s.Layers {
		args = append(args, t.Arguments(sequenceGroups(t, op))...)
		for _, w := range op.R {
			args = append(args, uint64(t.At(w)))
		}
		if l > 0 {
			args = append(args, uint64(t.At(s.Beneath[l-1])))
		}
	}
	return t.Source(write, words...), args
}

// entry spells the kernel's entry, which sends each block to its layer.
func (s Stack) entry(name string, groups []codegen.Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "extern \"C\" __global__ void __launch_bounds__(%d, 1)\n%s(int steps, int batch, unsigned* control, unsigned* status", s.Threads, name)
	cells := make([]string, len(s.Layers))
	for l := range s.Layers {
		mine := slices.Clone(groups)
		for i := range mine {
			mine[i].Name += fmt.Sprintf("_%d", l)
		}
		b.WriteString(codegen.Params(mine))
		cells[l] = codegen.List(mine, func(_ int, g codegen.Group) string { return fmt.Sprintf(", %s, ld_%s", g.Name, g.Name) })
		for g := range s.Layers[l].Cell.Recurrent {
			fmt.Fprintf(&b, ", const W* weights%d_%d", g, l)
			cells[l] += fmt.Sprintf(", weights%d_%d", g, l)
		}
		if l > 0 {
			fmt.Fprintf(&b, ", const W* beneath_%d", l)
		}
	}
	b.WriteString(") {\n  const int layer = blockIdx.x / BLOCKS % LAYERS;\n")
	last := len(s.Layers) - 1
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
