package scan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
)

// A slot says where a vector of the threads' steps lies in a block's shared memory.
type slot struct {
	at      int // bytes before it: per thread, or in all for teams and unaligned rows
	element driver.Element
	ahead   int    // steps
	pitch   int    // for teams: bytes from row to row
	more    int    // rows beyond those of the steps
	memory  bool   // rows are in the order of memory, the reverse of the pass's
	period  int    // steps per row of the tensor; 0: rows follow each other
	apart   int    // bytes from a step's boxes to the next step's
	lane    int    // elements from one sequence of a chain to the next; 0: one sequence
	idle    bool   // some lanes have no channel
	off     string // variable: elements from a multiple of 16 bytes to row 0 of a box, modulo 16 bytes; "": 0
	each    int    // elements by which this grows from row to row
	skew    string // variable: bytes by which a tile begins after its place
}

// A writer writes the text of a scan's kernel.
type writer struct {
	*Scan
	lines map[string]string // computations of places in boxes, by name, to be spelled before a loop over steps
}

// slots returns where a thread's loads go, and the bytes per thread.
func (s *geometry) slots() (loads map[cell.Ref]slot, bytes int) {
	loads = map[cell.Ref]slot{}
	for _, l := range s.loads {
		at := slot{at: bytes, element: s.element(l.group)}
		for _, r := range l.refs {
			loads[r] = at
			if l.more > 0 && r.Kind == cell.Prev {
				next := at
				next.ahead = 1
				loads[r] = next
			}
		}
		bytes += (s.chunk + l.more) * s.bytes(l)
	}
	return loads, bytes
}

// arrivals returns where loads go and, for teams, where kept values are.
func (s *writer) arrivals() (loads map[cell.Ref]slot, keep map[int]slot) {
	if s.members > 0 || s.units > 0 {
		loads, keep, _ = s.areas()
	} else {
		loads, _ = s.slots()
	}
	return loads, keep
}

// place spells the address of step i's vector of a slot in the buffer at from, for thread who.
func (s *writer) place(p slot, from, who string) string {
	size := s.width * p.element.Bytes()
	if s.members == 0 && s.units == 0 {
		return fmt.Sprintf("(%v*)(%s + %d * blockDim.x + %s * %d + (i + %d) * blockDim.x * %d)", p.element, from, p.at, who, size, p.ahead, size)
	}
	if p.period > 0 {
		return linePlace(s, p, from, who)
	}
	each := "t.each"
	if s.members == 0 {
		each = "K"
	}
	row, base := fmt.Sprintf("((int)(%s / LANES) * %s + i + %d)", who, each, p.ahead), fmt.Sprintf("%s + %d", from, p.at)
	if p.memory {
		row = fmt.Sprintf("max(0, DEEP * K - 1 + %d - under - %s)", p.more, row)
	}
	if p.skew != "" {
		base += " + " + p.skew
	}
	return fmt.Sprintf("(%v*)(%s + %s * %d + %s)", p.element, base, row, p.pitch, p.laneText(who, size))
}

// laneText spells how many bytes a thread's channel lies after the first one of its chain. Lanes without a
// channel read that of another: behind the last one lies memory that other threads write.
func (p *slot) laneText(who string, size int) string {
	sequence, lane := fmt.Sprintf("%s %% LANES / UNITS", who), fmt.Sprintf("%s %% LANES", who)
	if p.idle {
		sequence, lane = fmt.Sprintf("min((int)(%s), SEQS - 1)", sequence), fmt.Sprintf("min((int)(%s), UNITS + OVER - 1)", lane)
	}
	if p.lane > 0 {
		return fmt.Sprintf("(%s * %d + %s %% LANES %% UNITS) * %d", sequence, p.lane, who, size)
	}
	return fmt.Sprintf("%s * %d", lane, size)
}

