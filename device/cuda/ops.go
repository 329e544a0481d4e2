package cuda

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A binder turns operations into steps over the program's memory.
type binder struct {
	*launch.Target
	layout     *layout
	persistent int           // such operations so far
	sides      int           // parts of the GPU that they share
	order      map[int]order // of packed weights, by matrix
	alias      map[int]bool  // packed weights that are where their source is
	tails      []tailed      // of factors, the latest used last
	summed     map[int]bool  // sums of rows, by node, whose parts have been formed by who looked for the largest value
	added      map[int]bool  // of these: whose parts have been added up with a product's
	chained    map[int]link  // products that another has made the right pieces of, by node
	chainEnd   int           // the node with the last of them
	pending    []sumOf       // to be added up behind that
	runs       map[int]run   // by the node that each begins with
	now        int           // the node that is bound; -1: none is
	schedule   *schedule.Schedule
	touched    [][]int // per matrix, the nodes that do; nil: not listed yet
	choices    map[choice]chosen
	networks   map[driver.Network]readied
}

// newBinder lays s out, once its networks are ready, and declines settings of knobs that
// nothing of it goes by.
func newBinder(s *schedule.Schedule, k knob.Params, p driver.Properties, networks map[driver.Network]readied) (*binder, error) {
	l, err := newLayout(s, k, p, networks)
	if err != nil {
		return nil, err
	}
	b := &binder{
		Target: launch.NewTarget(&l.Memory, s.Precision, k, p), layout: &l, sides: sides(s),
		choices: map[choice]chosen{}, networks: networks,
	}
	b.arrange(s)
	return b, b.declined(s)
}

// bound is what the preparation of s takes, and each node.
func (b *binder) bound(s *schedule.Schedule) (prepare []launch.Command, nodes [][]launch.Command, err error) {
	b.tails, b.summed, b.added, b.schedule, b.now, b.runs = nil, map[int]bool{}, map[int]bool{}, s, -1, b.runsOf(s)
	b.chained, b.chainEnd, b.pending = map[int]link{}, -1, nil
	for _, op := range s.Prepare {
		steps, err := b.steps(op, 0)
		if err != nil {
			return nil, nil, err
		}
		prepare = append(prepare, steps...)
		b.forget(op)
	}
	b.tails = nil // of the run before
	nodes = make([][]launch.Command, len(s.Nodes))
	for i, n := range s.Nodes {
		b.now = i
		if nodes[i], err = b.node(s, i); err != nil {
			return nil, nil, err
		}
		b.forget(n.Op)
	}
	return prepare, nodes, nil
}

// node is what the operation at place i of the schedule takes on its stream; a
// product and the cell behind it may be one launch.
func (b *binder) node(s *schedule.Schedule, i int) ([]launch.Command, error) {
	n := s.Nodes[i]
	if t := b.layout.stacks.at[i]; t != nil {
		return []launch.Command{b.stacked(t)}, nil
	}
	if b.layout.fused[i] || b.layout.inside[i] {
		return nil, nil
	}
	if i > 0 && b.layout.fused[i-1] {
		g := s.Nodes[i-1].Op.(schedule.Gemm)
		return []launch.Command{b.narrowCell(g, n.Op.(schedule.Cell), b.layout.factors[g.B.M.ID], !b.overwritten(s, i-1))}, nil
	}
	if row := b.biased(s, i); !row.Empty() {
		return b.wideProduct(n.Op.(schedule.Gemm), row, n.Stream%launch.MaxStreams), nil
	}
	if !b.biased(s, i-1).Empty() {
		return nil, nil
	}
	if b.joins(i) {
		op := n.Op.(schedule.Map)
		b.pending = append(b.pending, sumOf{rows: op.Out.Rows, cols: op.Out.Cols, parts: 1, from: b.At(op.B), to: op.Out, add: true})
		return nil, nil
	}
	if r, ok := b.runs[i]; !ok {
		return nil, nil // part of one before
	} else if len(r.ops) > 1 {
		return b.together(r), nil
	}
	return b.steps(n.Op, n.Stream%launch.MaxStreams)
}

