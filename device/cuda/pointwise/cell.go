package pointwise

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Map runs one element-wise operation.
func Map(t *launch.Target, op schedule.Map) launch.Command {
	in := cell.Instr{Op: op.Op, Out: cell.Ref{Kind: cell.Next}, A: cell.Ref{Kind: cell.X}, B: cell.Ref{Kind: cell.R}, Value: op.Value}
	name := "map_" + op.Op.String()
	if op.Op == cell.Const {
		name = fmt.Sprintf("map_const_%08x", math.Float32bits(op.Value))
	}
	return Cell(t, name, cell.Program{in}, func(r cell.Ref) schedule.View {
		switch r {
		case in.Out:
			return op.Out
		case in.A:
			return op.A
		}
		return op.B
	}, op.Out)
}

// MapChain runs a chain of element-wise operations in one launch.
func MapChain(t *launch.Target, op schedule.MapChain) launch.Command {
	p, vector := op.Program()
	var text []byte
	for _, in := range p {
		text = append(text, byte(in.Op))
		for _, r := range []cell.Ref{in.Out, in.A, in.B} {
			text = append(text, byte(r.Kind), byte(r.Index))
		}
		if in.Op == cell.Const {
			text = fmt.Append(text, in.Value)
		}
	}
	sum := fnv.New64a()
	sum.Write(text)
	return Cell(t, fmt.Sprintf("maps_%016x", sum.Sum64()), p, vector, op.Steps[0].Out)
}

// Cell runs program p on every element of matrices of state's shape. vector finds the view of a
// vector of p.
func Cell(t *launch.Target, name string, p cell.Program, vector func(cell.Ref) schedule.View, state schedule.View) launch.Command {
	return keepingCell(t, name, p, vector, state, nil)
}

// keepingCell is Cell with resets: vectors of a keep read as 0 in rows where its column is 0.
func keepingCell(t *launch.Target, name string, p cell.Program, vector func(cell.Ref) schedule.View, state schedule.View, keeps []keep) launch.Command {
	rows, cols := state.Rows, state.Cols
	groups := t.Groups(p, vector)
	flat := !slices.ContainsFunc(groups, func(g codegen.Group) bool {
		return g.View.Rows != rows || g.View.M.Cols != cols
	})
	if flat && len(keeps) == 0 && rows*cols <= maxFlat {
		rows, cols = 1, rows*cols
	}
	width := 4
	for _, g := range groups {
		if cols%4 != 0 || rows > 1 && g.View.Rows > 1 && g.View.M.Cols%4 != 0 || int(t.At(g.View))%(4*g.Element.Bytes()) != 0 {
			width = 1
		}
	}
	x := 1
	for x < launch.BlockSize && x*width < cols {
		x *= 2
	}
	y := launch.BlockSize / x
	groups = append(groups, keepGroups(t, keeps)...)
	args := make([]uint64, 0, 2+2*len(groups))
	args = append(args, uint64(rows), uint64(cols))
	for _, g := range groups {
		args = append(args, uint64(t.At(g.View)), t.Stride(g.View))
	}
	words := []any{"cell ", name, " ", width}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	words = append(words, keepWords(keeps)...)
	s := launch.New(t.Source(func() codegen.Source { return kernel(codegen.Identifier(name), p, groups, width, keeps) }, words...),
		[3]int{ints.CeilDiv(cols, x*width), min(ints.CeilDiv(rows, y), launch.MaxGrid), 1}, [3]int{x, y, 1}, args...)
	s.Early = t.Properties.Capability >= 90
	return s
}

// CellName names a cell's kernel.
func CellName(op schedule.Cell) string {
	if op.Train {
		return op.Cell.Name + "_train"
	}
	return op.Cell.Name
}

// maxFlat is the most elements that a kernel treats as one row: half of an int's range, since an
// index overruns the end by up to one grid's stride.
const maxFlat = 1 << 30

// kernel returns the text of a kernel that runs p on rows × cols elements, V units at a time.
func kernel(name string, p cell.Program, groups []codegen.Group, width int, keeps []keep) codegen.Source {
	reads, writes := p.Vectors()
	at := func(r cell.Ref) string {
		g := codegen.GroupName(r)
		return fmt.Sprintf("%s + (long long)row * ld_%s + (long long)%d * cols + col", g, g, codegen.Offset(r))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#define V %d\n", width)
	fmt.Fprintf(&b, "extern \"C\" __global__ void __launch_bounds__(256) %s(int rows, int cols%s) {\n", name, codegen.Params(groups))
	b.WriteString("  begin_next();\n  wait_previous();\n")
	b.WriteString("  for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y)\n")
	b.WriteString("    for (int col = (blockIdx.x * blockDim.x + threadIdx.x) * V; col < cols; col += gridDim.x * blockDim.x * V) {\n")
	for _, r := range reads {
		fmt.Fprintf(&b, "      float in_%v[V];\n      load<V>(in_%v, %s);\n", r, r, at(r))
	}
	for _, r := range writes {
		fmt.Fprintf(&b, "      float out_%v[V];\n", r)
	}
	for _, k := range keeps {
		fmt.Fprintf(&b, "      const bool %s = *(%s + (long long)row * ld_%s) != 0;\n", k.name, k.group(), k.group())
	}
	b.WriteString("#pragma unroll\n      for (int i = 0; i < V; i++) {\n")
	for _, r := range reads {
		fmt.Fprintf(&b, "        float %v = %s;\n", r, keptText(keeps, r, fmt.Sprintf("in_%v[i]", r)))
	}
	b.WriteString(codegen.Statements(p, "        ", reads))
	for _, r := range writes {
		fmt.Fprintf(&b, "        out_%v[i] = %v;\n", r, r)
	}
	b.WriteString("      }\n")
	for _, r := range writes {
		fmt.Fprintf(&b, "      store<V>(%s, out_%v);\n", at(r), r)
	}
	b.WriteString("    }\n}\n")
	return codegen.Source{Name: name, Text: b.String()}
}
