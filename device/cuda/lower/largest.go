package lower

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Weights that each run changes are split into halves at the start of the next run, for which their
// largest values must be known. The update has all values at hand, and keeps the largest in an absmax
// cache that outlasts the run. What the host writes to such weights has its largest value found ahead
// of the next run.

// placeLargest places the absmax caches of weights that an update alone writes, all of them, and of
// which a run packs split factors.
func (l *layout) placeLargest(s *schedule.Schedule, kept map[int]gemm.Method) {
	writes, packed := map[int]int{}, map[int]bool{}
	for op := range s.Operations() {
		for _, v := range op.Writes() {
			writes[v.M.ID]++
		}
		if op, ok := op.(schedule.Pack); ok && kept[op.Dst.M.ID] != gemm.Library && op.Src == op.Src.M.All() {
			packed[op.Src.M.ID] = true
		}
	}
	l.largest = map[int]int64{}
	for _, n := range s.Nodes {
		if op, ok := n.Op.(schedule.Update); ok {
			m := op.Param.M
			if op.Param == m.All() && packed[m.ID] && writes[m.ID] == 1 && l.Elements[m.ID] == driver.Single && pointwise.KeepsLargest(op) {
				l.largest[m.ID] = l.reserve(gemm.AbsmaxBytes)
			}
		}
	}
}

// largestAt is where a run's updates keep v's largest value; 0: they do not.
func largestAt(e *emitter, v schedule.View) driver.Pointer {
	at, ok := e.plan.largest[v.M.ID]
	if !ok || e.now < 0 || v != v.M.All() {
		return 0
	}
	return e.Base + driver.Pointer(at)
}

// largest tells updates where to keep largest values, and how.
func largest(e *emitter) pointwise.Largest {
	at := func(v schedule.View) driver.Pointer { return largestAt(e, v) }
	return pointwise.Largest{At: at, Parts: gemm.AbsmaxParts, Scales: gemm.Scales()}
}

// Refresh has what a run counts on be so, in memory at base: it finds the values that updates keep, and
// zeroes tables of which a run zeroes rows alone. It goes ahead of the first run, and of those before which
// the host has written such matrices.
func Refresh(p *Plan, base driver.Pointer) (list []launch.Command) {
	t := p.target(base)
	for _, m := range p.schedule.Matrices {
		if at, ok := p.largest[m.ID]; ok {
			list = append(list, gemm.Largest(t, m.All(), base+driver.Pointer(at)))
		}
		if _, ok := p.noted[m.ID]; ok {
			list = append(list, pointwise.Map(t, schedule.Map{Op: cell.Zero, Out: m.All()}))
		}
	}
	return list
}

// CountsOn reports whether a run counts on what the run before left in m, so that Refresh is due once the
// host has written to m.
func CountsOn(p *Plan, m *schedule.Matrix) bool {
	_, kept := p.largest[m.ID]
	_, noted := p.noted[m.ID]
	return kept || noted
}
