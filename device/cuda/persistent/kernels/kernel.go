package kernels

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Kernel runs a layer, or its gradient, in groups of blocks.
type Kernel struct {
	Name    string   // of the variant
	Headers []string // those that explain its configuration
	Files   []string // the files of its text, in this order
	Entry   string   // the function that runs a layer
	Ahead   bool     // it prefetches a step's inputs
}

// Place says where k is: its file, and the function that the entry calls.
func (k Kernel) Place() string { return placeOf(k.Entry, k.Files) }

// text returns k's files, without its configuration and its cell.
func (k Kernel) text() string {
	var b strings.Builder
	for _, f := range k.Files {
		b.WriteString(file(f).Text)
	}
	return b.String()
}

// Source returns the source of k for op and its arguments. sizes are the constants of its
// configuration. A block has so many threads, and a multiprocessor has room for that many of them
// beside each other. control is the address of the groups' counters.
func (k Kernel) Source(t *launch.Target, op schedule.Persistent, sizes string, threads, beside int, control uint64) (*codegen.Source, []uint64) {
	p := op.Step(0, schedule.View{}).Program()
	r := NewRecurrence(&op.Sequence, p)
	groups := slices.Concat(sequenceGroups(t, op), keepGroup(t, &op.Sequence))
	words := []any{k.Name, " ", op.Cell.Name, functions(t), op.Train, op.Hidden(), sizes, beside, t.Element(op.R[0]), resetsWord(&op.Sequence)}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	name := codegen.KernelName("persistent", k.Name, op.Cell.Name, fmt.Sprint(op.Hidden(), resetsWord(&op.Sequence)))
	write := func() codegen.Source {
		text := configure(sizes, k.Headers...) + file("recurrence").Text + r.text(groups, t.Element(op.R[0]), functions(t)) + k.text()
		text += fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(%d, %d)\n%s"+
			"(int steps, int batch, unsigned* control, unsigned* status%s%s) {\n  const Cell cell = {{}%s};\n  %s(cell, steps, batch, control, status);\n}\n",
			threads, beside, name, codegen.Params(groups), codegen.WeightParams(len(op.R)), codegen.Members(groups, len(op.R)), k.Entry)
		return codegen.Source{Name: name, Text: text}
	}
	args := append([]uint64{uint64(op.Steps), uint64(op.Batch()), control, t.Status()}, t.Arguments(groups)...)
	for _, w := range op.R {
		args = append(args, uint64(t.At(w)))
	}
	return t.Source(write, words...), args
}

// BackwardSource is the same for a gradient.
func (k Kernel) BackwardSource(t *launch.Target, op schedule.PersistentBackward, sizes string, threads int, control uint64) (*codegen.Source, []uint64) {
	groups := carriedGroups(t, op)
	words := []any{k.Name, " ", op.Cell.Name, functions(t), op.Hidden(), sizes, t.Element(op.R)}
	for _, g := range groups {
		words = append(words, " ", g.Name, g.Element)
	}
	name := codegen.KernelName("persistent", k.Name, op.Cell.Name, fmt.Sprint(op.Hidden(), resetsWord(&op.Sequence)))
	write := func() codegen.Source {
		text := configure(sizes, k.Headers...) + file("recurrence").Text + backText(op, groups, t.Element(op.R), functions(t), k.Ahead) + k.text()
		text += fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(%d, 1)\n%s"+
			"(int steps, int batch, unsigned* control, unsigned* status%s, const W* weights) {\n  const Cell cell = {{}%s, weights};\n  back_layer(cell, steps, batch, control, status);\n}\n",
			threads, name, codegen.Params(groups), codegen.Members(groups, 0))
		return codegen.Source{Name: name, Text: text}
	}
	args := append([]uint64{uint64(op.Steps), uint64(op.Batch()), control, t.Status()}, t.Arguments(groups)...)
	return t.Source(write, words...), append(args, uint64(t.At(op.R)))
}

// functions names the struct with a cell's sigmoids and tangents: see recurrence.cu.
func functions(t *launch.Target) string {
	if f := t.Knobs["functions"]; f == 2 || f == 0 && t.Precision == schedule.BF16 {
		return "Coarse"
	}
	return "Quick"
}

// sequenceGroups returns the arguments of op's kernel. Products are no arguments, since they stay
// on chip.
func sequenceGroups(t *launch.Target, op schedule.Persistent) []codegen.Group {
	p := op.Step(0, schedule.View{}).Program()
	groups := t.Groups(p, func(r cell.Ref) schedule.View {
		if r.Kind == cell.R {
			return schedule.View{}
		}
		return codegen.Whole(&op.Sequence, nil, r)
	})
	for i, v := range op.State { // the kernel reads all first states, even if the program does not
		name := codegen.GroupName(cell.Ref{Kind: cell.Prev, Index: i})
		if !slices.ContainsFunc(groups, func(g codegen.Group) bool { return g.Name == name }) {
			groups = append(groups, codegen.Group{Name: name, Element: t.Element(v), View: v})
		}
	}
	return slices.DeleteFunc(groups, func(g codegen.Group) bool { return g.View.Empty() })
}
