package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
)

// A slot is where a block has a vector of its threads' steps in shared memory.
type slot struct {
	at      int // bytes per thread before it
	element Element
	ahead   int // steps
}

// slots are where the loads go and where the kept values are, in the place of
// loads that are not needed any more or behind all, and the bytes per thread.
func (s *scan) slots() (loads map[cell.Ref]slot, keep map[int]slot, bytes int) {
	loads, keep = map[cell.Ref]slot{}, map[int]slot{}
	var free []slot
	for _, l := range s.loads {
		at := slot{at: bytes, element: s.element(l.group)}
		again := false
		for _, r := range l.refs {
			loads[r] = at
			if l.more > 0 && r.Kind == cell.Prev {
				loads[r] = slot{at.at, at.element, 1}
			}
			if v := s.flow.known[value{leaf: true, ref: r}]; slices.Contains(s.keep, v) {
				keep[v], again = loads[r], true
			}
		}
		if !again && l.more == 0 && at.element == Single {
			free = append(free, at)
		}
		bytes += (s.chunk + l.more) * s.bytes(l)
	}
	for _, v := range s.keep {
		if _, ok := keep[v]; ok {
			continue
		}
		if len(free) == 0 {
			free = append(free, slot{at: bytes})
			bytes += s.chunk * s.width * Single.Bytes()
		}
		keep[v], free = free[0], free[1:]
	}
	return loads, keep, bytes
}

// place is step i's vector of a slot in the buffer at from.
func (s *scan) place(p slot, from string) string {
	size := s.width * p.element.Bytes()
	threads := "blockDim.x"
	if s.members > 0 {
		threads = "THREADS"
	}
	return fmt.Sprintf("(%v*)(%s + %d * %s + threadIdx.x * %d + (i + %d) * %s * %d)", p.element, from, p.at, threads, size, p.ahead, threads, size)
}

// source is the kernel's text.
func (s *scan) source(name string) source {
	if s.members > 0 {
		return s.teamSource(name)
	}
	_, _, bytes := s.slots()
	var b strings.Builder
	fmt.Fprintf(&b, "enum { V = %d, K = %d, N = %d };\n%s%s", s.width, s.chunk, s.values(), file("linear").text, file("scan").text)
	fmt.Fprintf(&b, `
extern "C" __global__ void __launch_bounds__(%d, %d)
%s(int steps, int batch, int hidden, int bits, int chains, int tiles, int groupbits, word* tickets, word* words, word* starts, unsigned* trouble%s) {
  DYNAMIC_SHARED(memory);
  const grid g = {steps, batch, hidden, bits, chains, tiles, groupbits, tickets, words, starts, trouble};
  const int buffer = blockDim.x * %d, part = g.rows() << bits;
  several* const rows = (several*)(memory + BUFFERS * buffer);
  word* const drawn = (word*)(rows + 2 * part);
  float* const begin = (float*)(drawn + 2);
  auto fetch = [&](const tile& t, unsigned char* to) {
    if (t.steps > 0) {
`, scanThreads, max(1, min(scanResident/scanThreads, maxShared/(scanBuffers*scanThreads*bytes))), name, params(s.groups), bytes)
	s.copies(&b)
	b.WriteString(`    }
    end_async();
  };
  if (threadIdx.x == 0) *drawn = g.draw();
  __syncthreads();
  const unsigned run = (*drawn >> 32) + 1;
  tile now = g.at((unsigned)*drawn), next;
  fetch(now, memory);
  __syncthreads();
  if (threadIdx.x == 0 && now.there) *drawn = g.draw();
  __syncthreads();
  if (now.there) next = g.at((unsigned)*drawn);
  fetch(next, memory + buffer);
  __syncthreads();
  for (int turn = 0; now.there; turn ^= 1) {
    unsigned char* const at = memory + turn * buffer;
    float* const start = begin + (turn * N << bits);
    const tile& t = now;
    if (threadIdx.x == 0 && next.there) *drawn = g.draw();
    several row = identity();
    wait_async<1>();
    {
`)
	s.initial(&b)
	s.early(&b)
	b.WriteString(`    }
    within(row, rows, g);
    __syncthreads();
    const several earlier = fold(rows, g.row(), g);
    tile later;
    if (next.there) later = g.at((unsigned)*drawn);
    tell(g, t, row, earlier, run);
    {
      float state[N];
      look(g, t, row, earlier, state, rows + part, start, run);
`)
	s.steps(&b)
	b.WriteString(`    }
    fetch(later, at);
    now = next, next = later;
  }
}
`)
	return source{name, b.String()}
}

