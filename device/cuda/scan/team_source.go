package scan

import (
	"fmt"
	"strings"

	"rnnbench/device/cuda/codegen"
)

// teamSource returns the text of the kernel of a team's blocks.
func (s *writer) teamSource(name string) codegen.Source {
	_, _, bytes := s.areas()
	copiers := 32
	if s.engine {
		copiers = 1
	}
	more, fewer := "", ""
	if compute, help := heldOf(&s.geometry); s.hopper {
		more, fewer = fmt.Sprintf("  more_registers<%d>();\n", compute), fmt.Sprintf("    fewer_registers<%d>();\n", help)
	}
	var b, fetch strings.Builder
	constants := codegen.Constants(
		"V", s.width, "K", s.chunk, "TAIL", s.tail, "N", s.values(), "LANES", s.lanes, "THREADS", s.threads,
		"PLACES", s.places, "PARTS", s.parts(), "BEHIND", s.behind, "HOLD", s.hold, "BUFFER", bytes, "STAGED", s.staged(),
		"SEEKERS", s.seekers(), "LOOKS", s.looks(), "STATES", teamStates, "COPIERS", copiers,
		"UNITS", s.units, "SEQS", s.seqs, "OVER", s.over, "RING", ring(&s.geometry),
	)
	if walked(&s.geometry) {
		constants += ", " + codegen.Constants("WALKED", walkerLooks)
	}
	fmt.Fprintf(&b, "enum { %s, PACED = %v };\n%s", constants, s.inference(), file("linear").Text)
	if walked(&s.geometry) {
		b.WriteString(file("walk").Text)
	}
	b.WriteString(file("team").Text)
	roles := codegen.Text(kernels, "roles_grouped.tpl")
	switch {
	case walked(&s.geometry):
		roles = codegen.Text(kernels, "roles_rows.tpl")
	case s.sole():
		roles = codegen.Text(kernels, "roles_sole.tpl")
	}
	s.fetch(&fetch)
	fill := strings.NewReplacer("LAUNCHED", fmt.Sprint(s.block()), "NAME", name, "MATRICES", codegen.Params(s.groups)+s.keepParams()+s.tensorParams(), "NEXT\n", nextText(s), "FEWER\n", fewer, "FETCH\n", fetch.String(), "MORE\n", more)
	b.WriteString(fill.Replace(roles))
	s.turns(&b)
	s.composeTile(&b)
	s.held(&b)
	b.WriteString(`    if (i >= BEHIND) {
      const tile t = g.at(behind, threadIdx.x);
      const int found_at = (i - BEHIND) % STATES;
`)
	s.steps(&b)
	b.WriteString(`      g.next(behind);
    }
    slot = slot + 1 == PLACES ? 0 : slot + 1;
  }
`)
	if s.staged() > 0 {
		b.WriteString("  engine_read();\n")
	}
	b.WriteString("}\n")
	return codegen.Source{Name: name, Text: b.String()}
}

// turns begins the loop over tiles. It moves the values that earlier tiles keep.
func (s *writer) turns(b *strings.Builder) {
	b.WriteString(`  turn now = g.begin(), behind = now;
  several past[BEHIND + 1];
`)
	if s.hold > 0 {
		b.WriteString("  turn held = now;\n")
	}
	for _, v := range s.kept() {
		fmt.Fprintf(b, "  float keep_%s[BEHIND - HOLD + 1][K * V];\n", s.flow.name(v))
	}
	b.WriteString(`  int slot = 0;
  for (int i = 0; g.there(behind); i++) {
#pragma unroll
    for (int k = BEHIND; k > 0; k--) past[k] = past[k - 1];
#pragma unroll
    for (int k = BEHIND - HOLD; k > 0; k--) {
#pragma unroll
      for (int j = 0; j < K * V; j++) {
`)
	for _, v := range s.kept() {
		fmt.Fprintf(b, "        keep_%[1]s[k][j] = keep_%[1]s[k - 1][j];\n", s.flow.name(v))
	}
}

