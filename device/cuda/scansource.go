package cuda

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
)

// source is the kernel's text.
func (s *scan) source(name string) source {
	var b strings.Builder
	fmt.Fprintf(&b, "enum { V = %d, K = %d, N = %d };\n%s", s.width, s.chunk, s.values(), file("scan").text)
	fmt.Fprintf(&b, `
extern "C" __global__ void __launch_bounds__(%d, %d)
%s(int steps, int batch, int hidden, int lanes, int chains, int tiles, int group, word* tickets, word* sums, word* starts, unsigned* trouble%s) {
  DYNAMIC_SHARED(memory);
  const grid g = {steps, batch, hidden, lanes, chains, tiles, group, tickets, sums, starts, trouble};
  linear* const rows = (linear*)(memory + blockDim.x * %d);
  const int part = blockDim.x / max(lanes, 32) * N * lanes;
  float* const begin = (float*)(rows + 2 * part);
  word* const drawn = (word*)(begin + 2 * N * lanes);
`, scanThreads, scanResident, name, params(s.groups), s.slot())
	b.WriteString("  auto fetch = [&](const tile& t) {\n    if (t.steps == 0) return;\n")
	at := 0
	for _, l := range s.loads {
		fmt.Fprintf(&b, "    {\n      const %v* from = %s;\n", s.element(l.group), s.address(l.group, l.column, l.shift))
		fmt.Fprintf(&b, "      unsigned char* to = memory + %d * blockDim.x + threadIdx.x * %d;\n", at, s.bytes(l))
		fmt.Fprintf(&b, "#pragma unroll\n      for (int i = 0; i < K + %d; i++)\n", l.more)
		fmt.Fprintf(&b, "        if (i < t.steps + %d) copy_async<%d>(to + i * blockDim.x * %d, from + i * %s);\n    }\n", l.more, s.bytes(l), s.bytes(l), s.stride(l.group))
		at += (s.chunk + l.more) * s.bytes(l)
	}
	b.WriteString(`  };
  if (threadIdx.x == 0) drawn[1] = g.draw();
  __syncthreads();
  const unsigned run = (drawn[1] >> 32) + 1;
  tile t = g.at((unsigned)drawn[1]);
  bool more = (unsigned)drawn[1] < g.all();
  if (more) fetch(t);
  for (int turn = 0; more; turn ^= 1) {
    float* const start = begin + turn * N * lanes;
    if (threadIdx.x == 0) drawn[turn] = g.draw();
`)
	s.constants(&b)
	s.initial(&b)
	for _, v := range s.keep {
		fmt.Fprintf(&b, "    float keep_%s[K][V];\n", s.flow.name(v))
	}
	b.WriteString("    linear own[N], earlier[N];\n    identity(own);\n    wait_async();\n")
	s.early(&b)
	b.WriteString(`    before(own, earlier, rows, lanes);
    const tile next = g.at((unsigned)drawn[turn]);
    more = (unsigned)drawn[turn] < g.all();
    if (more) fetch(next);
    float state[N];
    look(g, t, own, earlier, state, rows + part, start, run);
`)
	s.steps(&b)
	b.WriteString("    t = next;\n  }\n}\n")
	return source{name, b.String()}
}

// address is where the rows of a thread's steps begin in a group of vectors.
func (s *scan) address(group string, column, shift int) string {
	row := fmt.Sprintf("(t.first + %d)", shift)
	if s.grad != nil {
		row = fmt.Sprintf("(steps - 1 - t.first + %d)", shift)
	}
	return fmt.Sprintf("%s + ((long long)%s * batch + t.n) * ld_%s + (long long)%d * hidden + t.u", group, row, group, column)
}

// stride is the distance from a step to the next in the order of the pass.
func (s *scan) stride(group string) string {
	if s.grad != nil {
		return fmt.Sprintf("-((long long)batch * ld_%s)", group)
	}
	return fmt.Sprintf("((long long)batch * ld_%s)", group)
}

// constants reads what is the same for all steps of a thread.
func (s *scan) constants(b *strings.Builder) {
	for _, v := range s.flow.values {
		if !v.leaf || !s.constant(v.ref) {
			continue
		}
		row := "0"
		if !v.ref.Kind.Broadcast() {
			row = "t.n"
		}
		g := argument(v.ref)
		fmt.Fprintf(b, "    float const_%v[V];\n    if (t.steps) load<V>(const_%v, %s + (long long)%s * ld_%s + (long long)%d * hidden + t.u);\n", v.ref, v.ref, g, row, g, offset(v.ref))
	}
}

// initial has the first row of lanes of the first group read the states at the
// start of time.
func (s *scan) initial(b *strings.Builder) {
	b.WriteString("    if (threadIdx.x < lanes && t.time < group && t.steps) {\n      float first[V];\n")
	for k, i := range s.cell.Recurrence.Carried {
		g := argument(cell.Ref{Kind: s.before(), Index: i})
		fmt.Fprintf(b, "      load<V>(first, %s + (long long)t.n * ld_%s + t.u);\n", g, g)
		fmt.Fprintf(b, "#pragma unroll\n      for (int v = 0; v < V; v++) start[(%d * V + v) * lanes + threadIdx.x] = first[v];\n", k)
	}
	b.WriteString("    }\n")
}

