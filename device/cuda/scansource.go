package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
)

// A slot is where a thread has a vector of its steps in shared memory.
type slot struct {
	at      int // bytes per thread before it
	element Element
	ahead   int // steps
}

// slots are where the loads go, and the bytes per thread.
func (s *scan) slots() (loads map[cell.Ref]slot, bytes int) {
	loads = map[cell.Ref]slot{}
	for _, l := range s.loads {
		at := slot{at: bytes, element: s.element(l.group)}
		for _, r := range l.refs {
			loads[r] = at
			if l.more > 0 && r.Kind == cell.Prev {
				loads[r] = slot{at.at, at.element, 1}
			}
		}
		bytes += (s.chunk + l.more) * s.bytes(l)
	}
	return loads, bytes
}

// place is step i's vector of a slot.
func (s *scan) place(p slot) string {
	size := s.width * p.element.Bytes()
	return fmt.Sprintf("(%v*)(memory + %d * blockDim.x + threadIdx.x * %d + (i + %d) * blockDim.x * %d)", p.element, p.at, size, p.ahead, size)
}

// A stretch is a matrix of which a tile is one stretch of memory, which is copied
// as it is.
type stretch struct {
	load
	element Element
	at, row int // bytes before it in shared memory, of a step
}

// stretches are those of the tiles of a chain as wide as its matrices, where all
// that these have is read; nil: not all of them are.
func (s *scan) stretches() (all []stretch, bytes int) {
	columns := map[string]int{}
	for _, l := range s.loads {
		columns[l.group]++
	}
	for _, l := range s.loads {
		i := slices.IndexFunc(s.groups, func(g group) bool { return g.name == l.group })
		g := s.groups[i]
		row := s.Batch() * g.view.M.Cols * g.element.Bytes()
		if g.view.M.Cols != columns[l.group]*s.Hidden() || row%16 != 0 || s.Batch()*s.Hidden() != s.lanes*s.width {
			return nil, 0
		}
		if slices.ContainsFunc(all, func(o stretch) bool { return o.group == l.group }) {
			continue
		}
		all = append(all, stretch{l, g.element, bytes, row})
		bytes += (s.threads/s.lanes*s.chunk + l.more) * row
	}
	return all, bytes
}

// stretched is step i's vector of r.
func (s *scan) stretched(l load, r cell.Ref) string {
	all, _ := s.stretches()
	st := all[slices.IndexFunc(all, func(o stretch) bool { return o.group == l.group })]
	row, ahead := "(g.y() * K + i)", 0
	if l.more > 0 && r.Kind == cell.Prev {
		ahead = 1
	}
	if s.backward {
		row = fmt.Sprintf("(g.deep() * K - 1 - (g.y() * K + i) + %d)", l.more-ahead)
	}
	across := s.Hidden() / s.width
	return fmt.Sprintf("(%v*)(memory + %d + %s * %d) + g.x() / %d * ld_%s + %d * hidden + g.x() %% %d * V", st.element, st.at, row, st.row, across, l.group, l.column, across)
}