// composeTile composes the tile of a turn, and publishes its aggregate.
func (s *writer) composeTile(b *strings.Builder) {
	b.WriteString(`      }
    }
    if (g.there(now)) {
      const tile t = g.at(now, threadIdx.x);
      unsigned char* const at = memory + slot * BUFFER;
      const bool begins = g.last() && t.time == 0;
      float initial[N];
#pragma unroll
      for (int k = 0; k < N; k++) initial[k] = 0;
      if (begins && t.inside) {
        float first[V];
`)
	s.first(b, "initial[%d * V + v]")
	b.WriteString(takenText(s, "now.chain", "g.run"))
	b.WriteString("      }\n      several row = identity();\n" + s.under() + offsetsOf(s, "now.chain"))
	s.early(b)
	if s.hold == 0 {
		b.WriteString(leave)
	}
	b.WriteString(`      if (begins)
#pragma unroll
        for (int k = 0; k < N; k++) starts[g.x() * N + k] = initial[k]; // a first tile is its block's first one
`)
	b.WriteString(beforeText(s))
	if !s.sole() && !walked(&s.geometry) {
		b.WriteString("      if (threadIdx.x == 0) put_here(done, i);\n")
	} else {
		b.WriteString("      arrive_at(SHOWN + i % STATES, THREADS + 32 * SEEKERS);\n")
	}
	to, tag := "g.sum(now, now.time) + 2 * N * g.x()", "g.run"
	if walked(&s.geometry) {
		to, tag = "g.sum(now.chain, now.time, N * g.x())", "g.tag(g.run, now.time)"
	}
	fmt.Fprintf(b, `      if (g.last()) {
        word* const to = %[1]s;
#pragma unroll
        for (int k = 0; k < N; k++)
          put_staying(to + 2 * k, tagged(begins ? 0 : row.of[k].factor, %[2]s), tagged(begins ? after(row.of[k], initial[k]) : row.of[k].add, %[2]s));
      }
      g.next(now);
    }
`, to, tag)
}

// held takes a composed tile out of the place that it kept in shared memory, if tiles keep
// theirs.
func (s *writer) held(b *strings.Builder) {
	if s.hold > 0 {
		b.WriteString(`    if (i >= HOLD && g.there(held)) {
      const tile t = g.at(held, threadIdx.x);
      const int slot = (i - HOLD) % PLACES;
      unsigned char* const at = memory + slot * BUFFER;
` + s.under() + offsetsOf(s, "held.chain"))
		s.take(b)
		b.WriteString(leave + "      g.next(held);\n    }\n")
	}
}

// leave frees the place of a tile for the next copy.
const leave = `      __syncwarp();
      if (threadIdx.x % 32 == 0) bar_arrive(empty + 8 * slot);
`

// Waits ahead of a tile's composition, and ahead of its steps.
const (
	waitInputs = "      await(full + 8 * slot, i / PLACES);\n"
	waitPart   = "      await(full + 8 * (slot * PARTS + threadIdx.x / (THREADS / PARTS)), i / PLACES);\n"
	waitState  = `      meet_at(STARTED + found_at, THREADS + 32);
      float state[N];
#pragma unroll
      for (int k = 0; k < N; k++) state[k] = after(past[BEHIND].of[k], starts[found_at * VALUES + g.x() * N + k]);
`
)

// beforeText spells the composition over threads that have the same channel of a tile.
func beforeText(s *writer) string {
	if walked(&s.geometry) {
		return "      __syncwarp();\n      past[0] = before_rows(row, rows + i % 2 * (DEEP * LANES));\n      __syncwarp();\n"
	}
	return "      past[0] = before(row, rows + i % 2 * (ROWS * LANES));\n"
}

// inputsText spells the wait for a tile's inputs. With walkers, no barrier may follow before the
// arrival that shows the tile composed, so warps leave this wait together.
func inputsText(s *writer) string {
	if walked(&s.geometry) {
		return strings.Replace(waitInputs, "await(", "await_all(", 1)
	}
	return waitInputs
}

// waitText spells the wait for the state before a tile. With walkers, all seeking warps arrive,
// since each finds some values.
func waitText(s *writer) string {
	if walked(&s.geometry) {
		return "      __syncwarp();\n" + strings.Replace(waitState, "THREADS + 32)", "THREADS + 32 * SEEKERS)", 1)
	}
	return waitState
}
