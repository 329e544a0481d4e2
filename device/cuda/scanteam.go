package cuda

import (
	"fmt"
	"math"
	"strings"

	"rnnbench/rnn/knob"
)

// Few channels over much time are cut for teams of blocks (kernels/scanteam.cu).
// A multiprocessor has one block, whose teamThreads compute while warps of their
// own copy and look for states. Teams of more than scanTeam members meet in groups.
//
// A state takes longer to be found in groups, and more tiles wait for theirs at a time, the
// first of which keep their places in shared memory. What is under way from memory
// besides is no more than it takes, since states are found the later for it.
const (
	teamThreads   = 256
	teamHelpers   = 4 // warps
	scanTeam      = 24
	computing     = 208 // registers of a thread that computes, from Hopper on
	helping       = 88  // of others
	anyRegisters  = 160 // of each thread where all have as many
	fewRegisters  = 40  // of a thread besides what it keeps
	backRegisters = 32  // of a backward pass
)

// gather has teams of blocks share few chains of channels, one each; it reports
// whether they are few and there are steps enough for each member.
func (s *scan) gather(p Properties, k knob.Params) bool {
	across := s.Batch() * s.Hidden() / s.width
	lanes := min(scanLine/4/s.width, powerOfTwo(across))
	chains := ceil(across, lanes)
	if chains*4 > p.SMs {
		return false
	}
	t := *s
	t.members, t.lanes, t.chains, t.threads = p.SMs/chains, lanes, chains, teamThreads
	t.engine, t.hopper = t.boxed(p), p.Capability >= 90
	t.group, t.hold, t.behind, t.places = 1, 0, 1, 2
	if t.members > scanTeam {
		t.group, t.hold, t.behind, t.places = int(math.Ceil(math.Sqrt(float64(t.members)))), 1, 3, 4
		if s.backward { // loses by reading twice
			t.hold = 0
		}
	}
	most := t.most(p)
	if t.group > 1 && most < 3 { // of a cell that keeps much
		t.hold, t.behind, t.places = 0, 2, 3
		most = t.most(p)
	}
	deep := t.threads / lanes
	if t.chunk = min(most, s.Steps/t.members/deep); t.chunk < max(1, most/2) {
		return false
	}
	if n := k["scansteps"]; n != 0 {
		t.chunk = min(n, most)
	}
	t.tiles = ceil(s.Steps, deep*t.chunk)
	t.members = min(t.members, t.tiles)
	*s = t
	return true
}

// most is the most steps of a tile that a thread can have.
func (s *scan) most(p Properties) int {
	room := anyRegisters
	if p.Capability >= 90 {
		room = computing
	}
	for s.chunk = maxSteps; s.chunk > 1; s.chunk-- {
		kept := len(s.keep)*s.width*s.chunk*(s.behind-s.hold+1) + 2*s.values()*(s.behind+1)
		few := fewRegisters
		if s.backward {
			few = backRegisters
		}
		if kept+few <= room && s.teamShared() <= p.Shared {
			break
		}
	}
	return s.chunk
}

// totals are the bytes of the words in which groups show what they make.
func (s *scan) totals() int64 {
	return 16 * int64(s.chains*ceil(s.tiles, s.members)*ceil(s.members, s.group)) * int64(s.lanes*s.values())
}

// block is how many threads a block of a team has.
func (s *scan) block() int { return s.threads + 32*teamHelpers }

// teamShared is the memory of a block of a team: its tiles, the states that they
// begin with, twice what its warps compose, the states behind groups, two
// numbers and barriers.
func (s *scan) teamShared() int {
	_, _, bytes := s.areas()
	values := s.lanes * s.values()
	return s.places*bytes + 16*values + 2*8*s.threads/32*values + 8*ceil(values, 2) + 8 + 16*s.places
}

// What threads wait for ahead of a tile's composition, and of its steps.
const (
	waitInputs = "      await(full + 8 * slot, i / PLACES);\n"
	waitState  = `      meet_at(2 + found_at, THREADS + 32);
      float state[N];
#pragma unroll
      for (int k = 0; k < N; k++) state[k] = after(past[BEHIND].of[k], starts[found_at * VALUES + g.x() * N + k]);
`
)

