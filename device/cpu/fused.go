package cpu

import (
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A fusedCell runs a cell's whole program on vectors of units, with everything
// between its operations in registers.
type fusedCell struct {
	kernel     *fused.Kernel
	vectors    []matrix // in the kernel's order
	rows, cols int
}

// block is the least number of units worth a call.
const block = 256

func (p *program) fuse(of cell.Program, vector func(cell.Ref) schedule.View, state schedule.View) work {
	w := &fusedCell{kernel: fused.New(p.device.kernels.Level(), of), rows: state.Rows, cols: state.Cols}
	for _, r := range w.kernel.Vectors() {
		w.vectors = append(w.vectors, p.matrix(vector(r)))
	}
	return w
}

func (w *fusedCell) share(part, parts int, s *scratch) {
	if w.rows == 1 { // share its units
		if from, to := span(w.cols, line, part, parts); from < to {
			w.run(0, from, to, s)
		}
		return
	}
	perRow := (w.cols + block - 1) / block
	from, to := span(w.rows*perRow, 1, part, parts)
	for from < to {
		row, at := from/perRow, from%perRow
		end := min(perRow, at+to-from)
		w.run(row, at*block, min(w.cols, end*block), s)
		from += end - at
	}
}

// run advances units from … to of a row.
func (w *fusedCell) run(row, from, to int, s *scratch) {
	v := s.vectors[:len(w.vectors)]
	for i := range w.vectors {
		v[i] = w.vectors[i].row(row)[from:to]
	}
	w.kernel.Run(v, to-from)
}

// newScratch is what one worker needs for s.
func (d *Device) newScratch(s *schedule.Schedule) scratch {
	products, vectors := d.needs(s)
	return scratch{gemm: gemm.NewScratch(products), vectors: make([][]float32, vectors)}
}

// needs are the floats that a worker's products and the vectors that its fused
// cells need at most, however the workers are grouped.
func (d *Device) needs(s *schedule.Schedule) (products, vectors int) {
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Gemm:
			p, pieces := d.product(op), max(1, d.pieces(op))
			products = max(products, d.gemm.ScratchLen(&p, 1))
			for teams := 1; teams <= d.workers; teams++ { // of members, or one more
				members := d.workers / teams
				products = max(products, d.gemm.ScratchLen(&p, members*pieces), d.gemm.ScratchLen(&p, (members+1)*pieces))
			}
		case schedule.Cell:
			vectors = max(vectors, vectorsOf(op.Program()))
		case schedule.CellBackward:
			vectors = max(vectors, vectorsOf(op.Cell.Backward))
		}
	}
	return products, vectors
}

func vectorsOf(p cell.Program) int {
	reads, writes := p.Vectors()
	return len(reads) + len(writes)
}
