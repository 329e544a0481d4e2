package cuda

import (
	"fmt"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/rnn/cell"
)

// pointwise is a kernel that runs p on V units at a time, element by element of
// rows × cols.
func pointwise(name string, p cell.Program, groups []codegen.Group, width int) codegen.Source {
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
	b.WriteString("#pragma unroll\n      for (int i = 0; i < V; i++) {\n")
	for _, r := range reads {
		fmt.Fprintf(&b, "        float %v = in_%v[i];\n", r, r)
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
