package persistent

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// The kernels of this file keep recurrent weights in shared memory over all steps (Diamos et al.
// 2016, section 3). Each block owns a band of units and holds their weights. At each step it reads
// the states of all units from memory, forms the products of its own units, and runs their cell.
// All blocks wait at a barrier between steps, so all of them must be resident at once.

// tileRows is how many rows of weights a warp multiplies at a time.
const tileRows = 4

// chunkBatch is how many sequences a block handles between its own barriers.
const chunkBatch = 64

// bands divides hidden units among blocks, as evenly as possible.
func bands(t *launch.Target, hidden int) (units, blocks int) {
	units = ints.CeilDiv(hidden, t.Properties.SMs)
	return units, ints.CeilDiv(hidden, units)
}

// samples returns how many sequences a warp multiplies at a time.
func samples(batch int) int { return min(8, ints.PowerOfTwo(batch)) }

// sharedBytes returns the shared memory of a block: the weights of its units, the products of a
// chunk of sequences, and the barrier's word.
func sharedBytes(rows, length int, weights driver.Element, chunk int) int {
	rows = ints.RoundUp(rows, tileRows)
	return ints.RoundUp(rows*length*weights.Bytes(), 16) + 4*rows*chunk + 16
}

// BarrierFits declines op, a persistent layer or its gradient, if the barrier kernel would need
// more shared memory than the GPU has.
func BarrierFits(t *launch.Target, op schedule.Op) error {
	need := 0
	switch op := op.(type) {
	case schedule.Persistent:
		need = forwardShared(t, op)
	case schedule.PersistentBackward:
		need = backwardShared(t, op)
	}
	if need > t.Properties.Shared {
		return fmt.Errorf("cuda: %w: the weights of a multiprocessor's units and their products take %d KiB of shared memory, and there are %d",
			schedule.ErrUnsupported, need>>10, t.Properties.Shared>>10)
	}
	return nil
}

func forwardShared(t *launch.Target, op schedule.Persistent) int {
	units, _ := bands(t, op.Hidden())
	return sharedBytes(units*op.Cell.Recurrent, op.Hidden(), t.Element(op.R[0]), min(op.Batch(), chunkBatch))
}

func backwardShared(t *launch.Target, op schedule.PersistentBackward) int {
	units, _ := bands(t, op.Hidden())
	return sharedBytes(units, op.Cell.Recurrent*op.Hidden(), t.Element(op.R), min(op.Batch(), chunkBatch))
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

// LaunchBarrierForward runs op in one group over the whole GPU, with a barrier.
func LaunchBarrierForward(t *launch.Target, op schedule.Persistent, control uint64) launch.Command {
	h, batch, gates := op.Hidden(), op.Batch(), op.Cell.Recurrent
	units, blocks := bands(t, h)
	chunk := min(batch, chunkBatch)
	first := op.Step(0, schedule.View{})
	p := first.Program()
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
	head := fmt.Sprintf("typedef %v W;\nenum { GATES = %d, ROWS = %d, SAMPLES = %d };\n", t.Element(op.R[0]), gates, tileRows, samples(batch))
	all := codegen.List(make([]int, gates), func(g, _ int) string { return fmt.Sprintf("weights%d, ", g) })
	text := strings.NewReplacer(
		"$NAME", name, "$PARAMS", codegen.Params(groups), "$WEIGHTS", codegen.WeightParams(gates), "$ALL", all, "$STATES", through,
		"$CELL", barrierCell(op.Cell, p, reads, writes, row),
	).Replace(codegen.Text(kernels, "barrier.tpl"))
	args := []uint64{uint64(op.Steps), uint64(batch), uint64(h), uint64(units), uint64(chunk), control, t.Status()}
	args = append(args, t.Arguments(groups)...)
	for _, r := range op.R {
		args = append(args, uint64(t.At(r)))
	}
	s := launch.New(&codegen.Source{Name: name, Text: GridBarrier() + head + text}, [3]int{blocks, 1, 1}, [3]int{launch.BlockSize, 1, 1}, args...)
	s.Launch.Cooperative, s.About = true, barrierAbout("barrier", blocks, op.Batch(), op.Steps)
	s.Launch.Shared = forwardShared(t, op)
	return s
}

// barrierAbout describes one group with a barrier.
func barrierAbout(variant string, blocks, batch, steps int) launch.About {
	return launch.About{Variant: variant, Config: Config{}.Words(), Group: device.Group{Blocks: blocks, Samples: batch, Spread: true, Steps: steps}}
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

// rowBack spells the row of a vector at step t, sequence n, in a backward pass.
func rowBack(r cell.Ref) string {
	switch r.Kind {
	case cell.Peep:
		return "0"
	case cell.DNext, cell.DPrev, cell.DPeep:
		return "n"
	case cell.Next:
		return "(t + 1) * batch + n"
	}
	return "t * batch + n"
}

// LaunchBarrierBackward runs op in one group over the whole GPU, with a barrier.
func LaunchBarrierBackward(t *launch.Target, op schedule.PersistentBackward, control uint64) launch.Command {
	h, batch, gates := op.Hidden(), op.Batch(), op.Cell.Recurrent
	units, blocks := bands(t, h)
	chunk := min(batch, chunkBatch)
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
	head := fmt.Sprintf("typedef %v W;\nenum { GATES = %d, ROWS = %d, SAMPLES = %d };\n", t.Element(op.R), gates, tileRows, samples(batch))
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
		Replace(codegen.Text(kernels, "backward_barrier.tpl"))
	args := []uint64{uint64(op.Steps), uint64(batch), uint64(h), uint64(units), uint64(chunk), control, t.Status()}
	args = append(append(args, t.Arguments(groups)...), uint64(t.At(op.R)))
	s := launch.New(&codegen.Source{Name: name, Text: GridBarrier() + head + text}, [3]int{blocks, 1, 1}, [3]int{launch.BlockSize, 1, 1}, args...)
	s.Launch.Cooperative, s.About = true, barrierAbout("backward-barrier", blocks, op.Batch(), op.Steps)
	s.Launch.Shared = backwardShared(t, op)
	return s
}
