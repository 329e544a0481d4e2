package cuda

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/rnn/knob"
)

// Few channels over much time go to blocks that are crews (kernels/scancrew.cu), where
// inference takes activations, whose work teams do not hide.
// A multiprocessor has one, whose crewThreads compute while warps of their own load and
// look for states, and memory for crewPlaces tiles, crewBehind of which are composed
// and wait.
const (
	crewThreads = 256
	crewPlaces  = 4
	crewBehind  = 2
	crewLoaders = 2 // warps
	crewSeekers = 4 // warps
)

// enlist has crews share few chains of channels; it reports whether they are few and
// there are steps enough.
func (s *scan) enlist(p Properties, k knob.Params) bool {
	if s.Train || !slices.ContainsFunc(s.flow.values, func(v value) bool { return !v.leaf && slow(v.op) }) {
		return false
	}
	across := s.Batch() * s.Hidden() / s.width
	lanes := min(scanLine/4/s.width, powerAbove(across))
	chains := ceil(across, lanes)
	if chains*4 > p.SMs {
		return false
	}
	s.crew, s.chunk, s.lanes, s.chains = true, 1, lanes, chains
	s.threads, s.blocks, s.places = crewThreads, 1, crewPlaces
	_, _, step := s.slots()
	room := min(maxShared, p.Shared-(7<<10)) / s.places
	for room/s.threads/step < 2 && s.threads > leastThreads {
		s.threads /= 2
	}
	deep := s.threads / lanes
	most := max(1, min(room/s.threads/step, maxSteps))
	s.chunk = min(most, s.Steps*chains/p.SMs/deep)
	if s.chunk < max(1, most/2) {
		s.crew = false
		return false
	}
	if n := k["scansteps"]; n != 0 {
		s.chunk = n
	}
	for s.chunk > 1 && s.crewShared() > p.Shared {
		s.chunk--
	}
	s.tiles = ceil(s.Steps, deep*s.chunk)
	for s.group = 4; s.group < 16 && s.group*s.group*s.chains < s.places*p.SMs; s.group *= 2 {
	}
	return true
}

// crewBlock is how many threads a crew has.
func (s *scan) crewBlock() int { return s.threads + 32*(crewSeekers+crewLoaders) }

// crewShared is the memory of a crew: its tiles, the states that they
// begin with, twice what its warps compose, the tiles drawn, barriers and a number.
func (s *scan) crewShared() int {
	_, _, bytes := s.slots()
	values := s.lanes * s.values()
	return s.places*s.threads*bytes + 16*ceil(s.places*values, 4) + 2*8*s.threads/32*(values+1) + 3*8*s.places + 8
}

