package cuda

import (
	"fmt"
	"strings"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Small operations of one kind that follow each other on a stream, and of which none waits for
// another, are one launch: before the first product, that is what a short pass mostly consists of.

// longestRun is how many operations a launch has at most.
const longestRun = 8

// A kind is one of which runs are one launch.
type kind int

const (
	others kind = iota
	packs       // of right factors, in one piece, for products whose left one is split on the way
	zeros       // of whole rows
)

// kind is that of an operation.
func (b *binder) kind(op schedule.Op) kind {
	switch op := op.(type) {
	case schedule.Pack:
		if b.layout.factors[op.Dst.M.ID] == nil && b.layout.kept[op.Dst.M.ID] == onTheWay && op.Src.Cols == op.Src.M.Cols {
			return packs
		}
	case schedule.Map:
		if v := op.Out; op.Op == cell.Zero && (v.Rows == 1 || v.Cols == v.M.Cols) && b.element(v) == Single && v.Bytes() < 1<<24 {
			return zeros
		}
	}
	return others
}

// run is the operations from the i-th on that are one launch with it; first: it begins one.
func (b *binder) run(s *schedule.Schedule, i int) (kind kind, run []schedule.Op, first bool) {
	if kind = b.kind(s.Nodes[i].Op); kind == others {
		return kind, nil, true
	}
	joins := func(j int) bool { // the operation ahead of the j-th
		return j > 0 && j < len(s.Nodes) && b.kind(s.Nodes[j].Op) == kind && b.kind(s.Nodes[j-1].Op) == kind &&
			s.Nodes[j].Stream == s.Nodes[j-1].Stream && len(s.Nodes[j].Wait) == 0
	}
	from := i
	for joins(from) {
		from--
	}
	if (i-from)%longestRun != 0 {
		return kind, nil, false
	}
	run = append(run, s.Nodes[i].Op)
	for j := i + 1; joins(j) && len(run) < longestRun; j++ {
		run = append(run, s.Nodes[j].Op)
	}
	return kind, run, true
}

// together are the launches of a run of two operations or more.
func (b *binder) together(kind kind, run []schedule.Op) []step {
	if kind == zeros {
		return []step{b.zeros(run)}
	}
	var find, make several
	width := 4
	for _, op := range run {
		op := op.(schedule.Pack)
		to := b.at(op.Dst)
		_, tail := wideBytes(op.Dst.Cols, op.Dst.Rows)
		terms, columns, term, column := op.Src.Rows, op.Src.Cols, op.Src.M.Cols, 1
		if op.Trans {
			terms, columns, term, column = op.Src.Cols, op.Src.Rows, 1, op.Src.M.Cols
		}
		find.add(op.Src.Rows*op.Src.Cols, b.at(op.Src), to+Pointer(tail))
		if op.Src.Rows*op.Src.Cols%4 != 0 || b.at(op.Src)%16 != 0 {
			width = 1
		}
		make.add(terms, columns, b.at(op.Src), term, column, to, to+Pointer(tail))
		make.grid[0], make.grid[1] = max(make.grid[0], ceil(ceil(terms, deepHalves), 2)), max(make.grid[1], ceil(columns, columnsHalves))
	}
	find.grid, find.block = [3]int{128, 1, len(run)}, [3]int{blockSize, 1, 1}
	make.grid[2], make.block = len(run), [3]int{blockSize, 1, 1}
	return []step{
		b.several("largest_several", "largest_flat", "int, const float*, float*", file("scales", "V", width).text, find),
		b.several("pieces_several", "right_pieces", "int, int, const float*, long long, long long, quad*, float*",
			b.scaled("pieces", "halves", "KERNEL", -1, "V", 1, "ALONG", 1, "GROUPS", 3).text, make),
	}
}

// zeros sets several matrices to zero.
func (b *binder) zeros(run []schedule.Op) step {
	var all several
	for _, op := range run {
		v := op.(schedule.Map).Out
		all.add(v.Rows*v.Cols, b.at(v))
		all.grid[0] = max(all.grid[0], ceil(v.Rows*v.Cols, 4*blockSize))
	}
	all.grid[1], all.grid[2], all.block = 1, len(run), [3]int{blockSize, 1, 1}
	return b.several("zero_several", "zero_part", "int, float*", `__device__ __forceinline__ void zero_part(int n, float* to) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = 0;
}
`, all)
}

// several are the arguments of calls of one function, each for a layer of the grid.
type several struct {
	calls       [][]uint64
	grid, block [3]int
}

func (s *several) add(args ...any) {
	var call []uint64
	for _, a := range args {
		switch a := a.(type) {
		case int:
			call = append(call, uint64(a))
		case Pointer:
			call = append(call, uint64(a))
		}
	}
	s.calls = append(s.calls, call)
}

// several is the launch of a kernel whose blocks each make one of the calls.
func (b *binder) several(name, function, types, text string, all several) step {
	source := b.source(func() source {
		var params, cases []string
		for i := range all.calls {
			var args []string
			for k, t := range strings.Split(types, ", ") {
				args = append(args, fmt.Sprintf("a%d_%d", i, k))
				params = append(params, t+" "+args[k])
			}
			cases = append(cases, fmt.Sprintf("  if (blockIdx.z == %d) %s(%s);\n", i, function, strings.Join(args, ", ")))
		}
		return source{name, text + fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(256) %s(%s) {\n  begin_next();\n  wait_previous();\n%s}\n",
			name, strings.Join(params, ", "), strings.Join(cases, ""))}
	}, name, " ", len(all.calls), " ", text)
	var args []uint64
	for _, c := range all.calls {
		args = append(args, c...)
	}
	l := newLaunch(source, all.grid, all.block, args...)
	l.early = b.properties.Capability >= 90
	return l
}