// teamSource is the text of the kernel of a team's blocks.
func (s *scan) teamSource(name string) source {
	_, _, bytes := s.areas()
	joiners, copiers := 0, 32
	if s.group > 1 {
		joiners = 1
	}
	if s.engine {
		copiers = 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, "enum { V = %d, K = %d, N = %d, LANES = %d, THREADS = %d, PLACES = %d, BEHIND = %d, HOLD = %d, BUFFER = %d, SEEKERS = %d, COPIERS = %d };\n%s%s",
		s.width, s.chunk, s.values(), s.lanes, s.threads, s.places, s.behind, s.hold, bytes, teamHelpers-1-joiners, copiers, file("linear").text, file("scanteam").text)
	more, fewer := "", ""
	if s.hopper {
		more, fewer = fmt.Sprintf("  more_registers<%d>();\n", computing), fmt.Sprintf("    fewer_registers<%d>();\n", helping)
	}
	fmt.Fprintf(&b, `
extern "C" __global__ void __launch_bounds__(%d, 1)
%s(int steps, int batch, int hidden, int chains, int tiles, int team, int group, word* ticket, word* sums, word* totals, unsigned* trouble%s%s) {
  DYNAMIC_SHARED(memory);
  grid g = {steps, batch, hidden, chains, tiles, team, group, sums, totals, trouble};
  g.settle();
  float* const starts = (float*)(memory + PLACES * BUFFER);
  several* const rows = (several*)(starts + STATES * VALUES);
  float* const walked = (float*)(rows + 2 * ROWS * LANES);
  int *const found = (int*)(walked + (VALUES + 1) / 2 * 2), *const done = found + 1;
  const shared_t full = shared_address(done + 1), empty = full + 8 * PLACES;
  if (threadIdx.x == 0) {
    for (int i = 0; i < PLACES; i++) bar_init(full + 8 * i, COPIERS), bar_init(empty + 8 * i, ROWS);
    bar_publish();
    *found = *done = 0;
  }
  g.run = (get_word(ticket) >> 32) + 1;
  __syncthreads();
  if (threadIdx.x >= THREADS) {
%s    const int me = threadIdx.x - THREADS, warp = me / 32;
    if (warp > SEEKERS) join(g, done);
    else if (warp > 0) seek(g, warp - 1, starts, walked, found, done);
    if (me >= COPIERS) return;
    turn ahead = g.begin();
    for (int i = 0, slot = 0; g.there(ahead); g.next(ahead), i++, slot = slot + 1 == PLACES ? 0 : slot + 1) {
      if (i >= PLACES) await(empty + 8 * slot, i / PLACES - 1);
`, s.block(), name, params(s.groups), s.tensorParams(), fewer)
	s.fetch(&b)
	fmt.Fprintf(&b, `    }
    return;
  }
%s  turn now = g.begin(), held = now, behind = now;
  several past[BEHIND + 1];
`, more)
	for _, v := range s.kept() {
		fmt.Fprintf(&b, "  float keep_%s[BEHIND - HOLD + 1][K * V];\n", s.flow.name(v))
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
		fmt.Fprintf(&b, "        keep_%[1]s[k][j] = keep_%[1]s[k - 1][j];\n", s.flow.name(v))
	}
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
	s.first(&b, "initial[%d * V + v]")
	b.WriteString("      }\n      several row = identity();\n" + s.under())
	s.early(&b)
	if s.hold == 0 {
		b.WriteString(leave)
	}
	b.WriteString(`      if (begins)
#pragma unroll
        for (int k = 0; k < N; k++) starts[i % STATES * VALUES + g.x() * N + k] = initial[k];
      past[0] = before(row, rows + i % 2 * (ROWS * LANES));
      if (threadIdx.x == 0) put_here(done, i);
      if (g.last()) {
        word* const to = g.shown(now) + 2 * N * g.x();
#pragma unroll
        for (int k = 0; k < N; k++)
          put_words(to + 2 * k, tagged(begins ? 0 : row.of[k].factor, g.run), tagged(begins ? after(row.of[k], initial[k]) : row.of[k].add, g.run));
      }
      g.next(now);
    }
`)
	if s.hold > 0 {
		b.WriteString(`    if (i >= HOLD && g.there(held)) {
      const tile t = g.at(held, threadIdx.x);
      const int slot = (i - HOLD) % PLACES;
      unsigned char* const at = memory + slot * BUFFER;
` + s.under())
		s.take(&b)
		b.WriteString(leave + "      g.next(held);\n    }\n")
	}
	b.WriteString(`    if (i >= BEHIND) {
      const tile t = g.at(behind, threadIdx.x);
      const int found_at = (i - BEHIND) % STATES;
`)
	s.steps(&b)
	b.WriteString(`      g.next(behind);
    }
    slot = slot + 1 == PLACES ? 0 : slot + 1;
  }
  if (threadIdx.x == 0 && (unsigned)atomicAdd(ticket, (word)1) == gridDim.x - 1) atomicAdd(ticket, ((word)1 << 32) - gridDim.x);
}
`)
	return source{name, b.String()}
}

// leave lets the place of a tile be copied to.
const leave = `      __syncwarp();
      if (threadIdx.x % 32 == 0) bar_arrive(empty + 8 * slot);
`