// crewSource is the text of a crew's kernel.
func (s *scan) crewSource(name string) source {
	_, _, bytes := s.slots()
	var b strings.Builder
	fmt.Fprintf(&b, "enum { V = %d, K = %d, N = %d, LANES = %d, THREADS = %d, SLOTS = %d, BEHIND = %d, BUFFER = %d, GROUP = %d, ERA = %d, SEEKERS = %d, LOADERS = %d };\n%s%s%s",
		s.width, s.chunk, s.values(), s.lanes, s.threads, s.places, crewBehind, s.threads*bytes, s.group, s.group, crewSeekers, crewLoaders, file("linear").text, file("compose").text, file("scancrew").text)
	fmt.Fprintf(&b, `
extern "C" __global__ void __launch_bounds__(%d, %d)
%s(int steps, int batch, int hidden, int chains, int tiles, word* tickets, word* sums, word* totals, unsigned* trouble%s) {
  DYNAMIC_SHARED(memory);
  const grid g = {steps, batch, hidden, chains, tiles, tickets, sums, totals, trouble};
  float* const starts = (float*)(memory + SLOTS * BUFFER);
  linear* const rows = (linear*)(starts + (SLOTS * VALUES + 3) / 4 * 4);
  word* const drawn = (word*)(rows + 2 * ROWS * PITCH);
  const shared_t full = shared_address(drawn + SLOTS), empty = full + 8 * SLOTS;
  int* const done = (int*)(drawn + 3 * SLOTS);
  if (threadIdx.x == 0) {
    for (int i = 0; i < SLOTS; i++) bar_init(full + 8 * i, LOADERS * 32), bar_init(empty + 8 * i, ROWS);
    bar_publish();
    *done = -1;
  }
  __syncthreads();
  if (threadIdx.x >= THREADS + 32 * SEEKERS) {
    const int me = threadIdx.x - THREADS - 32 * SEEKERS;
    for (int i = 0, slot = 0;; i++, slot = slot + 1 == SLOTS ? 0 : slot + 1) {
      if (i >= SLOTS) await(empty + 8 * slot, i / SLOTS - 1);
      if (me == 0) drawn[slot] = g.noted(g.draw());
      meet_at(2 + SLOTS, 32 * LOADERS);
      const word now = drawn[slot];
      const bool there = (unsigned)now < g.all();
      unsigned char* const to = memory + slot * BUFFER;
      for (int who = me; who < THREADS; who += 32 * LOADERS) {
        const tile t = g.at(now, who);
        if (t.steps > 0) {
`, s.crewBlock(), s.blocks, name, params(s.groups))
	var copies strings.Builder
	s.copies(&copies)
	b.WriteString(strings.ReplaceAll(copies.String(), "threadIdx.x", "who"))
	b.WriteString(`        }
      }
      arrive_async(full + 8 * slot);
      if (!there) return;
    }
  }
  if (threadIdx.x >= THREADS) {
    seek(g, (threadIdx.x - THREADS) / 32, starts, drawn, full, done);
    return;
  }
  several past[BEHIND + 1];
  int slot = 0, count = 1 << 30;
  for (int i = 0; i < count + BEHIND; i++, slot = slot + 1 == SLOTS ? 0 : slot + 1) {
#pragma unroll
    for (int k = BEHIND; k > 0; k--) past[k] = past[k - 1];
    tile t;
    t.there = false;
    if (i < count) {
      await(full + 8 * slot, i / SLOTS);
      t = g.at(drawn[slot], threadIdx.x);
      if (!t.there) {
        count = i;
        if (threadIdx.x == 0) put_here(done, ENDED + i);
      }
    }
    if (t.there) {
      unsigned char* const at = memory + slot * BUFFER;
      const unsigned run = (drawn[slot] >> 32) + 1;
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
`)
	s.early(&b)
	b.WriteString(`      if (begins)
#pragma unroll
        for (int k = 0; k < N; k++) starts[slot * VALUES + g.x() * N + k] = initial[k];
      past[0] = before(row, rows + i % 2 * (ROWS * PITCH));
      if (threadIdx.x == 0) put_here(done, i);
      if (g.last())
#pragma unroll
        for (int k = 0; k < N; k++)
          show(g.sum(t, t.time) + 2 * (N * g.x() + k), begins ? linear{0, after(row.of[k], initial[k])} : row.of[k], run);
    }
    if (i >= BEHIND && i < count + BEHIND) {
      const int freed = slot < BEHIND ? slot + SLOTS - BEHIND : slot - BEHIND;
      const tile t = g.at(drawn[freed], threadIdx.x);
      unsigned char* const at = memory + freed * BUFFER;
      meet_at(2 + freed, THREADS + 32);
      float state[N];
#pragma unroll
      for (int k = 0; k < N; k++) state[k] = after(past[BEHIND].of[k], starts[freed * VALUES + g.x() * N + k]);
`)
	s.steps(&b)
	b.WriteString(`      __syncwarp();
      if (threadIdx.x % 32 == 0) bar_arrive(empty + 8 * freed);
    }
  }
}
`)
	return source{name, b.String()}
}
