package cpu

import (
	"fmt"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A matrix is a view bound to memory.
type matrix struct {
	data       []float32 // from the first element on
	stride     int
	rows, cols int
}

func (p *binder) matrix(v schedule.View) matrix {
	if v.Empty() {
		return matrix{}
	}
	mem := p.memory[v.M.ID]
	if v.M.Packed {
		return matrix{data: mem, rows: v.Rows, cols: v.Cols}
	}
	from := v.Row*v.M.Cols + v.Col
	to := (v.Row+v.Rows-1)*v.M.Cols + v.Col + v.Cols
	return matrix{data: mem[from:to:to], stride: v.M.Cols, rows: v.Rows, cols: v.Cols}
}

// vector returns the rows of m from a row on, without their first columns. A matrix of one row stands
// for any number of equal rows.
func (m *matrix) vector(row, from int) fused.Vector {
	if m.rows == 1 {
		return fused.Vector{Data: m.data, From: from}
	}
	return fused.Vector{Data: m.data, From: row*m.stride + from, Row: m.stride}
}

// row returns a row of m. A matrix of one row stands for any number of equal rows.
func (m *matrix) row(i int) []float32 {
	if m.rows == 1 {
		i = 0
	}
	return m.data[i*m.stride:][:m.cols]
}

// dense reports whether m's rows are contiguous.
func (m *matrix) dense() bool { return m.rows == 1 || m.stride == m.cols }

// span returns the range from … to-1 of a part of n items. Parts are multiples of align, as even as
// possible.
func span(n, align, part, parts int) (from, to int) {
	blocks := (n + align - 1) / align
	return min(blocks*part/parts*align, n), min(blocks*(part+1)/parts*align, n)
}

// work binds op to memory.
func (p *binder) work(op schedule.Op) (work, error) {
	k := p.device.kernels
	switch op := op.(type) {
	case schedule.Gemm:
		return p.gemm(op), nil
	case schedule.Pack:
		m := p.matrix(op.Src)
		return &pack{
			engine: p.device.gemm,
			dst:    p.memory[op.Dst.M.ID],
			format: p.format,
			src:    gemm.Matrix{Data: m.data, Stride: m.stride, Trans: op.Trans},
			k:      op.Dst.Rows,
			n:      op.Dst.Cols,
		}, nil
	case schedule.Map:
		return p.mapped(op), nil
	case schedule.MapChain:
		return p.pointwise(op.Steps), nil
	case schedule.SumRows:
		return &sumRows{kernels: k, a: p.matrix(op.A), out: p.matrix(op.Out), accumulate: op.Accumulate}, nil
	case schedule.Cell:
		return p.fuse(op, op.Cell, pass(op.Train), op.Next[0]), nil
	case schedule.CellBackward:
		return p.fuse(op, op.Cell, fused.Backward, op.Next[0]), nil
	case schedule.Persistent:
		return p.persistent(op), nil
	case schedule.PersistentBackward:
		return p.persistentBackward(op), nil
	case schedule.Scan:
		return p.scan(&op), nil
	case schedule.ScanBackward:
		return p.scanBackward(&op), nil
	case schedule.Gather:
		return &gather{index: p.matrix(op.Index), table: p.matrix(op.Table), out: p.matrix(op.Out), program: p.program}, nil
	case schedule.Scatter:
		return newScatter(p, op), nil
	case schedule.SoftmaxLoss:
		return &softmaxLoss{
			kernels: k,
			logits:  p.matrix(op.Logits),
			target:  p.matrix(op.Target),
			loss:    p.matrix(op.Loss),
			prob:    p.matrix(op.Prob),
			weight:  p.matrix(op.Weight),
			groups:  max(1, op.Groups),
			grad:    op.Grad,
			scale:   op.Scale,
			program: p.program,
		}, nil
	case schedule.CTCLoss:
		return newCTCLoss(p, op), nil
	case schedule.Normalise:
		return &normalise{kernels: k, x: p.matrix(op.X), gain: p.matrix(op.Gain), out: p.matrix(op.Out), stats: p.matrix(op.Stats)}, nil
	case schedule.NormaliseBackward:
		return &normaliseBackward{
			kernels: k, dout: p.matrix(op.DOut), x: p.matrix(op.X), gain: p.matrix(op.Gain), stats: p.matrix(op.Stats), dx: p.matrix(op.DX), toGains: p.matrix(op.Share),
		}, nil
	case schedule.Squares:
		return p.squares(op), nil
	case schedule.Change:
		return &change{a: p.matrix(op.A), b: p.matrix(op.B), out: p.matrix(op.Out)}, nil
	case schedule.Update:
		return p.update(op), nil
	case schedule.AllReduce:
		return p.allReduce(op)
	case schedule.Pause:
		return absorbed{}, nil
	}
	return nil, unsupported(op)
}

// unsupported returns the error that declines op.
func unsupported(op schedule.Op) error {
	switch op.(type) {
	case schedule.Vendor, schedule.VendorBackward:
		return fmt.Errorf("cpu: %w: the vendor library runs on GPUs only", schedule.ErrDevice)
	case schedule.Foreign:
		return fmt.Errorf("cpu: %w: a rival runs in its own process only", schedule.ErrDevice)
	}
	return fmt.Errorf("cpu: %s: %w: the CPU does not support this operation", op.Name(), schedule.ErrDevice)
}

// A product is a Gemm. It is split into as many shares as there are workers, or into pieces.
type product struct {
	engine *gemm.Engine
	gemm.Product
	pieces int // 0: shares
}

func (p *binder) gemm(op schedule.Gemm) work {
	a, b, c := p.matrix(op.A), p.matrix(op.B), p.matrix(op.C)
	w := &product{engine: p.device.gemm, Product: p.device.product(op, p.format)}
	w.A.Data, w.C = a.data, c.data
	if op.B.M.Packed {
		w.Packed = b.data
	} else {
		w.B.Data = b.data
	}
	if p.device.pieces(op, p.format) > 1 {
		w.pieces = w.engine.Pieces(&w.Product, p.device.workers)
	}
	return w
}

// product returns op without memory, with packed weights in format f. Kernels that multiply BF16
// round the other operands to it, too.
func (pl *planner) product(op schedule.Gemm, f simd.Format) gemm.Product {
	m, n, k := op.Sizes()
	p := gemm.Product{
		M: m, N: n, K: k, Accumulate: op.Accumulate, LdC: op.C.M.Cols,
		A: gemm.Matrix{Stride: op.A.M.Cols, Trans: op.TransA},
		B: gemm.Matrix{Stride: op.B.M.Cols, Trans: op.TransB},
	}
	if op.B.M.Packed {
		p.Packed = []float32{} // Engine only asks whether it is nil
	}
	if op.B.M.Packed || f == simd.BF16 {
		p.Format = f
	}
	return p
}

func (w *product) share(part, parts int, s *scratch) {
	if w.pieces == 0 {
		w.engine.Run(&w.Product, part, parts, s.gemm)
		return
	}
	from, to := span(w.pieces, 1, part, parts)
	for i := range to - from {
		piece := from + i
		if w.Backward {
			piece = to - 1 - i
		}
		w.engine.RunPiece(&w.Product, piece, w.pieces, s.gemm)
	}
}

type pack struct {
	engine *gemm.Engine
	dst    []float32
	format simd.Format
	src    gemm.Matrix
	k, n   int
	steady bool // src changes only between the runs of a host program
	kept   bool // dst holds what src does
}

func (w *pack) share(part, parts int, s *scratch) {
	if w.kept {
		return
	}
	w.engine.Pack(w.dst, w.format, w.src, w.k, w.n, part, parts, s.gemm)
}

// A mapped operation runs one kernel over rows.
type mapped struct {
	kernel    kernel
	out, a, b matrix
}

// A mapKey is what the kernel of a map depends on.
type mapKey struct {
	op    cell.Op
	value float32
}

// A kernel is a point-wise operation on vectors. a and b may be nil if the operation does not read
// them.
type kernel func(out, a, b []float32)

// pointwise is a chain of maps of one shape. Each part of the shape runs through all maps.
type pointwise []mapped

// recent holds the latest maps and their work. It is cleared when it is full.
type recent struct{ maps map[schedule.Map]work }

func (r *recent) find(op schedule.Map) (work, bool) {
	w, ok := r.maps[op]
	return w, ok
}

func (r *recent) add(op schedule.Map, w work) {
	const most = 1 << 10
	if r.maps == nil {
		r.maps = map[schedule.Map]work{}
	} else if len(r.maps) == most {
		clear(r.maps)
	}
	r.maps[op] = w
}

// mapped returns the work of op, from recent if it is there.
func (p *binder) mapped(op schedule.Map) work {
	w, ok := p.recent.find(op)
	if !ok {
		w = p.pointwise([]schedule.Map{op})
		p.recent.add(op, w)
	}
	return w
}

func (p *binder) pointwise(maps []schedule.Map) work {
	w := make(pointwise, 0, len(maps))
	flat := true
	for _, op := range maps {
		key := mapKey{op.Op, op.Value}
		k, ok := p.maps[key]
		if !ok {
			k = fused.Operation(&p.device.kernels.Functions, op.Op, op.Value)
			p.maps[key] = k
		}
		m := mapped{kernel: k, out: p.matrix(op.Out), a: p.matrix(op.A), b: p.matrix(op.B)}
		flat = flat && m.out.dense()
		for _, v := range []*matrix{&m.a, &m.b}[:op.Op.Operands()] {
			flat = flat && v.dense() && v.rows == m.out.rows
		}
		w = append(w, m)
	}
	for i := range w {
		for _, v := range []*matrix{&w[i].out, &w[i].a, &w[i].b} {
			if flat && v.rows > 0 { // treat all rows as one long row
				v.rows, v.cols = 1, v.rows*v.cols
			}
		}
	}
	return w
}

func (w pointwise) share(part, parts int, _ *scratch) {
	run := func(row, from, to int) {
		for i := range w {
			w[i].columns(row, from, to)
		}
	}
	out := &w[0].out
	if out.rows == 1 {
		from, to := span(out.cols, line, part, parts)
		run(0, from, to)
		return
	}
	from, to := span(out.rows, 1, part, parts)
	for i := from; i < to; i++ {
		run(i, 0, out.cols)
	}
}

func (w *mapped) columns(row, from, to int) {
	var a, b []float32
	if w.a.rows > 0 {
		a = w.a.row(row)[from:to]
	}
	if w.b.rows > 0 {
		b = w.b.row(row)[from:to]
	}
	w.kernel(w.out.row(row)[from:to], a, b)
}

type sumRows struct {
	kernels    *simd.Kernels
	a, out     matrix
	accumulate bool
}

func (w *sumRows) share(part, parts int, s *scratch) {
	from, to := span(w.out.cols, line, part, parts)
	if from == to {
		return
	}
	out := w.out.row(0)[from:to]
	if !w.accumulate {
		clear(out)
	}
	w.kernels.SumRows(out, w.a.data[from:], w.a.stride, w.a.rows, s.part[:])
}

type gather struct {
	index, table, out matrix
	program           *program
}

func (w *gather) share(part, parts int, _ *scratch) {
	from, to := span(w.out.rows, 1, part, parts)
	for i := from; i < to; i++ {
		if at, ok := w.program.index(w.index.row(i)[0], w.table.rows); ok {
			copy(w.out.row(i), w.table.data[at*w.table.stride:][:w.table.cols])
		}
	}
}

// index returns v as a row number, or notes that it is none.
func (p *program) index(v float32, rows int) (int, bool) {
	i := int(v)
	if !(v >= 0) || i >= rows || float32(i) != v {
		p.badIndex.Store(true)
		return 0, false
	}
	return i, true
}