// copies begin to copy to shared memory what a thread has of the tile t.
func (s *scan) copies(b *strings.Builder) {
	loads, _, _ := s.slots()
	for _, l := range s.loads {
		at := loads[l.refs[0]]
		at.ahead = 0
		fmt.Fprintf(b, "      const %v* from_%s%d = %s;\n", at.element, l.group, l.column, s.address("t", l.group, l.column, l.shift))
		fmt.Fprintf(b, "#pragma unroll\n      for (int i = 0; i < K + %d; i++)\n        if (i < t.steps + %d) copy_async<%d>(%s, from_%s%d + i * %s);\n",
			l.more, l.more, s.bytes(l), s.place(at, "to"), l.group, l.column, s.stride(l.group))
	}
}

// address is where the rows of a thread's steps begin in a group of vectors.
func (s *scan) address(tile, group string, column, shift int) string {
	row := fmt.Sprintf("(%s.first + %d)", tile, shift)
	if s.backward {
		row = fmt.Sprintf("(steps - 1 - %s.first + %d)", tile, shift)
	}
	return fmt.Sprintf("%s + ((long long)%s * batch + %s.n) * ld_%s + (long long)%d * hidden + %s.u", group, row, tile, group, column, tile)
}

// stride is the distance from a step to the next in the order of the pass.
func (s *scan) stride(group string) string {
	if s.backward {
		return fmt.Sprintf("-((long long)batch * ld_%s)", group)
	}
	return fmt.Sprintf("((long long)batch * ld_%s)", group)
}

// initial has the first row of lanes of the first group read the states at the
// start of time.
func (s *scan) initial(b *strings.Builder) {
	b.WriteString("      if (g.y() == 0 && t.steps > 0 && t.time >> groupbits == 0) {\n        float first[V];\n")
	s.first(b, "start[(%d * V + v << bits) + g.x()]")
	b.WriteString("      }\n")
}

// first reads the states at the start of time, value v of state k to where.
func (s *scan) first(b *strings.Builder, where string) {
	for k, i := range s.cell.Recurrence.Carried {
		g := argument(cell.Ref{Kind: s.before(), Index: i})
		fmt.Fprintf(b, "        load<V>(first, %s + (long long)t.n * ld_%s + t.u);\n", g, g)
		fmt.Fprintf(b, "#pragma unroll\n        for (int v = 0; v < V; v++) %s = first[v];\n", fmt.Sprintf(where, k))
	}
}

// A body is what is done for each step of a thread and each of its values.
type body struct {
	read    map[string]string // vectors of V, by name, and where they are
	text    string            // for one value
	write   map[string]string // as read
	outputs []cell.Ref
	targets []int // values that the text names
	there   func(int) bool
}

