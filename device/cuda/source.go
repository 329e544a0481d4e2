package cuda

import (
	"embed"
	"fmt"
	"strings"

	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A source is the text of one kernel, without what all kernels begin with.
type source struct{ name, text string }

//go:embed kernels
var kernels embed.FS

// file is a kernel of kernels/ with words defined; file panics where there is
// none.
func file(name string, defines ...any) source {
	text, err := kernels.ReadFile("kernels/" + name + ".cu")
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	for i := 0; i < len(defines); i += 2 {
		fmt.Fprintf(&b, "#define %v %v\n", defines[i], defines[i+1])
	}
	b.Write(text)
	return source{name: name, text: b.String()}
}

// Intrinsics and Common begin every kernel; another machine than a GPU has other
// intrinsics.
func Intrinsics() string { return file("intrinsics").text }
func Common() string     { return file("common").text }

// A group is an argument of a generated kernel: a matrix of one or more vectors
// side by side.
type group struct {
	name    string
	element driver.Element
	view    schedule.View // of all its vectors
	written bool
}

// params declares groups as parameters: a pointer and the distance of rows.
func params(groups []group) string {
	var b strings.Builder
	for _, g := range groups {
		qualifier := "const "
		if g.written {
			qualifier = ""
		}
		fmt.Fprintf(&b, ", %s%v* %s, int ld_%s", qualifier, g.element, g.name, g.name)
	}
	return b.String()
}

// spell is the text of one operation on a and b.
func spell(op cell.Op, a, b string) string {
	switch op {
	case cell.Zero:
		return "0"
	case cell.Copy:
		return a
	case cell.Neg:
		return "-" + a
	case cell.OneMinus:
		return "1 - " + a
	case cell.Add:
		return a + " + " + b
	case cell.Sub:
		return a + " - " + b
	case cell.Mul:
		return a + " * " + b
	case cell.Sigmoid:
		return "sigmoid(" + a + ")"
	case cell.Tanh:
		return "tanhf(" + a + ")"
	case cell.ReLU:
		return "relu(" + a + ")"
	case cell.SigmoidGrad:
		return fmt.Sprintf("%s * %s * (1 - %s)", a, b, b)
	case cell.TanhGrad:
		return fmt.Sprintf("%s * (1 - %s * %s)", a, b, b)
	case cell.ReLUGrad:
		return fmt.Sprintf("%s > 0 ? %s : 0", b, a)
	}
	panic(fmt.Sprintf("cuda: no text for %v", op))
}

// statements spell p on variables named as its vectors are, each declared where
// it is first written; declared are there already.
func statements(p cell.Program, indent string, declared []cell.Ref) string {
	known := map[cell.Ref]bool{}
	for _, r := range declared {
		known[r] = true
	}
	var b strings.Builder
	for _, in := range p {
		kind := ""
		if !known[in.Out] {
			kind, known[in.Out] = "float ", true
		}
		fmt.Fprintf(&b, "%s%s%v = %s;\n", indent, kind, in.Out, spell(in.Op, in.A.String(), in.B.String()))
	}
	return b.String()
}

// groupName is the argument that holds a vector: states have one each, other
// roles one for all.
func groupName(r cell.Ref) string {
	switch r.Kind {
	case cell.Prev, cell.Next, cell.DNext, cell.DPrev:
		return fmt.Sprintf("g_%v", r)
	}
	return fmt.Sprintf("g_%v", r.Kind)
}

// offset is where a vector begins within a row of its group.
func offset(r cell.Ref) int {
	switch r.Kind {
	case cell.Prev, cell.Next, cell.DNext, cell.DPrev:
		return 0
	}
	return r.Index
}

// pointwise is a kernel that runs p on V units at a time, element by element of
// rows × cols.
func pointwise(name string, p cell.Program, groups []group, width int) source {
	reads, writes := p.Vectors()
	at := func(r cell.Ref) string {
		g := groupName(r)
		return fmt.Sprintf("%s + (long long)row * ld_%s + (long long)%d * cols + col", g, g, offset(r))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#define V %d\n", width)
	fmt.Fprintf(&b, "extern \"C\" __global__ void __launch_bounds__(256) %s(int rows, int cols%s) {\n", name, params(groups))
	b.WriteString("  begin_next();\n  wait_previous();\n")
	b.WriteString("  for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y)\n")
	b.WriteString("    for (int col = (blockIdx.x * blockDim.x + threadIdx.x) * V; col < cols; col += gridDim.x * blockDim.x * V) {\n")
	for _, r := range reads {
		fmt.Fprintf(&b, "      float in_%v[V];\n      load<V>(in_%v, %s);\n", r, r, at(r))
	}
	for _, r := range writes {
		fmt.Fprintf(&b, "      float out_%v[V];\n", r)
	}
	b.WriteString("#pragma unroll\n      for (int i = 0; i < V; i++) {\n")
	for _, r := range reads {
		fmt.Fprintf(&b, "        float %v = in_%v[i];\n", r, r)
	}
	b.WriteString(statements(p, "        ", reads))
	for _, r := range writes {
		fmt.Fprintf(&b, "        out_%v[i] = %v;\n", r, r)
	}
	b.WriteString("      }\n")
	for _, r := range writes {
		fmt.Fprintf(&b, "      store<V>(%s, out_%v);\n", at(r), r)
	}
	b.WriteString("    }\n}\n")
	return source{name: name, text: b.String()}
}
