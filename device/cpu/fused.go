package cpu

import (
	"rnnbench/device/cpu/gemm"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A fused cell runs its point-wise operations one after the other on so few
// units at a time that everything between them stays in the first cache.
type fused struct {
	steps      []step
	rows, cols int
	temps      int
}

type step struct {
	kernel    kernel
	out, a, b operand
}

// An operand is a matrix, or a temporary vector of the worker.
type operand struct {
	matrix
	temp int // -1: not a temporary
	used bool
}

// block is how many units a fused cell handles at a time: a kilobyte a vector.
const block = 256

// temps is a stand-in for the matrix of temporaries that a fused cell does not
// have: its views say which temporary is meant.
func (p *program) temps(state schedule.View, of cell.Program) schedule.View {
	m := &schedule.Matrix{Name: "temporaries", Rows: state.Rows, Cols: max(of.Temps(), 1) * state.Cols, ID: -1}
	return m.All()
}

func (p *program) fuse(maps []schedule.Map, rows, cols int) work {
	w := &fused{rows: rows, cols: cols}
	bind := func(v schedule.View, used bool) operand {
		switch {
		case !used:
			return operand{temp: -1}
		case v.M.ID < 0:
			w.temps = max(w.temps, v.Col/cols+1)
			return operand{temp: v.Col / cols, used: true}
		}
		return operand{matrix: p.matrix(v), temp: -1, used: true}
	}
	for _, m := range maps {
		n := m.Op.Operands()
		w.steps = append(w.steps, step{kernelOf(p.device.kernels, m.Op), bind(m.Out, true), bind(m.A, n > 0), bind(m.B, n > 1)})
	}
	return w
}

func (w *fused) share(part, parts int, s *scratch) {
	perRow := (w.cols + block - 1) / block
	from, to := span(w.rows*perRow, 1, part, parts)
	if w.rows == 1 { // too few blocks to be shared evenly: share vectors
		lo, hi := span(w.cols, line, part, parts)
		for at := lo; at < hi; at += block {
			w.run(0, at, min(block, hi-at), s.temp)
		}
		return
	}
	for i := from; i < to; i++ {
		at := i % perRow * block
		w.run(i/perRow, at, min(block, w.cols-at), s.temp)
	}
}

// run advances n units of a row from unit at.
func (w *fused) run(row, at, n int, temp []float32) {
	vector := func(o *operand) []float32 {
		switch {
		case !o.used:
			return nil
		case o.temp >= 0:
			return temp[o.temp*block:][:n]
		}
		return o.row(row)[at : at+n]
	}
	for i := range w.steps {
		s := &w.steps[i]
		s.kernel(vector(&s.out), vector(&s.a), vector(&s.b))
	}
}

// newScratch is what one worker needs for s.
func (d *Device) newScratch(s *schedule.Schedule) scratch {
	products, temps := d.needs(s)
	return scratch{gemm: gemm.NewScratch(products), temp: make([]float32, temps*block)}
}

func (d *Device) scratchLen(s *schedule.Schedule) int {
	products, temps := d.needs(s)
	return products + temps*block
}

// needs are the floats that a worker's products and the vectors that its fused
// cells need at most, however the workers are grouped.
func (d *Device) needs(s *schedule.Schedule) (products, temps int) {
	for _, n := range s.Nodes {
		switch op := n.Op.(type) {
		case schedule.Gemm:
			p := d.product(op)
			for parts := 1; parts <= d.workers; parts *= 2 {
				products = max(products, d.gemm.ScratchLen(&p, parts))
			}
			products = max(products, d.gemm.ScratchLen(&p, d.workers))
		case schedule.Cell:
			temps = max(temps, op.Program().Temps())
		case schedule.CellBackward:
			temps = max(temps, op.Cell.Backward.Temps())
		}
	}
	return products, temps
}
