package cuda

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A step is one thing for the GPU to do: a launch or a product.
type step struct {
	launch  *driver.Launch
	source  *source // of the launch
	product *driver.Product
	network *driver.NetworkRun
	early   bool // the launch can begin ahead of the end of one of its kind, and lets the next one
}

// A binder turns operations into steps over the program's memory.
type binder struct {
	layout     *layout
	base       driver.Pointer
	properties driver.Properties
	precision  schedule.Precision
	knobs      knob.Params
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
	sources    map[string]*source
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
		layout: &l, properties: p, precision: s.Precision, knobs: k, sides: sides(s),
		choices: map[choice]chosen{}, sources: map[string]*source{}, networks: networks,
	}
	b.arrange(s)
	return b, b.declined(s)
}

// source returns the text of a kernel, written once for all operations that have
// the same words: its name and what else it depends on.
func (b *binder) source(write func() source, words ...any) *source {
	key := fmt.Sprint(words...)
	s, ok := b.sources[key]
	if !ok {
		text := write()
		s = &text
		b.sources[key] = s
	}
	return s
}

// file is a kernel of kernels/ with words defined.
func (b *binder) file(name string, defines ...any) *source {
	return b.source(func() source { return file(name, defines...) }, append([]any{name, " "}, defines...)...)
}

// at is the address of a view's first element.
func (b *binder) at(v schedule.View) driver.Pointer {
	size := b.layout.element[v.M.ID].Bytes()
	return b.base + driver.Pointer(b.layout.offset[v.M.ID]+int64(v.Row*v.M.Cols+v.Col)*int64(size))
}

func (b *binder) element(v schedule.View) driver.Element {
	if v.Empty() {
		return driver.Single
	}
	return b.layout.element[v.M.ID]
}

func (b *binder) trouble() uint64 { return uint64(b.base) + uint64(b.layout.trouble) }

