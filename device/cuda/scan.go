package cuda

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// The kernels of this file run a layer whose recurrent products, if any, are
// known ahead: a thread has a unit of a sequence, keeps its states in registers
// and walks through time, the loads of several steps under way at once.

// ahead is how many steps are loaded together.
const ahead = 8

// perStep are vectors of a step that a thread loads, constant those that it
// loads once.
func splitReads(reads []cell.Ref, state ...cell.Kind) (perStep, constant []cell.Ref) {
	for _, r := range reads {
		switch {
		case r.Kind.Broadcast():
			constant = append(constant, r)
		case !slices.Contains(state, r.Kind):
			perStep = append(perStep, r)
		}
	}
	return perStep, constant
}

func (b *binder) scan(op schedule.Scan) step {
	p := op.Step(0).Program()
	reads, writes := p.Vectors()
	groups := b.groups(p, func(r cell.Ref) schedule.View {
		if r.Kind == cell.R {
			return op.R
		}
		return whole(&op.Sequence, nil, r)
	})
	groups = slices.DeleteFunc(groups, func(g group) bool { return strings.HasPrefix(g.name, "g_prev") })
	perStep, constant := splitReads(reads, cell.Prev)
	var t strings.Builder
	fmt.Fprintf(&t, `enum { AHEAD = %d };
extern "C" __global__ void __launch_bounds__(128) scan(int steps, int batch, int hidden%s) {
  const long long id = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= (long long)batch * hidden) return;
  const int n = id / hidden, u = id %% hidden;
`, ahead, params(groups))
	t.WriteString(declare("  ", constant, func(cell.Ref) string { return "0" }))
	for s := range op.State {
		prev, next := cell.Ref{Kind: cell.Prev, Index: s}, cell.Ref{Kind: cell.Next, Index: s}
		fmt.Fprintf(&t, "  float %v = widen(%s);\n", prev, place(next, "n"))
	}
	for _, r := range perStep {
		fmt.Fprintf(&t, "  float in_%v[AHEAD];\n", r)
	}
	t.WriteString("  for (int first = 0; first < steps; first += AHEAD) {\n")
	t.WriteString("#pragma unroll\n    for (int i = 0; i < AHEAD; i++) {\n      const int t = min(first + i, steps - 1);\n")
	for _, r := range perStep {
		fmt.Fprintf(&t, "      in_%v[i] = widen(%s);\n", r, place(r, "t * batch + n"))
	}
	t.WriteString("    }\n#pragma unroll\n    for (int i = 0; i < AHEAD; i++) {\n      const int t = first + i;\n      if (t >= steps) break;\n")
	known := slices.Clone(reads)
	for _, r := range perStep {
		fmt.Fprintf(&t, "      float %v = in_%v[i];\n", r, r)
	}
	t.WriteString(statements(p, "      ", known))
	for _, r := range writes {
		row := "t * batch + n"
		if r.Kind == cell.Next {
			row = "(t + 1) * batch + n"
		}
		fmt.Fprintf(&t, "      narrow(%s, %v);\n", place(r, row), r)
	}
	for s := range op.State {
		fmt.Fprintf(&t, "      prev%d = next%d;\n", s, s)
	}
	t.WriteString("    }\n  }\n}\n")
	args := []uint64{uint64(op.Steps), uint64(op.Batch()), uint64(op.Hidden())}
	return newLaunch(&source{"scan", t.String()}, [3]int{ceil(op.Batch()*op.Hidden(), 128), 1, 1}, [3]int{128, 1, 1}, append(args, b.arguments(groups)...)...)
}

func (b *binder) scanBackward(op schedule.ScanBackward) step {
	p := op.Cell.Backward
	reads, writes := p.Vectors()
	groups := b.groups(p, func(r cell.Ref) schedule.View { return whole(&op.Sequence, &op.SequenceGrad, r) })
	groups = slices.DeleteFunc(groups, func(g group) bool { return strings.HasPrefix(g.name, "g_dprev") })
	perStep, constant := splitReads(reads, cell.DNext, cell.DPeep)
	var carried []cell.Ref // in registers over all steps
	for s := range op.Carry {
		r := cell.Ref{Kind: cell.DNext, Index: s}
		if slices.Contains(reads, r) || op.Cell.DirectPrev(s) {
			carried = append(carried, r)
			if !slices.ContainsFunc(groups, func(g group) bool { return g.name == groupName(r) }) {
				groups = append(groups, group{name: groupName(r), element: b.element(op.Carry[s]), view: op.Carry[s]})
			}
		}
	}
	for k := range op.Cell.Peeps {
		carried = append(carried, cell.Ref{Kind: cell.DPeep, Index: k})
	}
	for i := range groups {
		if strings.HasPrefix(groups[i].name, "g_dnext") {
			groups[i].written = true
		}
	}
	var t strings.Builder
	fmt.Fprintf(&t, `enum { AHEAD = %d };
extern "C" __global__ void __launch_bounds__(128) scanbackward(int steps, int batch, int hidden%s) {
  const long long id = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= (long long)batch * hidden) return;
  const int n = id / hidden, u = id %% hidden;
`, ahead, params(groups))
	t.WriteString(declare("  ", constant, func(cell.Ref) string { return "0" }))
	t.WriteString(declare("  ", carried, func(cell.Ref) string { return "n" }))
	for _, r := range perStep {
		fmt.Fprintf(&t, "  float in_%v[AHEAD];\n", r)
	}
	t.WriteString("  for (int last = steps - 1; last >= 0; last -= AHEAD) {\n")
	t.WriteString("#pragma unroll\n    for (int i = 0; i < AHEAD; i++) {\n      const int t = max(last - i, 0);\n")
	for _, r := range perStep {
		fmt.Fprintf(&t, "      in_%v[i] = widen(%s);\n", r, place(r, rowBack(r)))
	}
	t.WriteString("    }\n#pragma unroll\n    for (int i = 0; i < AHEAD; i++) {\n      const int t = last - i;\n      if (t < 0) break;\n")
	for _, r := range perStep {
		fmt.Fprintf(&t, "      float %v = in_%v[i];\n", r, r)
	}
	t.WriteString(statements(p, "      ", append(slices.Clone(reads), carried...)))
	for _, r := range writes {
		if r.Kind == cell.DX || r.Kind == cell.DR {
			fmt.Fprintf(&t, "      narrow(%s, %v);\n", place(r, rowBack(r)), r)
		}
	}
	for s := range op.Carry {
		if op.Cell.DirectPrev(s) {
			fmt.Fprintf(&t, "      dnext%d = dprev%d;\n", s, s)
		}
	}
	t.WriteString("    }\n  }\n")
	for _, r := range carried {
		fmt.Fprintf(&t, "  narrow(%s, %v);\n", place(r, "n"), r)
	}
	t.WriteString("}\n")
	args := []uint64{uint64(op.Steps), uint64(op.Batch()), uint64(op.Hidden())}
	return newLaunch(&source{"scanbackward", t.String()}, [3]int{ceil(op.Batch()*op.Hidden(), 128), 1, 1}, [3]int{128, 1, 1}, append(args, b.arguments(groups)...)...)
}
