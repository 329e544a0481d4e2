package lower

import (
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Split-K products, gradients of weights above all, often follow each other. Such a chain packs all
// of its right operands in one launch. After the last product, another launch adds up all partial
// sums. It also adds up sums of rows in the chain, and does a small addition that precedes the
// chain.

// longestChain is how many products a chain has at most.
const longestChain = 8

// inParts reports whether op is a split-K product that packs its whole right operand itself.
func (p *Lowering) inParts(op schedule.Gemm) bool {
	if p.Factors[op.B.M.ID] != nil || p.Kept[op.B.M.ID] != gemm.Library || p.MethodOf(op) != gemm.SplitKernel || !gemm.EngineCopies(op.A) || len(gemm.CutTerms(op, false, gemm.SplitRoom)) > 1 {
		return false
	}
	w, _ := gemm.Divide(op, p.SMs)
	return w.Parts > 1
}

// operandBytes is the size of op's packed right operand, alone and with op's partial sums.
func (p *Lowering) operandBytes(op schedule.Gemm) (packed, all int64) {
	m, n, k := op.Sizes()
	packed, _ = gemm.PackedBytes(n, k)
	w, _ := gemm.Divide(op, p.SMs)
	return packed, packed + int64(ints.RoundUp(4*w.Parts*m*n, launch.Alignment))
}

// chain lists the nodes of the chain that begins with the product at node i: products and sums of
// rows. bytes is what its products need. No node touches what an earlier one writes, none after the
// first waits for another stream, and other streams wait for the last node only.
func (p *Lowering) chain(i int) (nodes []int, bytes int64) {
	s := p.schedule
	first, ok := s.Nodes[i].Op.(schedule.Gemm)
	if !ok || !p.Any || !p.inParts(first) {
		return nil, 0
	}
	var pending []schedule.View
	products := 0
	for j := i; j < len(s.Nodes) && products < longestChain; j++ {
		n := s.Nodes[j]
		if j > i && (n.Stream != s.Nodes[i].Stream || len(n.Wait) > 0 || p.awaited[j-1] || overlap(pending, n.Op.Reads()) || overlap(pending, n.Op.Writes())) {
			break
		}
		switch op := n.Op.(type) {
		case schedule.Gemm:
			if op.TransA != first.TransA || j > i && !p.inParts(op) {
				return nodes, bytes
			}
			_, all := p.operandBytes(op)
			if j > i && bytes+all > gemm.SplitRoom {
				return nodes, bytes
			}
			products, bytes = products+1, bytes+all
		case schedule.SumRows:
		default:
			return nodes, bytes
		}
		nodes, pending = append(nodes, j), append(pending, n.Op.Writes()...)
	}
	return nodes, bytes
}

// overlap reports whether a view of one list and one of the other have elements in common.
func overlap(a, b []schedule.View) bool {
	return slices.ContainsFunc(a, func(v schedule.View) bool { return slices.ContainsFunc(b, v.Overlaps) })
}

// following lists the later products of the chain that begins with the current node. The chain ends
// before a sum of rows without partial sums. It also ends before a left factor whose largest value
// would be found together with partial sums of rows.
func (e *emitter) following(stream int) (nodes []int) {
	if e.now < 0 {
		return nil
	}
	all, _ := e.lowering.chain(e.now)
	for _, i := range all[min(1, len(all)):] {
		switch op := e.lowering.schedule.Nodes[i].Op.(type) {
		case schedule.Gemm:
			known := slices.ContainsFunc(e.known, func(t absmaxKnown) bool { return t.stream == stream && t.view == op.A })
			if k, _ := e.sumAhead(op.A, stream, i); k > 0 && !known {
				return nodes
			}
			nodes = append(nodes, i)
		case schedule.SumRows:
			if !e.summed[i] {
				return nodes
			}
		}
	}
	return nodes
}

// right returns op's packed right operand, and the commands that pack it into scratch memory at
// free. The first product of a chain packs the operands of all; the others need no commands. absmax
// is the absmax cache of op's right factor.
func (e *emitter) right(op schedule.Gemm, absmax, free driver.Pointer, stream int) (gemm.Operand, []launch.Command) {
	if made, ok := e.chained[e.now]; ok {
		return made, nil
	}
	var commands []launch.Command
	var calls launch.Batch
	add := func(op schedule.Gemm, absmax driver.Pointer) gemm.Operand {
		bytes, all := e.lowering.operandBytes(op)
		at := gemm.Operand{At: free, Absmax: absmax, Parts: free + driver.Pointer(bytes)}
		free += driver.Pointer(all)
		gemm.AddPacking(e.Target, &calls, op.B, op.TransB, at.At, absmax, absmax)
		return at
	}
	first := add(op, absmax)
	for _, i := range e.following(stream) {
		op := e.lowering.schedule.Nodes[i].Op.(schedule.Gemm)
		absmax, more := e.absmax(op.B, stream, false)
		commands = append(commands, more...)
		e.chained[i], e.chainEnd = add(op, absmax), i
	}
	return first, append(commands, gemm.PackOperands(e.Target, calls, !op.TransA))
}

// joinsSums reports whether node i is a small addition of two matrices that the chain from the next
// node on can do along with its partial sums.
func (e *emitter) joinsSums(i int) bool {
	n := e.lowering.schedule.Nodes[i]
	op, ok := n.Op.(schedule.Map)
	if !ok || op.Op != cell.Add || op.A != op.Out || op.B.Rows != op.Out.Rows || op.B.Cols != op.Out.Cols || !contiguous(e.Target, op.B) || e.Element(op.Out) != driver.Single || op.Out.Overlaps(op.B) {
		return false
	}
	if i+1 == len(e.lowering.schedule.Nodes) || e.lowering.awaited[i] || e.lowering.schedule.Nodes[i+1].Stream != n.Stream || len(e.lowering.schedule.Nodes[i+1].Wait) > 0 {
		return false
	}
	nodes, _ := e.lowering.chain(i + 1)
	for _, j := range nodes {
		next := e.lowering.schedule.Nodes[j].Op
		if overlap(op.Writes(), next.Reads()) || overlap(op.Writes(), next.Writes()) || overlap(op.Reads(), next.Writes()) {
			return false
		}
	}
	return len(nodes) > 0
}

// sumBehind returns the sum of rows after a product, if its partial sums were formed: the launch
// that adds up the product's partial sums adds them up as well.
func (e *emitter) sumBehind(op schedule.Gemm, stream int) (schedule.SumRows, bool) {
	i := e.now + 1
	if !e.summed[i] {
		return schedule.SumRows{}, false
	}
	n := e.lowering.schedule.Nodes[i]
	rows, ok := n.Op.(schedule.SumRows)
	return rows, ok && n.Stream%launch.MaxStreams == stream && len(n.Wait) == 0 && !rows.Out.Overlaps(op.C) && e.Element(rows.Out) == driver.Single
}