// bound is what the preparation of s takes, and each node.
func (b *binder) bound(s *schedule.Schedule) (prepare []step, nodes [][]step, err error) {
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
	nodes = make([][]step, len(s.Nodes))
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
func (b *binder) node(s *schedule.Schedule, i int) ([]step, error) {
	n := s.Nodes[i]
	if t := b.layout.stacks.at[i]; t != nil {
		return []step{b.stacked(t)}, nil
	}
	if b.layout.fused[i] || b.layout.inside[i] {
		return nil, nil
	}
	if i > 0 && b.layout.fused[i-1] {
		g := s.Nodes[i-1].Op.(schedule.Gemm)
		return []step{b.narrowCell(g, n.Op.(schedule.Cell), b.layout.factors[g.B.M.ID], !b.overwritten(s, i-1))}, nil
	}
	if row := b.biased(s, i); !row.Empty() {
		return b.wideProduct(n.Op.(schedule.Gemm), row, n.Stream%maxStreams), nil
	}
	if !b.biased(s, i-1).Empty() {
		return nil, nil
	}
	if b.joins(i) {
		op := n.Op.(schedule.Map)
		b.pending = append(b.pending, sumOf{rows: op.Out.Rows, cols: op.Out.Cols, parts: 1, from: b.at(op.B), to: op.Out, add: true})
		return nil, nil
	}
	if r, ok := b.runs[i]; !ok {
		return nil, nil // part of one before
	} else if len(r.ops) > 1 {
		return b.together(r), nil
	}
	return b.steps(n.Op, n.Stream%maxStreams)
}

// steps is what op takes on a stream.
func (b *binder) steps(op schedule.Op, stream int) ([]step, error) {
	switch op := op.(type) {
	case schedule.Gemm:
		if why := b.properties.NoProducts; why != "" {
			return nil, fmt.Errorf("cuda: %w: %s", schedule.ErrDevice, why)
		}
		if n := b.layout.factors[op.B.M.ID]; n != nil {
			return []step{b.narrowProduct(op, n)}, nil
		}
		switch b.layout.of(op) {
		case pieces:
			return b.splitProduct(op, stream), nil
		case onTheWay:
			return b.wideProduct(op, schedule.View{}, stream), nil
		}
		return []step{{product: b.product(op)}}, nil
	case schedule.Pack:
		if n := b.layout.factors[op.Dst.M.ID]; n != nil {
			return []step{b.tiles(op, n)}, nil
		}
		switch b.layout.kept[op.Dst.M.ID] {
		case pieces:
			return b.split(op.Src, !op.Trans, b.at(op.Dst), 0, false), nil
		case onTheWay:
			_, tail := wideBytes(op.Dst.Cols, op.Dst.Rows)
			to := b.at(op.Dst)
			var call layers
			b.addPieces(&call, op.Src, op.Trans, to, to+driver.Pointer(tail), to+driver.Pointer(tail))
			return []step{b.largest(op.Src, to+driver.Pointer(tail)), b.rightPieces(call, true)}, nil
		}
		if b.alias[op.Dst.M.ID] {
			return nil, nil
		}
		return []step{b.pack(op, b.order[op.Dst.M.ID])}, nil
	case schedule.Map:
		return []step{b.mapped(op)}, nil
	case schedule.Maps:
		return []step{b.maps(op)}, nil
	case schedule.Vendor, schedule.VendorBackward:
		s, _ := stackOf(op)
		return []step{b.network(s, stream)}, nil
	case schedule.SumRows:
		if b.added[b.now] {
			return nil, nil
		}
		if b.summed[b.now] {
			return []step{b.sumOfParts(op, b.sums(stream))}, nil
		}
		return b.sumRows(op, stream), nil
	case schedule.Cell:
		return []step{b.cell(cellName(op), op.Program(), op.Vector, op.Next[0])}, nil
	case schedule.CellBackward:
		return []step{b.cell(op.Cell.Name+"_backward", op.Cell.Backward, op.Vector, op.Next[0])}, nil
	case schedule.Gather:
		return []step{b.gather(op)}, nil
	case schedule.Scatter:
		return []step{b.scatter(op)}, nil
	case schedule.SoftmaxLoss:
		return []step{b.softmaxLoss(op)}, nil
	case schedule.Scan, schedule.ScanBackward:
		return []step{b.scan(op, stream)}, nil
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
		M: m, N: n, K: k, A: b.at(op.A), B: b.at(op.B), C: b.at(op.C),
		LdA: op.A.M.Cols, LdB: op.B.M.Cols, LdC: op.C.M.Cols,
		TransA: op.TransA, TransB: op.TransB, Accumulate: op.Accumulate,
		Operands: b.element(op.A), Result: b.element(op.C), TF32: b.precision == schedule.TF32,
		Pick: b.knobs["pick"] != 0,
	}
}

// blockSize is the number of threads of most kernels.
const blockSize = 256

// maxFlat is the most elements that a kernel takes for one row: half of what an
// index counts, since it goes on by up to as many.
const maxFlat = 1 << 30

// maxGrid is the largest second dimension of a grid.
const maxGrid = 65535

func newLaunch(s *source, grid, block [3]int, args ...uint64) step {
	l := &driver.Launch{Name: s.name, Grid: grid, Block: block, Args: args}
	l.Pack()
	return step{launch: l, source: s}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// mapped is a point-wise operation.
func (b *binder) mapped(op schedule.Map) step {
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
func (b *binder) maps(op schedule.Maps) step {
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
func (b *binder) cell(name string, p cell.Program, vector func(cell.Ref) schedule.View, state schedule.View) step {
	rows, cols := state.Rows, state.Cols
	groups := b.groups(p, vector)
	flat := !slices.ContainsFunc(groups, func(g group) bool {
		return g.view.Rows != rows || g.view.M.Cols != cols
	})
	if flat && rows*cols <= maxFlat {
		rows, cols = 1, rows*cols
	}
	width := 4
	for _, g := range groups {
		if cols%4 != 0 || rows > 1 && g.view.Rows > 1 && g.view.M.Cols%4 != 0 || int(b.at(g.view))%(4*g.element.Bytes()) != 0 {
			width = 1
		}
	}
	x := 1
	for x < blockSize && x*width < cols {
		x *= 2
	}
	y := blockSize / x
	args := make([]uint64, 0, 2+2*len(groups))
	args = append(args, uint64(rows), uint64(cols))
	for _, g := range groups {
		args = append(args, uint64(b.at(g.view)), b.stride(g.view))
	}
	words := []any{"cell ", name, " ", width}
	for _, g := range groups {
		words = append(words, " ", g.element)
	}
	s := newLaunch(b.source(func() source { return pointwise(identifier(name), p, groups, width) }, words...),
		[3]int{ceil(cols, x*width), min(ceil(rows, y), maxGrid), 1}, [3]int{x, y, 1}, args...)
	s.early = b.properties.Capability >= 90
	return s
}

// cellName names a cell's kernel.
func cellName(op schedule.Cell) string {
	if op.Train {
		return op.Cell.Name + "_train"
	}
	return op.Cell.Name
}

// stride is the distance between rows; one row serves for every row.
func (b *binder) stride(v schedule.View) uint64 {
	if v.Rows == 1 {
		return 0
	}
	return uint64(v.M.Cols)
}

// groups are the arguments of a kernel that runs p.
func (b *binder) groups(p cell.Program, vector func(cell.Ref) schedule.View) []group {
	reads, writes := p.Vectors()
	var out []group
	for i, r := range slices.Concat(reads, writes) {
		name := groupName(r)
		k := slices.IndexFunc(out, func(g group) bool { return g.name == name })
		if k < 0 {
			first := r
			first.Index -= offset(r)
			v := vector(first)
			out = append(out, group{name: name, element: b.element(v), view: v})
			k = len(out) - 1
		}
		out[k].written = out[k].written || i >= len(reads)
	}
	return out
}

// identifier makes a name of CUDA's of a cell's.
func identifier(s string) string {
	id := []byte(s)
	for i, c := range id {
		if c == '-' {
			id[i] = '_'
		}
	}
	return string(id)
}

func (b *binder) transpose(src, dst schedule.View) step {
	return newLaunch(b.file("transpose", "FROM", b.element(src), "TO", b.element(dst)),
		[3]int{ceil(src.Cols, 32), min(ceil(src.Rows, 32), maxGrid), 1}, [3]int{32, 8, 1},
		uint64(src.Rows), uint64(src.Cols), uint64(b.at(src)), uint64(src.M.Cols), uint64(b.at(dst)), uint64(dst.M.Cols))
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
func sumBlocks(v schedule.View) int { return ceil(v.Cols, 32*sumWidth(v)) }

var sumsTogether = map[int]int{1: 7, 4: 4}

// sumParts is into how many parts the rows of op are cut: enough for all multiprocessors, of 128
// rows at least.
func sumParts(op schedule.SumRows, p driver.Properties) int {
	return max(1, min(sumsTogether[sumWidth(op.A)]*p.SMs/sumBlocks(op.A), op.A.Rows/128))
}

func (b *binder) sumRows(op schedule.SumRows, stream int) []step {
	if sumParts(op, b.properties) == 1 {
		return []step{b.sum(b.element(op.A), b.element(op.Out), sumWidth(op.A), op.A.Rows, op.A.Cols, 1, b.at(op.A), op.A.M.Cols, b.at(op.Out), op.Out.M.Cols, op.Accumulate, 0)}
	}
	scratch := b.base + driver.Pointer(b.layout.scratch[stream])
	return []step{b.partSums(op, scratch, 0), b.sumOfParts(op, scratch)}
}

// partSums leaves the sums of parts of the rows, and in a factor's tail, if there is one, the
// largest values; sumOfParts adds those sums up.
func (b *binder) partSums(op schedule.SumRows, to, tail driver.Pointer) step {
	return b.sum(b.element(op.A), driver.Single, sumWidth(op.A), op.A.Rows, op.A.Cols, sumParts(op, b.properties), b.at(op.A), op.A.M.Cols, to, op.A.Cols, false, tail)
}

func (b *binder) sumOfParts(op schedule.SumRows, from driver.Pointer) step {
	return b.sum(driver.Single, b.element(op.Out), sumWidth(op.A), sumParts(op, b.properties), op.A.Cols, 1, from, op.A.Cols, b.at(op.Out), op.Out.M.Cols, op.Accumulate, 0)
}

func (b *binder) sum(from, to driver.Element, width, rows, cols, parts int, a driver.Pointer, ldA int, out driver.Pointer, ldOut int, accumulate bool, tail driver.Pointer) step {
	largest := number(tail != 0)
	if tail == 0 {
		tail = out // unread
	}
	s := b.source(func() source {
		defines := []any{"V", width, "FROM", from, "TO", to, "LARGEST", largest, "RESIDENT", sumsTogether[width]}
		if largest == 0 {
			return file("sumrows", defines...)
		}
		return source{name: "sumrows", text: file("scales", defines...).text + file("sumrows").text}
	}, "sumrows ", width, " ", from, " ", to, " ", largest)
	l := newLaunch(s, [3]int{ceil(cols, 32*width), parts, 1}, [3]int{32, 8, 1},
		uint64(rows), uint64(cols), uint64(ceil(rows, parts)), uint64(a), uint64(ldA), uint64(out), uint64(ldOut), uint64(number(accumulate)), uint64(tail))
	l.early = b.properties.Capability >= 90
	return l
}

func (b *binder) gather(op schedule.Gather) step {
	x := 32
	for x < blockSize && x < op.Out.Cols {
		x *= 2
	}
	y := blockSize / x
	return newLaunch(b.file("gather", "INDEX", b.element(op.Index), "TABLE", b.element(op.Table), "TO", b.element(op.Out)),
		[3]int{ceil(op.Out.Cols, x), min(ceil(op.Out.Rows, y), maxGrid), 1}, [3]int{x, y, 1},
		uint64(op.Out.Rows), uint64(op.Out.Cols), uint64(op.Table.Rows), uint64(b.at(op.Index)), uint64(op.Index.M.Cols),
		uint64(b.at(op.Table)), uint64(op.Table.M.Cols), uint64(b.at(op.Out)), uint64(op.Out.M.Cols), b.trouble())
}

func (b *binder) scatter(op schedule.Scatter) step {
	return newLaunch(b.file("scatter", "INDEX", b.element(op.Index), "FROM", b.element(op.Src), "TABLE", b.element(op.Table)),
		[3]int{op.Table.Rows, ceil(op.Src.Cols, blockSize), 1}, [3]int{blockSize, 1, 1},
		uint64(op.Src.Rows), uint64(op.Src.Cols), uint64(op.Table.Rows), uint64(b.at(op.Index)), uint64(op.Index.M.Cols),
		uint64(b.at(op.Src)), uint64(op.Src.M.Cols), uint64(b.at(op.Table)), uint64(op.Table.M.Cols), b.trouble())
}

func (b *binder) softmaxLoss(op schedule.SoftmaxLoss) step {
	grad := uint64(0)
	if op.Grad {
		grad = 1
	}
	each := ceil(op.Logits.Cols, blockSize)
	if each > 16 { // of as many a thread has no registers
		each = 0
	}
	l := newLaunch(b.file("softmaxloss", "EACH", each, "LOGITS", b.element(op.Logits), "TARGET", b.element(op.Target),
		"LOSS", b.element(op.Loss), "PROB", b.element(op.Prob)),
		[3]int{op.Logits.Rows, 1, 1}, [3]int{blockSize, 1, 1},
		uint64(op.Logits.Rows), uint64(op.Logits.Cols), uint64(b.at(op.Logits)), uint64(op.Logits.M.Cols),
		uint64(b.at(op.Target)), uint64(op.Target.M.Cols), uint64(b.at(op.Loss)), uint64(op.Loss.M.Cols),
		uint64(b.at(op.Prob)), uint64(op.Prob.M.Cols), grad, uint64(math.Float32bits(op.Scale)), b.trouble())
	l.early = b.properties.Capability >= 90
	return l
}