// kept returns the values from which late ones are computed. If a tile keeps its place in shared
// memory, an operation on one loaded value and constants is not stored but computed again.
func (s *geometry) kept() []int {
	keep := s.keep
	if len(s.delayed) > 0 {
		keep = s.flow.frontier(s.goals(true), s.late, s.constant)
	}
	if s.hold == 0 {
		return keep
	}
	var kept []int
	for _, v := range keep {
		var loaded []int
		for _, a := range s.flow.operands(v) {
			if w := s.flow.values[a]; !w.leaf || !s.constant(w.ref) {
				loaded = append(loaded, a)
			}
		}
		if len(loaded) == 1 && s.flow.values[loaded[0]].leaf && !slow(s.flow.values[v].op) {
			v = loaded[0]
		}
		if !slices.Contains(kept, v) {
			kept = append(kept, v)
		}
	}
	return kept
}

// source returns the kernel's text.
func (s *writer) source(name string) codegen.Source {
	if s.members > 0 {
		return s.teamSource(name)
	}
	var b strings.Builder
	constants := codegen.Constants("V", s.width, "K", s.chunk, "N", s.values(), "RESIDENT", s.blocks, "HEADSTART", s.headStart(), "UNITS", s.units, "SEQS", s.seqs, "OVER", s.over)
	if s.units > 0 {
		constants += ", " + codegen.Constants("LANES", s.lanes, "DEEP", s.threads/s.lanes)
	} else {
		constants += ", " + codegen.Constants("LANES", 0)
	}
	fmt.Fprintf(&b, "enum { %s };\n%s%s", constants, file("linear").Text, file("walk").Text+file("tiles").Text)
	fmt.Fprintf(&b, `
extern "C" __global__ void __launch_bounds__(%d, %d)
%s(int steps, int batch, int hidden, int bits, int chains, int tiles, int walkers, int buffer, word* tickets, word* sums, word* starts, unsigned* status%s) {
  DYNAMIC_SHARED(memory);
  const grid g = {steps, batch, hidden, bits, chains, tiles, walkers, tickets, sums, starts, status};
  several* const rows = (several*)(memory + buffer);
  linear* const total = (linear*)(rows + g.span(g.rows()));
  word* const drawn = (word*)(total + (g.values() + 1) / 2 * 2);
  float* const begin = (float*)(drawn + 2);
  unsigned char *const at = memory, *const to = memory;
`, s.threads, s.blocks, name, codegen.Params(s.groups)+s.keepParams()+s.tensorParams())
	if s.staged() > 0 {
		fmt.Fprintf(&b, "  unsigned char* const staged = memory + %d;\n", s.buffer()-s.staged())
	}
	s.fetchTile(&b)
	b.WriteString(nextText(s) + `  wait_previous();
  if (threadIdx.x == 0) *drawn = g.noted(g.draw(blockIdx.x));
  __syncthreads();
  const unsigned run = (*drawn >> 32) + 1;
  unsigned now = *drawn, next;
  if (now < walkers) {
    walk<24>(g, now, memory, run);
    return;
  }
  now -= walkers;
  if (g.all() > 2 * gridDim.x) stagger(now / (gridDim.x / RESIDENT) * HEADSTART);
  fetch(now);
  __syncthreads();
  for (int turn = 0; now < g.all(); turn ^= 1, now = next) {
    const tile t = g.at(now);
    float* const start = begin + g.span(turn * N);
    word ticket;
    several row = identity();
`)
	s.initial(&b)
	b.WriteString("    {\n" + s.under() + offsetsOf(s, "t.chain"))
	for _, v := range s.kept() {
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
    word seen = 0;
    if (at_edge(g)) {
      publish_aggregate(g, t, row, earlier, total, start, run);
      seen = peek_prefix(g, t, total, start, run);
    }
    fetch(next);
    if (at_edge(g)) await_prefix(g, t, total, start, run, seen);
    __syncthreads();
    float state[N];
    before(state, g, row, earlier, start);
`)
	s.steps(&b)
	b.WriteString(`    }
  }
}
`)
	return codegen.Source{Name: name, Text: b.String()}
}

// fetchTile defines how a block starts to copy the inputs of tile i: each thread copies its own, or
// one thread starts the copy engine for all.
func (s *writer) fetchTile(b *strings.Builder) {
	if s.units > 0 {
		b.WriteString(`  const shared_t full = shared_address(begin + g.span(2 * N));
  if (threadIdx.x == 0) {
    bar_init(full, 1);
    bar_publish();
  }
  auto fetch = [&](unsigned i) {
    if (threadIdx.x > 0 || i >= g.all()) return;
    const tile ahead = g.at(i);
`)
		s.fetch(b)
		b.WriteString("  };\n")
		return
	}
	b.WriteString(`  auto fetch = [&](unsigned i) {
    const tile t = g.at(i);
    if (t.steps > 0) {
`)
	s.copies(b, "threadIdx.x")
	b.WriteString(`    }
    end_async();
  };
`)
}

// copies spells the start of copies to shared memory of thread who's inputs of tile t.
func (s *writer) copies(b *strings.Builder, who string) {
	loads, _ := s.arrivals()
	for _, l := range s.loads {
		at := loads[l.refs[0]]
		at.ahead = 0
		fmt.Fprintf(b, "      const %v* from_%s%d = %s;\n", at.element, l.group, l.column, s.address("t", l.group, l.column, l.shift))
		fmt.Fprintf(b, "#pragma unroll\n      for (int i = 0; i < K + %d; i++)\n        if (i < t.steps + %d) copy_async<%d>(%s, from_%s%d + i * %s);\n",
			l.more, l.more, s.bytes(l), s.place(at, "to", who), l.group, l.column, s.stride(l.group))
	}
}

// address spells where the rows of a thread's steps begin in a group of vectors.
func (s *writer) address(tile, group string, column, shift int) string {
	row := fmt.Sprintf("(%s.first + %d)", tile, shift)
	if s.backward {
		row = fmt.Sprintf("(steps - 1 - %s.first + %d)", tile, shift)
	}
	return fmt.Sprintf("%s + ((long long)%s * batch + %s.n) * ld_%s + (long long)%d * hidden + %s.u", group, row, tile, group, column, tile)
}

// stride spells the distance from one step to the next, in the order of the pass.
func (s *writer) stride(group string) string {
	if s.backward {
		return fmt.Sprintf("-((long long)batch * ld_%s)", group)
	}
	return fmt.Sprintf("((long long)batch * ld_%s)", group)
}

// initial spells how a block's first line of lanes reads the states at the start of time.
func (s *writer) initial(b *strings.Builder) {
	b.WriteString("      if (g.y() == 0 && t.steps > 0 && t.time == 0) {\n        float first[V];\n")
	s.first(b, "start[g.x() * N + %d * V + v]")
	b.WriteString(takenText(s, "t.chain", "run"))
	b.WriteString("      }\n")
}

// first spells how the states at the start of time are read: value v of state k goes to where.
func (s *writer) first(b *strings.Builder, where string) {
	for k, i := range s.cell.Recurrence.Carried {
		g := argument(cell.Ref{Kind: s.before(), Index: i})
		fmt.Fprintf(b, "        load<V>(first, %s + (long long)t.n * ld_%s + t.u);\n", g, g)
		fmt.Fprintf(b, "#pragma unroll\n        for (int v = 0; v < V; v++) %s = first[v];\n", fmt.Sprintf(where, k))
	}
}

// A body is what a thread does at each step, for each of its values.
type body struct {
	wait    string            // code that waits for the vectors to read
	read    map[string]string // addresses of vectors in shared memory, by name
	kept    []int             // values to read from registers
	old     string            // index of the tile whose kept values are read
	text    string            // code for one value
	keep    []int             // values to leave in registers
	young   string            // index of the tile for keep
	write   map[string]string // addresses of vectors to write to shared memory
	outputs []cell.Ref
	stages  []stage // stages of these outputs
	after   string  // code after each step
	targets []int   // values that the text computes
	there   func(int) bool
}

// loop spells a body for all steps of t. Threads without steps, and threads after their last step,
// compute useless values, which do no harm.
func (s *writer) loop(b *strings.Builder, d body) {
	constants := s.constants(b, d)
	if len(d.stages) > 0 {
		b.WriteString(stageBegin(d.stages))
	}
	for _, r := range d.outputs {
		if staging(d.stages, r) != nil {
			continue
		}
		shift := 0
		if r.Kind == cell.Next {
			shift = 1
		}
		fmt.Fprintf(b, "      %v* to_%v = %s;\n", s.element(argument(r)), r, s.address("t", argument(r), codegen.Offset(r), shift))
	}
	for _, name := range slices.Sorted(maps.Keys(s.lines)) {
		b.WriteString(s.lines[name])
	}
	s.lines = nil
	b.WriteString(d.wait)
	steps := "      for (int i = 0; i < K; i++) {\n"
	if s.tapers() { // first the steps that every tile has, and then the rest: one comparison for all steps
		steps = `      for (int rest = 0; rest < 2; rest++) {
        if (rest && t.each == TAIL) break;
#pragma unroll
      for (int i = rest ? TAIL : 0; i < (rest ? K : TAIL); i++) {
`
	}
	b.WriteString("#pragma unroll\n" + steps)
	s.keepText(b, s.flow.behind(d.targets, d.there))
	for _, name := range slices.Sorted(maps.Keys(d.read)) {
		fmt.Fprintf(b, "          float in_%s[V];\n          load<V>(in_%s, %s);\n", name, name, d.read[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.write)) {
		fmt.Fprintf(b, "          float keep_%s[V];\n", name)
	}
	for _, r := range d.outputs {
		fmt.Fprintf(b, "          float out_%v[V];\n", r)
	}
	s.eachValue(b, d, constants)
	b.WriteString("          }\n")
	for _, name := range slices.Sorted(maps.Keys(d.write)) {
		only := ""
		if s.units > 0 { // idle lanes have no place here
			only = "if (t.inside) "
		}
		fmt.Fprintf(b, "          %sstore<V>(%s, keep_%s);\n", only, d.write[name], name)
	}
	for _, r := range d.outputs {
		if st := staging(d.stages, r); st != nil {
			fmt.Fprintf(b, "          if (i < t.steps) store<V>(%s, out_%v);\n", st.place(s.Scan, r), r)
			continue
		}
		fmt.Fprintf(b, "          if (i < t.steps%s) store<V>(to_%v, out_%v);\n          to_%v += %s;\n", ownText(s, r), r, r, r, s.stride(argument(r)))
	}
	b.WriteString(d.after)
	b.WriteString("      }\n")
	if s.tapers() {
		b.WriteString("      }\n")
	}
	if len(d.stages) > 0 {
		s.stageEnd(b, d.stages)
	}
}

// constants spells the reads of the values that the body needs and that are the same at every step.
// It returns their names.
func (s *writer) constants(b *strings.Builder, d body) (constants []string) {
	needed := s.flow.behind(d.targets, d.there)
	for i, v := range s.flow.values {
		if !needed[i] || !v.leaf || !s.constant(v.ref) || v.ref.Kind == cell.Keep {
			continue
		}
		row := "0"
		if !v.ref.Kind.Broadcast() {
			row = "t.n"
		}
		g := argument(v.ref)
		constants = append(constants, v.ref.String())
		fmt.Fprintf(b, "      float const_%v[V];\n      if (t.steps > 0) load<V>(const_%v, %s + (long long)%s * ld_%s + (long long)%d * hidden + t.u);\n", v.ref, v.ref, g, row, g, codegen.Offset(v.ref))
	}
	return constants
}

// eachValue spells what the body does for each of a thread's values.
func (s *writer) eachValue(b *strings.Builder, d body, constants []string) {
	b.WriteString("#pragma unroll\n          for (int v = 0; v < V; v++) {\n")
	for _, name := range constants {
		fmt.Fprintf(b, "%sconst float %s = const_%s[v];\n", indent, name, name)
	}
	for _, name := range slices.Sorted(maps.Keys(d.read)) {
		fmt.Fprintf(b, "%sconst float %s = in_%s[v];\n", indent, name, name)
	}
	for _, v := range d.kept {
		fmt.Fprintf(b, "%sconst float %s = keep_%s%s[i * V + v];\n", indent, s.flow.name(v), s.flow.name(v), d.old)
	}
	b.WriteString(d.text)
	for _, v := range d.keep {
		fmt.Fprintf(b, "%skeep_%s%s[i * V + v] = %s;\n", indent, s.flow.name(v), d.young, s.flow.name(v))
	}
	for _, name := range slices.Sorted(maps.Keys(d.write)) {
		fmt.Fprintf(b, "%skeep_%s[v] = %s;\n", indent, name, name)
	}
	for _, r := range d.outputs {
		fmt.Fprintf(b, "%sout_%v[v] = %s;\n", indent, r, s.flow.name(s.results[r]))
	}
}

const indent = "            "