// source is the kernel's text.
func (s *scan) source(name string) source {
	var b strings.Builder
	fmt.Fprintf(&b, "enum { V = %d, K = %d, N = %d, LOOKS = %d, SKIP = %d };\n%s%s", s.width, s.chunk, s.values(), s.looks(), s.skip, file("linear").text, file("scan").text)
	fmt.Fprintf(&b, `
extern "C" __global__ void __launch_bounds__(%d, %d)
%s(int steps, int batch, int hidden, int bits, int chains, int tiles, int walkers, int buffer, word* tickets, word* sums, word* starts, unsigned* trouble%s) {
  DYNAMIC_SHARED(memory);
  const grid g = {steps, batch, hidden, bits, chains, tiles, walkers, tickets, sums, starts, trouble};
  several* const rows = (several*)(memory + buffer);
  linear* const total = (linear*)(rows + (g.rows() << bits));
  word* const drawn = (word*)(total + (g.values() + 1) / 2 * 2);
  float* const begin = (float*)(drawn + 2);
  const shared_t arrived = shared_address(drawn + 1);
  auto fetch = [&](unsigned i) {
    const tile t = g.at(i);
`, s.threads, s.blocks, name, params(s.groups))
	if s.whole {
		s.copyWhole(&b)
	} else {
		b.WriteString("    if (t.steps > 0) {\n")
		s.copies(&b)
		b.WriteString("    }\n    end_async();\n")
	}
	b.WriteString(`  };
  if (threadIdx.x == 0) *drawn = g.noted(g.draw()), bar_init(arrived, 1);
  __syncthreads();
  const unsigned run = (*drawn >> 32) + 1;
  unsigned now = *drawn, next;
  if (now < walkers) {
    walk(g, now, memory, run);
    return;
  }
  now -= walkers;
  fetch(now);
  __syncthreads();
  for (int turn = 0; now < g.all(); turn ^= 1, now = next) {
    const tile t = g.at(now);
    float* const start = begin + (turn * N << bits);
    word ticket;
    several row = identity();
`)
	s.initial(&b)
	b.WriteString("    {\n")
	for _, v := range s.keep {
		fmt.Fprintf(&b, "    float keep_%s[K * V];\n", s.flow.name(v))
	}
	b.WriteString("    {\n")
	s.early(&b)
	b.WriteString(`    }
    within(row, rows, g);
    if (threadIdx.x == 0) *drawn = g.noted(ticket);
    __syncthreads();
    next = (unsigned)*drawn - walkers;
    const several earlier = fold(rows, g.row(), g);
    if (mouth(g)) tell(g, t, row, earlier, total, start, run);
    fetch(next);
    if (mouth(g)) find(g, t, total, start, run);
    __syncthreads();
    float state[N];
    before(state, g, row, earlier, start);
`)
	s.steps(&b)
	b.WriteString(`    }
  }
}
`)
	return source{name, b.String()}
}

// copies begin to copy to shared memory what a thread has of the tile t.
func (s *scan) copies(b *strings.Builder) {
	loads, _ := s.slots()
	for _, l := range s.loads {
		at := loads[l.refs[0]]
		at.ahead = 0
		fmt.Fprintf(b, "      const %v* from_%s%d = %s;\n", at.element, l.group, l.column, s.address("t", l.group, l.column, l.shift))
		fmt.Fprintf(b, "#pragma unroll\n      for (int i = 0; i < K + %d; i++)\n        if (i < t.steps + %d) copy_async<%d>(%s, from_%s%d + i * %s);\n",
			l.more, l.more, s.bytes(l), s.place(at), l.group, l.column, s.stride(l.group))
	}
}

// copyWhole begins to copy to shared memory what the tile t has of each matrix. A
// backward pass has the last step of a tile first.
func (s *scan) copyWhole(b *strings.Builder) {
	all, _ := s.stretches()
	b.WriteString("    if (threadIdx.x == 0 && t.there) {\n      const int deep = g.deep() * K, first = t.time * deep, count = min(deep, steps - first);\n")
	bytes, more := 0, 0
	for _, l := range all {
		bytes += l.row
		more += l.more * l.row
	}
	fmt.Fprintf(b, "      bar_arrive(arrived, count * %d + %d);\n", bytes, more)
	for _, l := range all {
		low, at := fmt.Sprintf("first + %d", l.shift), "0"
		if s.backward {
			low, at = fmt.Sprintf("steps - first - count + %d", l.shift-l.more), "deep - count"
		}
		fmt.Fprintf(b, "      copy_bulk(shared_address(memory + %d + (%s) * %d), (const unsigned char*)%s + (long long)(%s) * %d, (count + %d) * %d, arrived);\n", l.at, at, l.row, l.group, low, l.row, l.more, l.row)
	}
	b.WriteString("    }\n")
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
	b.WriteString("      if (g.y() == 0 && t.steps > 0 && t.time == 0) {\n        float first[V];\n")
	s.first(b, "start[g.x() * N + %d * V + v]")
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
	read    map[string]string // vectors of V in shared memory, by name, and where they are
	kept    []int             // values that are taken from what was kept
	text    string            // for one value
	keep    []int             // values that are kept
	outputs []cell.Ref
	targets []int // values that the text names
	there   func(int) bool
	wait    string // for what is read
	after   string // a step
}

