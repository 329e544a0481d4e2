package lower

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Weights that each run updates are split into halves at the start of the next run. That needs
// their largest values. The update reads all values anyway, and keeps the largest in an absmax
// cache that outlasts the run. If the host writes such weights, their largest value is found before
// the next run.

// placeLargest places an absmax cache for some matrices of weights: one update alone writes them,
// as a whole, and a run packs them as split factors.
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

// largestAt is where a run's updates keep v's largest value; 0: nowhere.
func largestAt(e *emitter, v schedule.View) driver.Pointer {
	at, ok := e.lowering.largest[v.M.ID]
	if !ok || e.now < 0 || v != v.M.All() {
		return 0
	}
	return e.Base + driver.Pointer(at)
}

// largest tells updates where and how to keep largest values.
func largest(e *emitter) pointwise.Largest {
	at := func(v schedule.View) driver.Pointer { return largestAt(e, v) }
	return pointwise.Largest{At: at, Parts: gemm.AbsmaxParts, Scales: gemm.Scales()}
}

// Refresh returns commands that restore what a run relies on, in memory at base. They find the
// values that updates keep, and zero tables of which a run zeroes only rows. They run before the
// first run, and before each run after the host has written such matrices.
func Refresh(p *Lowering, base driver.Pointer) (list []launch.Command) {
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

// CountsOn reports whether a run relies on what the previous run left of m. Then Refresh is due
// after the host has written to m.
func CountsOn(p *Lowering, m *schedule.Matrix) bool {
	_, kept := p.largest[m.ID]
	_, noted := p.noted[m.ID]
	return kept || noted
}