// each opens a loop over a thread's steps and values, with what is constant and
// what inner says; close ends it with the stores of the given vectors.
func (s *scan) each(b *strings.Builder, outputs []cell.Ref, head func(), body string) {
	b.WriteString("#pragma unroll\n    for (int i = 0; i < K; i++)\n      if (i < t.steps) {\n")
	for _, r := range outputs {
		fmt.Fprintf(b, "        float out_%v[V];\n", r)
	}
	head()
	b.WriteString("#pragma unroll\n        for (int v = 0; v < V; v++) {\n")
	for _, v := range s.flow.values {
		if v.leaf && s.constant(v.ref) {
			fmt.Fprintf(b, "          const float %v = const_%v[v];\n", v.ref, v.ref)
		}
	}
	b.WriteString(body)
	for _, r := range outputs {
		fmt.Fprintf(b, "          out_%v[v] = %s;\n", r, s.flow.name(s.results[r]))
	}
	b.WriteString("        }\n")
	for _, r := range outputs {
		shift := 0
		if r.Kind == cell.Next {
			shift = 1
		}
		fmt.Fprintf(b, "        store<V>(%s + i * %s, out_%v);\n", s.address(argument(r), offset(r), shift), s.stride(argument(r)), r)
	}
	b.WriteString("      }\n")
}

const indent = "          "

// early computes from what was loaded all that no state is needed for, and
// composes the steps.
func (s *scan) early(b *strings.Builder) {
	isLate := func(v int) bool { return s.late[v] }
	targets := append(slices.Clone(s.keep), s.targets(false)...)
	var composed []int
	for _, k := range s.cell.Recurrence.Carried {
		composed = append(composed, s.compose[cell.Ref{Kind: s.before(), Index: k}], s.compose[cell.Ref{Kind: cell.Factor, Index: k}])
	}
	needed := s.flow.behind(composed, func(int) bool { return false })
	for v, is := range needed {
		if is && !s.late[v] {
			targets = append(targets, v)
		}
	}
	var body strings.Builder
	for _, l := range s.loads {
		for _, r := range l.refs {
			fmt.Fprintf(&body, "%sconst float %v = in_%v[v];\n", indent, r, r)
		}
	}
	body.WriteString(s.flow.text(indent, targets, isLate))
	for _, v := range s.keep {
		fmt.Fprintf(&body, "%skeep_%s[i][v] = %s;\n", indent, s.flow.name(v), s.flow.name(v))
	}
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&body, "%sconst float %v%d = own[%d * V + v].add, %v%d = own[%d * V + v].factor;\n", indent, s.before(), i, k, cell.Factor, i, k)
	}
	body.WriteString(s.flow.text(indent, composed, func(v int) bool { return !s.late[v] }))
	for k := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&body, "%sown[%d * V + v].add = %s, own[%d * V + v].factor = %s;\n", indent, k, s.flow.name(composed[2*k]), k, s.flow.name(composed[2*k+1]))
	}
	s.each(b, s.outputs(false), func() {
		at := 0
		for _, l := range s.loads {
			for _, r := range l.refs {
				ahead := 0
				if l.more > 0 && r.Kind == cell.Prev {
					ahead = 1
				}
				fmt.Fprintf(b, "        float in_%v[V];\n        load<V>(in_%v, (const %v*)(memory + %d * blockDim.x + threadIdx.x * %d + (i + %d) * blockDim.x * %d));\n",
					r, r, s.element(l.group), at, s.bytes(l), ahead, s.bytes(l))
			}
			at += (s.chunk + l.more) * s.bytes(l)
		}
	}, body.String())
}

// steps does the steps from the state that was found, and leaves the last one.
func (s *scan) steps(b *strings.Builder) {
	var body strings.Builder
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&body, "%sconst float %v%d = state[%d * V + v];\n", indent, s.before(), i, k)
	}
	for _, v := range s.keep {
		fmt.Fprintf(&body, "%sconst float %s = keep_%s[i][v];\n", indent, s.flow.name(v), s.flow.name(v))
	}
	body.WriteString(s.flow.text(indent, s.targets(true), func(v int) bool { return slices.Contains(s.keep, v) || s.flow.values[v].leaf }))
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&body, "%sstate[%d * V + v] = %s;\n", indent, k, s.flow.name(s.results[cell.Ref{Kind: s.after(), Index: i}]))
	}
	s.each(b, s.outputs(true), func() {}, body.String())
	if s.grad == nil {
		return
	}
	b.WriteString("    if (t.steps && t.first + t.steps == steps) {\n      float final[V];\n")
	for k, i := range s.cell.Recurrence.Carried {
		g := argument(cell.Ref{Kind: cell.DNext, Index: i})
		fmt.Fprintf(b, "#pragma unroll\n      for (int v = 0; v < V; v++) final[v] = state[%d * V + v];\n", k)
		fmt.Fprintf(b, "      store<V>(%s + (long long)t.n * ld_%s + t.u, final);\n", g, g)
	}
	b.WriteString("    }\n")
}
