package cpu

import "rnnbench/rnn/schedule"

// A host program says when it changes weights. Until then, its runs do not pack them again: a packed
// matrix keeps what it holds. All other runs pack, since each stands for an iteration of training,
// which changes weights.

// findSteady lists the steady packs by the matrix that they read. No operation writes that matrix,
// and no other writes the packed one.
func findSteady(p *program) map[int][]*pack {
	writers := map[int]int{}
	for op := range p.schedule.Operations() {
		for v, wrote := range schedule.Accesses(op) {
			if wrote {
				writers[v.M.ID]++
			}
		}
	}
	found := map[int][]*pack{}
	for i, n := range p.schedule.Nodes {
		w, ok := p.nodes[i].work.(*pack)
		if !ok {
			continue
		}
		op := n.Op.(schedule.Pack)
		if w.steady = writers[op.Src.M.ID] == 0 && writers[op.Dst.M.ID] == 1; w.steady {
			found[op.Src.M.ID] = append(found[op.Src.M.ID], w)
		}
	}
	return found
}

// steadyOf returns the steady packs among nodes.
func steadyOf(nodes []node) (steady []*pack) {
	for _, n := range nodes {
		if w, ok := n.work.(*pack); ok && w.steady {
			steady = append(steady, w)
		}
	}
	return steady
}

// changed notes that a matrix may hold other values than when it was packed.
func (h *hosting) changed(matrix int) {
	for _, w := range h.packs[matrix] {
		w.kept = false
	}
}

// keep notes that all packs of a part have run.
func (h *hosting) keep() {
	for _, w := range h.steady {
		w.kept = true
	}
}
