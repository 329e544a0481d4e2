package cuda

import (
	"fmt"
	"math"
	"strings"

	"rnnbench/rnn/knob"
)

// Few channels over much time are cut for teams of blocks (kernels/scanteam.cu).
// A multiprocessor has one block, whose teamThreads compute while warps of their
// own look for states, and memory for fullPlaces tiles. Teams of more than
// scanTeam members meet in groups.
const (
	teamThreads = 256
	maxShared   = 220 << 10
	fullPlaces  = 4
	scanTeam    = 24
	seekers     = 4 // warps, as in kernels/scanteam.cu
	joiners     = 2
)

// gather has teams of blocks share few chains of channels, one each; it reports
// whether they are few and there are steps enough for each member.
func (s *scan) gather(p Properties, k knob.Params) bool {
	across := s.Batch() * s.Hidden() / s.width
	lanes := min(scanLine/4/s.width, powerAbove(across))
	chains := ceil(across, lanes)
	if chains*4 > p.SMs {
		return false
	}
	s.chunk = 1
	_, _, step := s.slots()
	room, threads := min(maxShared, p.Shared-(7<<10))/fullPlaces, teamThreads
	for room/threads/step < 2 && threads > 64 {
		threads /= 2
	}
	members, deep := p.SMs/chains, threads/lanes
	most := max(1, min(room/threads/step, maxSteps))
	s.chunk = min(most, s.Steps/members/deep)
	if s.chunk < max(1, most/2) {
		return false
	}
	if n := k["scansteps"]; n != 0 {
		s.chunk = n
	}
	s.lanes, s.chains, s.threads, s.tiles = lanes, chains, threads, ceil(s.Steps, deep*s.chunk)
	s.members, s.group, s.behind = min(members, s.tiles), 1, 1
	if s.members > scanTeam {
		s.group, s.behind = int(math.Ceil(math.Sqrt(float64(s.members)))), 2
	}
	s.places = s.behind + 2
	for s.chunk > 1 && k["scansteps"] == 0 && s.teamShared() > p.Shared {
		s.chunk--
		s.tiles = ceil(s.Steps, deep*s.chunk)
	}
	return true
}

// totals are the bytes of the words in which groups show what they make.
func (s *scan) totals() int64 {
	return 16 * int64(s.chains*ceil(s.tiles, s.members)*ceil(s.members, s.group)) * int64(s.lanes*s.values())
}

// block is how many threads a block of a team has.
func (s *scan) block() int {
	if s.group == 1 {
		return s.threads + 32*seekers
	}
	return s.threads + 32*(seekers+joiners)
}

// teamShared is the memory of a block of a team: its tiles, the states that they
// begin with, twice what its warps compose, the states behind groups, and two
// numbers.
func (s *scan) teamShared() int {
	_, _, bytes := s.slots()
	values := s.lanes * s.values()
	return s.places*s.threads*bytes + 16*ceil(s.places*values, 4) + 2*8*s.threads/32*(values+1) + 4*values + 8
}

// teamSource is the text of the kernel of a team's blocks.
func (s *scan) teamSource(name string) source {
	_, _, bytes := s.slots()
	var b strings.Builder
	fmt.Fprintf(&b, "enum { V = %d, K = %d, N = %d, LANES = %d, THREADS = %d, SLOTS = %d, BEHIND = %d, BUFFER = %d };\n%s%s%s",
		s.width, s.chunk, s.values(), s.lanes, s.threads, s.places, s.behind, s.threads*bytes, file("linear").text, file("compose").text, file("scanteam").text)
	fmt.Fprintf(&b, `
extern "C" __global__ void __launch_bounds__(%d, 1)
%s(int steps, int batch, int hidden, int chains, int tiles, int team, int group, word* ticket, word* sums, word* totals, unsigned* trouble%s) {
  DYNAMIC_SHARED(memory);
  grid g = {steps, batch, hidden, chains, tiles, team, group, sums, totals, trouble};
  g.settle();
  float* const starts = (float*)(memory + SLOTS * BUFFER);
  linear* const rows = (linear*)(starts + (SLOTS * VALUES + 3) / 4 * 4);
  float* const walked = (float*)(rows + 2 * ROWS * PITCH);
  int *const found = (int*)(walked + VALUES), *const done = found + 1;
  auto fetch = [&](const turn& next, int slot) {
    unsigned char* const to = memory + slot * BUFFER;
    const tile t = g.at(next);
    if (g.there(next) && t.steps > 0) {
`, s.block(), name, params(s.groups))
	s.copies(&b)
	b.WriteString(`    }
    end_async();
  };
  turn ahead = g.begin(), now = ahead, behind = ahead;
  if (threadIdx.x < THREADS)
    for (int i = 0; i < SLOTS - BEHIND; i++, g.next(ahead)) fetch(ahead, i);
  g.run = (get_word(ticket) >> 32) + 1;
  if (threadIdx.x == 0) *found = *done = 0;
  __syncthreads();
  if (threadIdx.x >= THREADS) {
    const int warp = (threadIdx.x - THREADS) / 32;
    if (warp < SEEKERS) seek(g, warp, starts, walked, found, done);
    else join(g, warp - SEEKERS, done);
    return;
  }
  several past[BEHIND + 1];
  int slot = 0;
  for (int i = 0; g.there(behind); i++) {
#pragma unroll
    for (int k = BEHIND; k > 0; k--) past[k] = past[k - 1];
    if (g.there(now)) {
      const tile t = g.at(now);
      unsigned char* const at = memory + slot * BUFFER;
      const bool begins = g.last() && t.time == 0;
      float initial[N];
#pragma unroll
      for (int k = 0; k < N; k++) initial[k] = 0;
      if (begins && t.inside) {
        float first[V];
`)
	s.first(&b, "initial[%d * V + v]")
	b.WriteString(`      }
      several row = identity();
      wait_async<SLOTS - BEHIND - 1>();
`)
	s.early(&b)
	b.WriteString(`      if (begins)
#pragma unroll
        for (int k = 0; k < N; k++) starts[slot * VALUES + g.x() * N + k] = initial[k];
      past[0] = before(row, rows + i % 2 * (ROWS * PITCH));
      if (threadIdx.x == 0) put_here(done, i);
      if (g.last()) {
        word* const to = g.shown(now) + 2 * N * g.x();
#pragma unroll
        for (int k = 0; k < N; k++)
          put_words(to + 2 * k, tagged(begins ? 0 : row.of[k].factor, g.run), tagged(begins ? after(row.of[k], initial[k]) : row.of[k].add, g.run));
      }
      g.next(now);
    }
    const int freed = slot < BEHIND ? slot + SLOTS - BEHIND : slot - BEHIND;
    if (i >= BEHIND) {
      const tile t = g.at(behind);
      unsigned char* const at = memory + freed * BUFFER;
      meet_at(2 + freed, THREADS + 32);
      float state[N];
#pragma unroll
      for (int k = 0; k < N; k++) state[k] = after(past[BEHIND].of[k], starts[freed * VALUES + g.x() * N + k]);
`)
	s.steps(&b)
	b.WriteString(`      g.next(behind);
    }
    fetch(ahead, freed);
    g.next(ahead);
    slot = slot + 1 == SLOTS ? 0 : slot + 1;
  }
  if (threadIdx.x == 0 && (unsigned)atomicAdd(ticket, (word)1) == gridDim.x - 1) atomicAdd(ticket, ((word)1 << 32) - gridDim.x);
}
`)
	return source{name, b.String()}
}
