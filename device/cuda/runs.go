package cuda

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Small operations of one kind that follow each other on a stream, and of which none waits for
// another, are one launch: before the first product, that is what a short pass mostly consists of.

// longestRun is how many operations a launch has at most.
const longestRun = 16

// A kind is one of which runs are one launch.
type kind int

const (
	others kind = iota
	packs       // of right factors, in one piece, for products whose left one is split on the way
	zeros       // of whole rows
	copies      // of whole rows
)

// kind is that of an operation.
func (b *binder) kind(op schedule.Op) kind {
	switch op := op.(type) {
	case schedule.Pack:
		if b.layout.factors[op.Dst.M.ID] == nil && b.layout.kept[op.Dst.M.ID] == onTheWay && op.Src.Cols == op.Src.M.Cols && op.Src.Bytes() < 1<<32 {
			return packs
		}
	case schedule.Map:
		switch {
		case op.Op == cell.Zero && b.piece(op.Out):
			return zeros
		case op.Op == cell.Copy && b.piece(op.Out) && b.piece(op.A) && op.Out.Rows == op.A.Rows && op.Out.Cols == op.A.Cols && op.Out.M != op.A.M:
			return copies
		}
	}
	return others
}

// piece reports whether v is one piece of memory, not a large one.
func (b *binder) piece(v schedule.View) bool {
	return (v.Rows == 1 || v.Cols == v.M.Cols) && b.element(v) == driver.Single && v.Bytes() < 1<<24
}

// A run is operations that are one launch, or the only one of a node; later ones of a run are
// of none.
type run struct {
	kind kind
	ops  []schedule.Op
}

// runsOf are those of s, by the node that each begins with.
func (b *binder) runsOf(s *schedule.Schedule) map[int]run {
	runs := map[int]run{}
	for i := 0; i < len(s.Nodes); {
		first := s.Nodes[i]
		r := run{kind: b.kind(first.Op), ops: []schedule.Op{first.Op}}
		for j := i + 1; r.kind != others && j < len(s.Nodes) && len(r.ops) < longestRun; j++ {
			n := s.Nodes[j]
			if b.kind(n.Op) != r.kind || n.Stream != first.Stream || len(n.Wait) > 0 || r.meets(n.Op) {
				break
			}
			r.ops = append(r.ops, n.Op)
		}
		runs[i] = r
		i += len(r.ops)
	}
	return runs
}

// meets reports whether op reads what one of a run's operations writes, or the other way round.
func (r run) meets(op schedule.Op) bool {
	return slices.ContainsFunc(r.ops, func(o schedule.Op) bool { return overlap(o.Reads(), op.Writes()) || overlap(o.Writes(), op.Reads()) })
}

// together are the launches of a run of two operations or more.
func (b *binder) together(r run) []step {
	if r.kind != packs {
		return []step{b.fills(r.ops)}
	}
	var look, split layers
	width := 4
	looked := map[schedule.View]driver.Pointer{} // where the largest values are of what is packed
	for _, op := range r.ops {
		op := op.(schedule.Pack)
		to := b.at(op.Dst)
		_, tail := wideBytes(op.Dst.Cols, op.Dst.Rows)
		if looked[op.Src] == 0 {
			looked[op.Src] = to + driver.Pointer(tail)
			look.add("largest_flat", op.Src.Rows*op.Src.Cols, b.at(op.Src), to+driver.Pointer(tail))
		}
		if op.Src.Rows*op.Src.Cols%4 != 0 || b.at(op.Src)%16 != 0 {
			width = 1
		}
		b.addPieces(&split, op.Src, op.Trans, to, looked[op.Src], to+driver.Pointer(tail))
	}
	look.grid, look.block = [3]int{128, 1, len(look.list)}, [3]int{blockSize, 1, 1}
	return []step{
		b.several("largest", "int, const float*, float*", file("scales", "V", width).text, look),
		b.rightPieces(split, true),
	}
}

// fills sets several matrices to zero, or to what others are.
func (b *binder) fills(ops []schedule.Op) step {
	var all layers
	name, body := "zero", "0"
	for _, op := range ops {
		op := op.(schedule.Map)
		n, from := op.Out.Rows*op.Out.Cols, b.at(op.Out) // unread
		if op.Op == cell.Copy {
			name, body, from = "copy", "from[i]", b.at(op.A)
		}
		all.add("fill", n, from, b.at(op.Out))
		all.grid[0] = max(all.grid[0], ceil(n, 4*blockSize))
	}
	all.grid[1], all.grid[2], all.block = 1, len(ops), [3]int{blockSize, 1, 1}
	return b.several(name, "int, const float*, float*", fmt.Sprintf(`__device__ __forceinline__ void fill(int n, const float* from, float* to) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = %s;
}
`, body), all)
}

// layers of a grid are calls of functions of one kind.
type layers struct {
	list        []call
	grid, block [3]int
}

// A call is one, with its arguments.
type call struct {
	function string
	args     []uint64
}

func (l *layers) add(function string, args ...any) {
	c := call{function: function}
	for _, a := range args {
		switch a := a.(type) {
		case int:
			c.args = append(c.args, uint64(a))
		case driver.Pointer:
			c.args = append(c.args, uint64(a))
		}
	}
	l.list = append(l.list, c)
}

// several is the launch of a kernel whose blocks each make one of the calls, of functions that take the same
// types; text is that of the functions.
func (b *binder) several(name, types, text string, all layers) step {
	if len(all.list) > 1 {
		name += "_several"
	}
	words := []any{name, " ", text}
	for _, c := range all.list {
		words = append(words, " ", c.function)
	}
	source := b.source(func() source {
		var params, cases []string
		for i, c := range all.list {
			var args []string
			for k, t := range strings.Split(types, ", ") {
				args = append(args, fmt.Sprintf("a%d_%d", i, k))
				params = append(params, t+" "+args[k])
			}
			cases = append(cases, fmt.Sprintf("  if (blockIdx.z == %d) %s(%s);\n", i, c.function, strings.Join(args, ", ")))
		}
		return source{name: name, text: text + fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(256) %s(%s) {\n  begin_next();\n  wait_previous();\n%s}\n",
			name, strings.Join(params, ", "), strings.Join(cases, ""))}
	}, words...)
	var args []uint64
	for _, c := range all.list {
		args = append(args, c.args...)
	}
	l := newLaunch(source, all.grid, all.block, args...)
	l.early = b.properties.Capability >= 90
	return l
}