// loop spells a body for all steps of t.
func (s *scan) loop(b *strings.Builder, d body) {
	needed := s.flow.behind(d.targets, d.there)
	var constants []string
	for i, v := range s.flow.values {
		if !needed[i] || !v.leaf || !s.constant(v.ref) {
			continue
		}
		row := "0"
		if !v.ref.Kind.Broadcast() {
			row = "t.n"
		}
		g := argument(v.ref)
		constants = append(constants, v.ref.String())
		fmt.Fprintf(b, "      float const_%v[V];\n      if (t.steps > 0) load<V>(const_%v, %s + (long long)%s * ld_%s + (long long)%d * hidden + t.u);\n", v.ref, v.ref, g, row, g, offset(v.ref))
	}
	for _, r := range d.outputs {
		shift := 0
		if r.Kind == cell.Next {
			shift = 1
		}
		fmt.Fprintf(b, "      %v* to_%v = %s;\n", s.element(argument(r)), r, s.address("t", argument(r), offset(r), shift))
	}
	b.WriteString("      auto step = [&](int i) {\n")
	for _, name := range slices.Sorted(maps.Keys(d.read)) {
		fmt.Fprintf(b, "          float in_%s[V];\n          load<V>(in_%s, %s);\n", name, name, d.read[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.write)) {
		fmt.Fprintf(b, "          float keep_%s[V];\n", name)
	}
	for _, r := range d.outputs {
		fmt.Fprintf(b, "          float out_%v[V];\n", r)
	}
	b.WriteString("#pragma unroll\n          for (int v = 0; v < V; v++) {\n")
	for _, name := range constants {
		fmt.Fprintf(b, "%sconst float %s = const_%s[v];\n", indent, name, name)
	}
	for _, name := range slices.Sorted(maps.Keys(d.read)) {
		fmt.Fprintf(b, "%sconst float %s = in_%s[v];\n", indent, name, name)
	}
	b.WriteString(d.text)
	for _, name := range slices.Sorted(maps.Keys(d.write)) {
		fmt.Fprintf(b, "%skeep_%s[v] = %s;\n", indent, name, name)
	}
	for _, r := range d.outputs {
		fmt.Fprintf(b, "%sout_%v[v] = %s;\n", indent, r, s.flow.name(s.results[r]))
	}
	b.WriteString("          }\n")
	for _, name := range slices.Sorted(maps.Keys(d.write)) {
		fmt.Fprintf(b, "          store<V>(%s, keep_%s);\n", d.write[name], name)
	}
	for _, r := range d.outputs {
		fmt.Fprintf(b, "          store<V>(to_%v, out_%v);\n          to_%v += %s;\n", r, r, r, s.stride(argument(r)))
	}
	b.WriteString("      };\n      if (t.steps == K)\n#pragma unroll\n        for (int i = 0; i < K; i++) step(i);\n      else\n#pragma unroll 1\n        for (int i = 0; i < t.steps; i++) step(i);\n")
}

const indent = "            "

// early computes from what was loaded all that no state is needed for, and
// composes the steps.
func (s *scan) early(b *strings.Builder) {
	loads, keep, _ := s.slots()
	d := body{read: map[string]string{}, write: map[string]string{}, outputs: s.outputs(false), there: func(v int) bool { return s.late[v] }}
	for r, at := range loads {
		d.read[r.String()] = s.place(at, "at")
	}
	for v, at := range keep {
		if !s.flow.values[v].leaf {
			d.write[s.flow.name(v)] = s.place(at, "at")
		}
	}
	d.targets = append(slices.Clone(s.keep), s.targets(false)...)
	var composed []int
	for _, k := range s.cell.Recurrence.Carried {
		composed = append(composed, s.compose[cell.Ref{Kind: s.before(), Index: k}], s.compose[cell.Ref{Kind: cell.Factor, Index: k}])
	}
	for v, is := range s.flow.behind(composed, func(int) bool { return false }) {
		if is && !s.late[v] {
			d.targets = append(d.targets, v)
		}
	}
	var text strings.Builder
	text.WriteString(s.flow.text(indent, d.targets, d.there))
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%sconst float %v%d = row.of[%d * V + v].add, %v%d = row.of[%d * V + v].factor;\n", indent, s.before(), i, k, cell.Factor, i, k)
	}
	text.WriteString(s.flow.text(indent, composed, func(v int) bool { return !s.late[v] }))
	for k := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%srow.of[%d * V + v].add = %s, row.of[%d * V + v].factor = %s;\n", indent, k, s.flow.name(composed[2*k]), k, s.flow.name(composed[2*k+1]))
	}
	d.text = text.String()
	s.loop(b, d)
}

// steps does the steps from the state that was found, and leaves the last one.
func (s *scan) steps(b *strings.Builder) {
	_, keep, _ := s.slots()
	d := body{read: map[string]string{}, outputs: s.outputs(true), targets: s.targets(true), there: func(v int) bool {
		return slices.Contains(s.keep, v) || s.flow.values[v].leaf && s.carried(s.flow.values[v].ref)
	}}
	for v, at := range keep {
		d.read[s.flow.name(v)] = s.place(at, "at")
	}
	var text strings.Builder
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%sconst float %v%d = state[%d * V + v];\n", indent, s.before(), i, k)
	}
	text.WriteString(s.flow.text(indent, d.targets, d.there))
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%sstate[%d * V + v] = %s;\n", indent, k, s.flow.name(s.results[cell.Ref{Kind: s.after(), Index: i}]))
	}
	d.text = text.String()
	s.loop(b, d)
	if !s.backward {
		return
	}
	b.WriteString("      if (t.steps > 0 && t.first + t.steps == steps) {\n        float final[V];\n")
	for k, i := range s.cell.Recurrence.Carried {
		g := argument(cell.Ref{Kind: cell.DNext, Index: i})
		fmt.Fprintf(b, "#pragma unroll\n        for (int v = 0; v < V; v++) final[v] = state[%d * V + v];\n", k)
		fmt.Fprintf(b, "        store<V>(%s + (long long)t.n * ld_%s + t.u, final);\n", g, g)
	}
	b.WriteString("      }\n")
}