// steps is what op takes on a stream.
func (b *binder) steps(op schedule.Op, stream int) ([]launch.Command, error) {
	switch op := op.(type) {
	case schedule.Gemm:
		if why := b.Properties.NoProducts; why != "" {
			return nil, fmt.Errorf("cuda: %w: %s", schedule.ErrDevice, why)
		}
		if n := b.layout.factors[op.B.M.ID]; n != nil {
			return []launch.Command{b.narrowProduct(op, n)}, nil
		}
		switch b.layout.of(op) {
		case pieces:
			return b.splitProduct(op, stream), nil
		case onTheWay:
			return b.wideProduct(op, schedule.View{}, stream), nil
		}
		return []launch.Command{{Product: b.product(op)}}, nil
	case schedule.Pack:
		if n := b.layout.factors[op.Dst.M.ID]; n != nil {
			return []launch.Command{b.tiles(op, n)}, nil
		}
		switch b.layout.kept[op.Dst.M.ID] {
		case pieces:
			return b.split(op.Src, !op.Trans, b.At(op.Dst), 0, false), nil
		case onTheWay:
			_, tail := wideBytes(op.Dst.Cols, op.Dst.Rows)
			to := b.At(op.Dst)
			var call launch.Batch
			b.addPieces(&call, op.Src, op.Trans, to, to+driver.Pointer(tail), to+driver.Pointer(tail))
			return []launch.Command{b.largest(op.Src, to+driver.Pointer(tail)), b.rightPieces(call, true)}, nil
		}
		if b.alias[op.Dst.M.ID] {
			return nil, nil
		}
		return []launch.Command{b.pack(op, b.order[op.Dst.M.ID])}, nil
	case schedule.Map:
		return []launch.Command{b.mapped(op)}, nil
	case schedule.Maps:
		return []launch.Command{b.maps(op)}, nil
	case schedule.Vendor, schedule.VendorBackward:
		s, _ := stackOf(op)
		return []launch.Command{b.network(s, stream)}, nil
	case schedule.SumRows:
		if b.added[b.now] {
			return nil, nil
		}
		if b.summed[b.now] {
			return []launch.Command{b.sumOfParts(op, b.sums(stream))}, nil
		}
		return b.sumRows(op, stream), nil
	case schedule.Cell:
		return []launch.Command{b.cell(cellName(op), op.Program(), op.Vector, op.Next[0])}, nil
	case schedule.CellBackward:
		return []launch.Command{b.cell(op.Cell.Name+"_backward", op.Cell.Backward, op.Vector, op.Next[0])}, nil
	case schedule.Gather:
		return []launch.Command{b.gather(op)}, nil
	case schedule.Scatter:
		return []launch.Command{b.scatter(op)}, nil
	case schedule.SoftmaxLoss:
		return []launch.Command{b.softmaxLoss(op)}, nil
	case schedule.Scan, schedule.ScanBackward:
		return []launch.Command{b.scan(op, stream)}, nil
	case schedule.Persistent:
		return b.forwards(op)
	case schedule.PersistentBackward:
		return b.backwards(op)
	}
	return nil, fmt.Errorf("cuda: %s: %w: there is no kernel for it", op.Name(), schedule.ErrDevice)
}

func (b *binder) product(op schedule.Gemm) *driver.Product {
	m, n, k := op.Sizes()
	return &driver.Product{
		M: m, N: n, K: k, A: b.At(op.A), B: b.At(op.B), C: b.At(op.C),
		LdA: op.A.M.Cols, LdB: op.B.M.Cols, LdC: op.C.M.Cols,
		TransA: op.TransA, TransB: op.TransB, Accumulate: op.Accumulate,
		Operands: b.Element(op.A), Result: b.Element(op.C), TF32: b.Precision == schedule.TF32,
		Pick: b.Knobs["pick"] != 0,
	}
}

// maxFlat is the most elements that a kernel takes for one row: half of what an
// index counts, since it goes on by up to as many.
const maxFlat = 1 << 30

// mapped is a point-wise operation.
func (b *binder) mapped(op schedule.Map) launch.Command {
	in := cell.Instr{Op: op.Op, Out: cell.Ref{Kind: cell.Next}, A: cell.Ref{Kind: cell.X}, B: cell.Ref{Kind: cell.R}}
	return b.cell("map_"+op.Op.String(), cell.Program{in}, func(r cell.Ref) schedule.View {
		switch r {
		case in.Out:
			return op.Out
		case in.A:
			return op.A
		}
		return op.B
	}, op.Out)
}

