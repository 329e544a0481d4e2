package cpu

import (
	"unsafe"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A fusedCell runs a cell's whole program on vectors of units and keeps intermediate values in
// registers.
type fusedCell struct {
	kernel     *fused.Kernel
	vectors    []matrix // in the kernel's order
	rows, cols int
	kept       kept
}

// pass returns the forward pass for training, or inference.
func pass(train bool) fused.Pass {
	if train {
		return fused.Forward
	}
	return fused.Inference
}

// A stepCell is the cell of one step, or its gradient.
type stepCell interface {
	schedule.Op
	Vector(cell.Ref) schedule.View
	KeepOf(cell.Ref) schedule.View
}

func (p *binder) fuse(op stepCell, c *cell.Cell, pass fused.Pass, state schedule.View) work {
	key := cellPass{c, pass}
	k, ok := p.fused[key]
	if !ok {
		k = fused.New(p.device.kernels.Level(), c, pass)
		p.fused[key] = k
	}
	w := &fusedCell{kernel: k, vectors: make([]matrix, len(k.Vectors())), rows: state.Rows, cols: state.Cols}
	for i, r := range k.Vectors() {
		w.vectors[i] = p.matrix(op.Vector(r))
	}
	w.kept = p.kept(op, k.Vectors(), op.KeepOf, state.Cols)
	return w
}

func (w *fusedCell) share(part, parts int, s *scratch) {
	if w.rows == 1 { // split the row's units among the parts
		if from, to := span(w.cols, line, part, parts); from < to {
			w.run(0, 1, from, to, s)
		}
		return
	}
	perRow := ceil(w.cols, fused.Block)
	from, to := span(w.rows*perRow, 1, part, parts)
	for from < to {
		row, at := from/perRow, from%perRow
		if rows := (to - from) / perRow; at == 0 && rows > 0 {
			w.run(row, rows, 0, w.cols, s)
			from += rows * perRow
			continue
		}
		end := min(perRow, at+to-from)
		w.run(row, 1, at*fused.Block, min(w.cols, end*fused.Block), s)
		from += end - at
	}
}

// run runs the cell on units from … to-1 of some rows.
func (w *fusedCell) run(row, rows, from, to int, s *scratch) {
	atOnce := rows
	if w.kept.some() { // each row may read other vectors
		atOnce = 1
	}
	v := s.tracks[:len(w.vectors)]
	for end := row + rows; row < end; row += atOnce {
		for i := range w.vectors {
			v[i] = w.vectors[i].vector(row, from)
		}
		w.kept.zeroes(v, row)
		w.kernel.Run(v, s.addresses, to-from, atOnce)
	}
}

// A shape holds all that the scratch memory of a product depends on.
type shape struct {
	m, n, k                int
	transA, transB, packed bool
}

func shapeOf(op schedule.Gemm) shape {
	m, n, k := op.Sizes()
	return shape{m, n, k, op.TransA, op.TransB, op.B.M.Packed}
}

// newScratch returns the scratch memory of one worker for s.
func (pl *planner) newScratch(s *schedule.Schedule, f simd.Format, k knob.Params) scratch {
	n := pl.needs(s, f, k)
	return scratch{
		gemm: gemm.NewScratch(n.gemm), addresses: make([]uintptr, n.vectors), products: make([]float32, n.products),
		tracks: make([]fused.Vector, n.vectors), weights: make([][]float32, n.vectors),
		others: make([]fused.Span, pl.workers), steps: fused.NewSteps(n.vectors, pl.workers, n.parts),
		inputs: make([]float32, n.inputs), tiles: make([]fused.Tile, n.tiles), scan: newScanScratch(n),
	}
}

// needs is the scratch memory of a worker: the most of any operation, however workers are grouped.
type needs struct {
	gemm     int // floats, for products
	vectors  int // number of vectors of a fused cell
	products int // floats, for the recurrent products of a band
	parts    int // floats, for parts of these products
	inputs   int // floats, for a block of packed inputs
	tiles    int // number of tiles of a block's product

	states      int // floats, for the states that a scan carries
	scanVectors int // number of vectors of a scan's program
	columns     int // floats, for the strips of a scan in lanes
	repeated    int // floats, for vectors that its steps share
	laneStates  int // floats, for the states of its lanes
}

// tileFloats is the size of a tile in floats.
const tileFloats = int(unsafe.Sizeof(fused.Tile{}) / 4)

// floats returns the floats of the needs that count as the schedule's memory.
func (n needs) floats() int {
	return n.gemm + n.products + fused.StepsLen(n.vectors, n.parts) + n.inputs + tileFloats*n.tiles + scanArrays*n.states + n.columns + n.repeated + 2*n.laneStates
}

// scan adds the needs of a scan.
func (n *needs) scan(w *scan) {
	states := len(w.carried) * w.batch * w.hidden
	n.states = max(n.states, states)
	for _, l := range w.loops() {
		n.scanVectors = max(n.scanVectors, vectorsOf(l.Program()))
	}
	if l := w.lanes; l != nil {
		n.columns = max(n.columns, l.count*l.longest*w.batch*l.columns())
		n.laneStates, n.repeated = max(n.laneStates, l.count*states), max(n.repeated, l.repeats())
	}
}

// bands adds the needs of a step's product, for all sequences and for the parts of the sequences
// that workers may have.
func (n *needs) bands(pl *planner, batch, units, depth int, f simd.Format) {
	for parts := 1; parts <= pl.workers; parts++ {
		for _, rows := range []int{batch / parts, ceil(batch, parts)} {
			p := bandProduct(max(1, rows), units, depth, f)
			n.gemm = max(n.gemm, pl.gemm.ScratchLen(&p, 1))
		}
	}
}

func (pl *planner) needs(s *schedule.Schedule, f simd.Format, k knob.Params) needs {
	var most needs
	seen := map[*cell.Instr]bool{} // programs, by their first instruction
	vectors := func(p cell.Program) {
		if !seen[&p[0]] {
			seen[&p[0]], most.vectors = true, max(most.vectors, vectorsOf(p))
		}
	}
	product := func(p gemm.Product, takers func(members int) int) {
		seen := map[int]bool{}
		for teams := 1; teams <= pl.workers; teams++ { // a team has this many members, or one more
			for members := pl.workers / teams; members <= pl.workers/teams+1; members++ {
				if n := takers(members); !seen[n] {
					seen[n], most.gemm = true, max(most.gemm, pl.gemm.ScratchLen(&p, n))
				}
			}
		}
	}
	all := func(members int) int { return members }
	for i, j := range pl.packPairs(s, true) {
		p, beside := pl.product(s.Nodes[i].Op.(schedule.Gemm), f), pl.product(s.Nodes[j].Op.(schedule.Gemm), f)
		p.Second = &beside
		product(p, all)
	}
	for i, block := range pl.inputs(s, f, k, true) {
		_, n, k := s.Nodes[i].Op.(schedule.Gemm).Sizes()
		op := s.Nodes[i+1].Op.(schedule.Persistent)
		p := pl.product(s.Nodes[i].Op.(schedule.Gemm), f)
		p.M = block
		most.gemm = max(most.gemm, pl.gemm.ScratchLen(&p, 1))
		most.inputs, most.tiles = max(most.inputs, k*block), max(most.tiles, tilesOf(n, op.Hidden(), block))
	}
	products := map[shape]bool{}
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Gemm:
			of := shapeOf(op)
			if products[of] { // a product of another step had this shape
				continue
			}
			products[of] = true
			p := pl.product(op, f)
			most.gemm = max(most.gemm, pl.gemm.ScratchLen(&p, 1))
			if pl.pieces(op, f) > 1 {
				most.gemm = max(most.gemm, pl.gemm.PieceScratchLen(&p))
				continue
			}
			product(p, func(members int) int { return pl.takers(op, 1, members) })
		case schedule.Cell:
			vectors(op.Program())
		case schedule.CellBackward:
			vectors(op.Cell.Backward)
		case schedule.Persistent:
			vectors(op.Step(0, schedule.View{}).Program())
			most.products = max(most.products, op.Batch()*len(op.R)*op.Hidden())
			most.parts = max(most.parts, fused.PartLen(len(op.R), op.Hidden()))
			most.bands(pl, op.Batch(), op.Hidden(), op.Hidden(), f)
		case schedule.PersistentBackward:
			vectors(op.Cell.Backward)
			most.bands(pl, op.Batch(), op.Hidden(), op.R.Rows, f)
		case schedule.Scan, schedule.ScanBackward:
			most.scan(pl.scanOf(op, k))
		}
	}
	return most
}

func vectorsOf(p cell.Program) int {
	reads, writes := p.Vectors()
	return len(reads) + len(writes)
}
