package kernels

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Bands say how the kernels of one group, with a barrier, divide their work.
type Bands struct {
	Units   int // per block
	Chunk   int // sequences that a block handles between its own barriers
	Rows    int // of weights that a warp multiplies at a time
	Samples int // sequences that a warp multiplies at a time
}

// head spells what the kernels' constants are.
func (b Bands) head(weights fmt.Stringer, gates int) string {
	return fmt.Sprintf("typedef %v W;\nenum { GATES = %d, ROWS = %d, SAMPLES = %d };\n", weights, gates, b.Rows, b.Samples)
}

// Barrier returns the source of the kernel that runs op in one group of all blocks, with a barrier,
// and its arguments. control is the address of the barrier's counter.
func Barrier(t *launch.Target, op schedule.Persistent, bands Bands, control uint64) (*codegen.Source, []uint64) {
	gates := op.Cell.Recurrent
	p := op.Step(0, schedule.View{}).Program()
	reads, writes := p.Vectors()
	reads = slices.DeleteFunc(reads, func(r cell.Ref) bool { return r.Kind == cell.R })
	groups := sequenceGroups(t, op)
	// A state before the step and after it are rows of one matrix.
	row := func(r cell.Ref) string {
		switch {
		case r.Kind.Broadcast():
			return "0"
		case r.Kind == cell.Next:
			return "(t + 1) * batch + n"
		}
		return "t * batch + n"
	}
	through := codegen.GroupName(cell.Ref{Kind: cell.Next, Index: op.Cell.Through})
	name := codegen.KernelName("persistent_barrier", op.Cell.Name)
	all := codegen.List(make([]int, gates), func(g, _ int) string { return fmt.Sprintf("weights%d, ", g) })
	text := strings.NewReplacer(
		"$NAME", name, "$PARAMS", codegen.Params(groups), "$WEIGHTS", codegen.WeightParams(gates), "$ALL", all, "$STATES", through,
		"$CELL", barrierCell(op.Cell, p, reads, writes, row),
	).Replace(codegen.Text(files, "barrier.tpl"))
	args := append(bands.arguments(t, &op.Sequence, control), t.Arguments(groups)...)
	for _, r := range op.R {
		args = append(args, uint64(t.At(r)))
	}
	return &codegen.Source{Name: name, Text: GridBarrier() + bands.head(t.Element(op.R[0]), gates) + text}, args
}

// arguments returns the first arguments of both kernels.
func (b Bands) arguments(t *launch.Target, s *schedule.Sequence, control uint64) []uint64 {
	return []uint64{uint64(s.Steps), uint64(s.Batch()), uint64(s.Hidden()), uint64(b.Units), uint64(b.Chunk), control, t.Status()}
}

// barrierCell spells a step of a cell, given the sums of its gates.
func barrierCell(c *cell.Cell, p cell.Program, reads, writes []cell.Ref, row func(cell.Ref) string) string {
	var b strings.Builder
	for g := range c.Recurrent {
		fmt.Fprintf(&b, "        float r%d = sum[%d * chunk];\n", g, g)
	}
	b.WriteString(codegen.Declare("        ", reads, row))
	known := slices.Clone(reads)
	for g := range c.Recurrent {
		known = append(known, cell.Ref{Kind: cell.R, Index: g})
	}
	b.WriteString(codegen.Statements(p, "        ", known))
	for _, r := range writes {
		fmt.Fprintf(&b, "        narrow(%s, %v);\n", codegen.Place(r, row(r)), r)
	}
	return b.String()
}

// BackwardBarrier is the same for a gradient.
func BackwardBarrier(t *launch.Target, op schedule.PersistentBackward, bands Bands, control uint64) (*codegen.Source, []uint64) {
	p := op.Cell.Backward
	reads, writes := p.Vectors()
	groups := t.Groups(p, func(r cell.Ref) schedule.View { return codegen.Whole(&op.Sequence, &op.SequenceGrad, r) })
	products := codegen.GroupName(cell.Ref{Kind: cell.DX})
	if op.Cell.SplitGrad {
		products = codegen.GroupName(cell.Ref{Kind: cell.DR})
	}
	carry := cell.Ref{Kind: cell.DNext, Index: op.Cell.Through}
	if !slices.ContainsFunc(groups, func(g codegen.Group) bool { return g.Name == codegen.GroupName(carry) }) {
		groups = append(groups, codegen.Group{Name: codegen.GroupName(carry), Element: t.Element(op.Carry[carry.Index]), View: op.Carry[carry.Index]})
	}
	for i := range groups {
		if groups[i].Name == codegen.GroupName(carry) {
			groups[i].Written = true
		}
	}
	name := codegen.KernelName("persistent_backward_barrier", op.Cell.Name)
	var step strings.Builder
	step.WriteString(codegen.Declare("      ", reads, rowBack))
	step.WriteString(codegen.Statements(p, "      ", reads))
	for _, r := range writes {
		fmt.Fprintf(&step, "      narrow(%s, %v);\n", codegen.Place(r, rowBack(r)), r)
	}
	carried := codegen.Place(carry, "n") + ", sum"
	if op.Cell.DirectPrev(op.Cell.Through) {
		carried = fmt.Sprintf("%[1]s, widen(%[1]s) + sum", codegen.Place(carry, "n"))
	}
	text := strings.NewReplacer("$NAME", name, "$PARAMS", codegen.Params(groups), "$CELL", step.String(), "$PRODUCTS", products, "$CARRY", carried).
		Replace(codegen.Text(files, "backward_barrier.tpl"))
	args := append(append(bands.arguments(t, &op.Sequence, control), t.Arguments(groups)...), uint64(t.At(op.R)))
	return &codegen.Source{Name: name, Text: GridBarrier() + bands.head(t.Element(op.R), op.Cell.Recurrent) + text}, args
}

// BarrierPlace says where that kernel is, or the one for a gradient.
func BarrierPlace(backward bool) string {
	if backward {
		return path.Join(folder, "backward_barrier.tpl")
	}
	return path.Join(folder, "barrier.tpl")
}