// maps are point-wise operations in one launch.
func (b *binder) maps(op schedule.Maps) launch.Command {
	p, vector := op.Program()
	var text []byte
	for _, in := range p {
		text = append(text, byte(in.Op))
		for _, r := range []cell.Ref{in.Out, in.A, in.B} {
			text = append(text, byte(r.Kind), byte(r.Index))
		}
	}
	sum := fnv.New64a()
	sum.Write(text)
	return b.cell(fmt.Sprintf("maps_%016x", sum.Sum64()), p, vector, op.Steps[0].Out)
}

// cell runs a cell's program on every element of the shape of state.
func (b *binder) cell(name string, p cell.Program, vector func(cell.Ref) schedule.View, state schedule.View) launch.Command {
	rows, cols := state.Rows, state.Cols
	groups := b.Groups(p, vector)
	flat := !slices.ContainsFunc(groups, func(g codegen.Group) bool {
		return g.View.Rows != rows || g.View.M.Cols != cols
	})
	if flat && rows*cols <= maxFlat {
		rows, cols = 1, rows*cols
	}
	width := 4
	for _, g := range groups {
		if cols%4 != 0 || rows > 1 && g.View.Rows > 1 && g.View.M.Cols%4 != 0 || int(b.At(g.View))%(4*g.Element.Bytes()) != 0 {
			width = 1
		}
	}
	x := 1
	for x < launch.BlockSize && x*width < cols {
		x *= 2
	}
	y := launch.BlockSize / x
	args := make([]uint64, 0, 2+2*len(groups))
	args = append(args, uint64(rows), uint64(cols))
	for _, g := range groups {
		args = append(args, uint64(b.At(g.View)), b.Stride(g.View))
	}
	words := []any{"cell ", name, " ", width}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	s := launch.New(b.Source(func() codegen.Source { return pointwise(codegen.Identifier(name), p, groups, width) }, words...),
		[3]int{ints.CeilDiv(cols, x*width), min(ints.CeilDiv(rows, y), launch.MaxGrid), 1}, [3]int{x, y, 1}, args...)
	s.Early = b.Properties.Capability >= 90
	return s
}

// cellName names a cell's kernel.
func cellName(op schedule.Cell) string {
	if op.Train {
		return op.Cell.Name + "_train"
	}
	return op.Cell.Name
}

func (b *binder) transpose(src, dst schedule.View) launch.Command {
	return launch.New(b.File(file, "transpose", "FROM", b.Element(src), "TO", b.Element(dst)),
		[3]int{ints.CeilDiv(src.Cols, 32), min(ints.CeilDiv(src.Rows, 32), launch.MaxGrid), 1}, [3]int{32, 8, 1},
		uint64(src.Rows), uint64(src.Cols), uint64(b.At(src)), uint64(src.M.Cols), uint64(b.At(dst)), uint64(dst.M.Cols))
}

// sumWidth is how many columns side by side a thread sums, of a view or of parts of its sums:
// four where a warp has as many.
func sumWidth(v schedule.View) int {
	if v.Cols >= 4*32 && (v.Cols|v.M.Cols|v.Col)%4 == 0 {
		return 4
	}
	return 1
}

// sumBlocks are those side by side, of 32 threads across, and sumsTogether how many of either
// width a multiprocessor is to have at a time.
func sumBlocks(v schedule.View) int { return ints.CeilDiv(v.Cols, 32*sumWidth(v)) }

var sumsTogether = map[int]int{1: 7, 4: 4}

// sumParts is into how many parts the rows of op are cut: enough for all multiprocessors, of 128
// rows at least.
func sumParts(op schedule.SumRows, p driver.Properties) int {
	return max(1, min(sumsTogether[sumWidth(op.A)]*p.SMs/sumBlocks(op.A), op.A.Rows/128))
}

func (b *binder) sumRows(op schedule.SumRows, stream int) []launch.Command {
	if sumParts(op, b.Properties) == 1 {
		return []launch.Command{b.sum(b.Element(op.A), b.Element(op.Out), sumWidth(op.A), op.A.Rows, op.A.Cols, 1, b.At(op.A), op.A.M.Cols, b.At(op.Out), op.Out.M.Cols, op.Accumulate, 0)}
	}
	scratch := b.Base + driver.Pointer(b.layout.scratch[stream])
	return []launch.Command{b.partSums(op, scratch, 0), b.sumOfParts(op, scratch)}
}

// partSums leaves the sums of parts of the rows, and in a factor's tail, if there is one, the
// largest values; sumOfParts adds those sums up.
func (b *binder) partSums(op schedule.SumRows, to, tail driver.Pointer) launch.Command {
	return b.sum(b.Element(op.A), driver.Single, sumWidth(op.A), op.A.Rows, op.A.Cols, sumParts(op, b.Properties), b.At(op.A), op.A.M.Cols, to, op.A.Cols, false, tail)
}