// loop spells a body for all steps of t. What threads without steps, or a thread
// behind its last step, compute is of no use and does no harm.
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
	b.WriteString(d.wait)
	b.WriteString("#pragma unroll\n      for (int i = 0; i < K; i++) {\n")
	for _, name := range slices.Sorted(maps.Keys(d.read)) {
		fmt.Fprintf(b, "          float in_%s[V];\n          load<V>(in_%s, %s);\n", name, name, d.read[name])
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
	for _, v := range d.kept {
		fmt.Fprintf(b, "%sconst float %s = keep_%s[i * V + v];\n", indent, s.flow.name(v), s.flow.name(v))
	}
	b.WriteString(d.text)
	for _, v := range d.keep {
		fmt.Fprintf(b, "%skeep_%s[i * V + v] = %s;\n", indent, s.flow.name(v), s.flow.name(v))
	}
	for _, r := range d.outputs {
		fmt.Fprintf(b, "%sout_%v[v] = %s;\n", indent, r, s.flow.name(s.results[r]))
	}
	b.WriteString("          }\n")
	for _, r := range d.outputs {
		fmt.Fprintf(b, "          if (i < t.steps && (!(SKIP & 2) || out_%v[0] == 123.25f)) store<V>(to_%v, out_%v);\n          to_%v += %s;\n", r, r, r, r, s.stride(argument(r)))
	}
	b.WriteString(d.after)
	b.WriteString("      }\n")
}

const indent = "            "

// early computes from what was loaded all that no state is needed for, and
// composes the steps.
func (s *scan) early(b *strings.Builder) {
	loads, _ := s.slots()
	d := body{read: map[string]string{}, keep: s.keep, outputs: s.outputs(false), there: func(v int) bool { return s.late[v] }, wait: "      wait_async<0>();\n" + draw}
	for r, at := range loads {
		d.read[r.String()] = s.place(at)
	}
	if s.whole {
		d.wait = "      until([&] { return bar_try(arrived, turn); }, true, trouble);\n" + draw
		for _, l := range s.loads {
			for _, r := range l.refs {
				d.read[r.String()] = s.stretched(l, r)
			}
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

// draw gets the tile after the next one, not before this one's inputs have come: so
// blocks that begin first do not take tiles that others could begin with.
const draw = "      if (threadIdx.x == 0) ticket = g.draw();\n"

// steps does the steps from the state that was found, and leaves the last one.
func (s *scan) steps(b *strings.Builder) {
	d := body{kept: s.keep, outputs: s.outputs(true), targets: s.targets(true), there: func(v int) bool {
		return slices.Contains(s.keep, v) || s.flow.values[v].leaf && s.carried(s.flow.values[v].ref)
	}}
	var text, after strings.Builder
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%sconst float %v%d = state[%d * V + v];\n", indent, s.before(), i, k)
	}
	text.WriteString(s.flow.text(indent, d.targets, d.there))
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%sstate[%d * V + v] = %s;\n", indent, k, s.flow.name(s.results[cell.Ref{Kind: s.after(), Index: i}]))
		if s.backward {
			g := argument(cell.Ref{Kind: cell.DNext, Index: i})
			fmt.Fprintf(&after, "          if (i < t.steps && t.first + i == steps - 1) store<V>(%s + (long long)t.n * ld_%s + t.u, state + %d * V);\n", g, g, k)
		}
	}
	d.text, d.after = text.String(), after.String()
	s.loop(b, d)
}