func (b *binder) sumOfParts(op schedule.SumRows, from driver.Pointer) launch.Command {
	return b.sum(driver.Single, b.Element(op.Out), sumWidth(op.A), sumParts(op, b.Properties), op.A.Cols, 1, from, op.A.Cols, b.At(op.Out), op.Out.M.Cols, op.Accumulate, 0)
}

func (b *binder) sum(from, to driver.Element, width, rows, cols, parts int, a driver.Pointer, ldA int, out driver.Pointer, ldOut int, accumulate bool, tail driver.Pointer) launch.Command {
	largest := ints.FromBool(tail != 0)
	if tail == 0 {
		tail = out // unread
	}
	s := b.Source(func() codegen.Source {
		defines := []any{"V", width, "FROM", from, "TO", to, "LARGEST", largest, "RESIDENT", sumsTogether[width]}
		if largest == 0 {
			return file("sumrows", defines...)
		}
		return codegen.Source{Name: "sumrows", Text: file("scales", defines...).Text + file("sumrows").Text}
	}, "sumrows ", width, " ", from, " ", to, " ", largest)
	l := launch.New(s, [3]int{ints.CeilDiv(cols, 32*width), parts, 1}, [3]int{32, 8, 1},
		uint64(rows), uint64(cols), uint64(ints.CeilDiv(rows, parts)), uint64(a), uint64(ldA), uint64(out), uint64(ldOut), uint64(ints.FromBool(accumulate)), uint64(tail))
	l.Early = b.Properties.Capability >= 90
	return l
}

func (b *binder) gather(op schedule.Gather) launch.Command {
	x := 32
	for x < launch.BlockSize && x < op.Out.Cols {
		x *= 2
	}
	y := launch.BlockSize / x
	return launch.New(b.File(file, "gather", "INDEX", b.Element(op.Index), "TABLE", b.Element(op.Table), "TO", b.Element(op.Out)),
		[3]int{ints.CeilDiv(op.Out.Cols, x), min(ints.CeilDiv(op.Out.Rows, y), launch.MaxGrid), 1}, [3]int{x, y, 1},
		uint64(op.Out.Rows), uint64(op.Out.Cols), uint64(op.Table.Rows), uint64(b.At(op.Index)), uint64(op.Index.M.Cols),
		uint64(b.At(op.Table)), uint64(op.Table.M.Cols), uint64(b.At(op.Out)), uint64(op.Out.M.Cols), b.Status())
}

func (b *binder) scatter(op schedule.Scatter) launch.Command {
	return launch.New(b.File(file, "scatter", "INDEX", b.Element(op.Index), "FROM", b.Element(op.Src), "TABLE", b.Element(op.Table)),
		[3]int{op.Table.Rows, ints.CeilDiv(op.Src.Cols, launch.BlockSize), 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.Src.Rows), uint64(op.Src.Cols), uint64(op.Table.Rows), uint64(b.At(op.Index)), uint64(op.Index.M.Cols),
		uint64(b.At(op.Src)), uint64(op.Src.M.Cols), uint64(b.At(op.Table)), uint64(op.Table.M.Cols), b.Status())
}

func (b *binder) softmaxLoss(op schedule.SoftmaxLoss) launch.Command {
	grad := uint64(0)
	if op.Grad {
		grad = 1
	}
	each := ints.CeilDiv(op.Logits.Cols, launch.BlockSize)
	if each > 16 { // of as many a thread has no registers
		each = 0
	}
	l := launch.New(b.File(file, "softmaxloss", "EACH", each, "LOGITS", b.Element(op.Logits), "TARGET", b.Element(op.Target),
		"LOSS", b.Element(op.Loss), "PROB", b.Element(op.Prob)),
		[3]int{op.Logits.Rows, 1, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.Logits.Rows), uint64(op.Logits.Cols), uint64(b.At(op.Logits)), uint64(op.Logits.M.Cols),
		uint64(b.At(op.Target)), uint64(op.Target.M.Cols), uint64(b.At(op.Loss)), uint64(op.Loss.M.Cols),
		uint64(b.At(op.Prob)), uint64(op.Prob.M.Cols), grad, uint64(math.Float32bits(op.Scale)), b.Status())
	l.Early = b.Properties.Capability >= 90
	return l
}
