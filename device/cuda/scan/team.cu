#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_TEAM
#include "sample/team.cuh"
#endif
// A linear recurrence of few channels in one pass over memory. They lie in chains of LANES
// lanes, V channels side by side each, and the time of a chain is cut into tiles.
// Blocks are a team: they take tiles in turns, in the order of time, those of all chains at a
// time. The threads of a block that compute lie in lanes,
// too, and behind one another in time; each has K steps of a tile, and TAIL of one of the last turn.
//
// One warp has tiles copied to shared memory, as soon as there is a place, in inference and without groups not before the last one has come. The threads compose the
// steps of a tile to one, show the team what that is and do the steps BEHIND tiles later: by then
// other warps have found the state that they begin with. Until HOLD tiles later a tile keeps its
// place in shared memory, and then it is in registers. The others follow the states of chains
// through what all blocks have shown, in the order of time, so that results do not depend on who came first:
// over groups of tiles, each of which the block with its last tile joins, and then over tiles. Where
// there are few tiles from one of a block to its next of the chain, there are no groups.

enum {
  DEEP = THREADS / LANES,  // threads behind one another
  VALUES = LANES * N,      // of a chain: N of each lane
  ROWS = THREADS / 32,     // warps that compute
  SIDES = VALUES < 32 && 32 % VALUES == 0 ? 32 / VALUES : 1, // threads of a seeker that look for the same value
  SHARES = SEEKERS * SIDES,                                  // of the tiles, of seekers that look together
};

// Barriers: of those that compute, those for each of STATES tiles, and of
// seekers that look together.
enum { COMPOSED = 1, STARTED, SHOWN = STARTED + STATES, PARTED = SHOWN + STATES };

// A turn is one of the tiles that a block takes.
struct turn { int chain, time; };

// A tile is one with the place of a thread in it.
struct tile {
  int time;
  bool inside;      // whether there are channels
  int n, u;         // the sequence and the first unit
  int first, steps; // the first step and how many; 0: the thread idles
  int each;         // steps of a thread that does not idle
};

// A grid is how a scan is cut, and where its blocks show each other what they
// make: tiles in sums, groups of tiles of a chain in totals. A block has tiles of period chains, one
// after the other.
struct grid {
  int steps, batch, hidden, chains, tiles, regular, group, period; // regular: tiles of a chain ahead of the last turn
  word *sums, *totals;
  unsigned* trouble;
  int times, over; // how much further in time, and in chains, a block's next tile is
  int apart;       // tiles of a chain from one of this block's to the next
  int groups;      // of a chain
  unsigned run;

  __device__ __forceinline__ void settle() {
    times = gridDim.x / chains, over = gridDim.x % chains;
    apart = (long long)period * gridDim.x / chains;
    groups = (tiles + group - 1) / group;
  }

  __device__ __forceinline__ int x() const { return threadIdx.x % LANES; }
  __device__ __forceinline__ bool last() const { return threadIdx.x >= THREADS - LANES; }

  __device__ __forceinline__ turn begin() const { return {(int)blockIdx.x % chains, (int)blockIdx.x / chains}; }
  __device__ __forceinline__ bool there(const turn& t) const { return t.time < tiles; }
  __device__ __forceinline__ void next(turn& t) const {
    t.time += times, t.chain += over;
    if (t.chain >= chains) t.chain -= chains, t.time++;
  }

  // each and low are the steps of a thread of a tile and the tile's first one.
  __device__ __forceinline__ int each(int time) const { return TAIL < K && time >= regular ? TAIL : K; }
  __device__ __forceinline__ int low(int time) const { return DEEP * (TAIL < K ? min(time, regular) * K + max(0, time - regular) * TAIL : time * K); }

  __device__ __forceinline__ tile at(const turn& at, int who) const {
    tile t;
    t.time = at.time;
    const unsigned across = hidden / V, column = at.chain * LANES + who % LANES;
    t.n = batch == 1 ? 0 : column / across, t.u = (column - t.n * across) * V;
    t.inside = column < batch * across;
    t.each = each(t.time), t.first = low(t.time) + who / LANES * t.each;
    t.steps = t.inside ? max(0, min(t.each, steps - t.first)) : 0;
    return t;
  }

  // sum and total are where a tile and a group of a turn's chain show what they make.
  __device__ __forceinline__ word* sum(const turn& t, int time) const { return sums + ((long long)t.chain * tiles + time) * (2 * VALUES); }
  __device__ __forceinline__ word* total(const turn& t, int i) const { return totals + ((long long)t.chain * groups + i) * (2 * VALUES); }
};

// count_block counts this block, once all of its threads have read the number of the run; the last one counted
// leaves the next run's. At the end of the kernel that would be one more way to memory.
__device__ __forceinline__ void count_block(word* ticket) {
  if (threadIdx.x == blockDim.x - 1 && (unsigned)atomicAdd(ticket, (word)1) == gridDim.x - 1) atomicAdd(ticket, ((word)1 << 32) - gridDim.x);
}

// await waits until a phase of a barrier in shared memory has ended.
__device__ __forceinline__ void await(shared_t bar, int phase) {
  while (!bar_try(bar, phase & 1)) pause();
}

// before turns what this thread's steps make into what all steps of the tile up to
// its last one make, and returns what those before its first one do. Rows are
// for this tile alone.
__device__ __forceinline__ several before(several& p, several* rows) {
#pragma unroll
  for (int d = LANES; d < 32; d *= 2)
#pragma unroll
    for (int i = 0; i < N; i++) {
      linear up;
      up.factor = __shfl_up_sync(0xffffffff, p.of[i].factor, d), up.add = __shfl_up_sync(0xffffffff, p.of[i].add, d);
      if (threadIdx.x % 32 >= d) p.of[i] = then(up, p.of[i]);
    }
  const int row = threadIdx.x / 32;
  rows += threadIdx.x % LANES;
  if (threadIdx.x % 32 >= 32 - LANES) rows[row * LANES] = p;
  meet_at(COMPOSED, THREADS);
  several earlier = identity();
#pragma unroll
  for (int i = 0; i < ROWS - 1; i++)
    if (i < row) earlier = then(earlier, rows[i * LANES]);
  p = then(earlier, p);
  if (LANES == 32) return earlier;
#pragma unroll
  for (int i = 0; i < N; i++) {
    linear up;
    up.factor = __shfl_up_sync(0xffffffff, p.of[i].factor, LANES), up.add = __shfl_up_sync(0xffffffff, p.of[i].add, LANES);
    if (threadIdx.x % 32 >= LANES) earlier.of[i] = up;
  }
  return earlier;
}

// follow gives step, in their order, one value of what so many tiles or groups show, once it
// is there; ahead of each LOOKS of them it calls ready. It reports whether they came.
template <class R, class F> __device__ __forceinline__ bool follow(const word* from, int count, const grid& g, R ready, F step) {
#pragma unroll 1
  for (; count > 0; count -= LOOKS, from += LOOKS * 2 * VALUES) {
    word a[LOOKS], b[LOOKS];
    unsigned missing = count < LOOKS ? (1u << count) - 1 : (1u << LOOKS) - 1;
    for (patience left; missing;) {
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if (missing >> i & 1) get_staying(a[i], b[i], from + i * (2 * VALUES));
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if ((missing >> i & 1) && of(a[i], g.run) && of(b[i], g.run)) missing &= ~(1u << i);
      if (missing && left.over(g.trouble)) return false;
    }
    ready();
#pragma unroll
    for (int i = 0; i < LOOKS; i++)
      if (i < count) step(linear{number(a[i]), number(b[i])});
  }
  return true;
}

// compose composes one value of what so many tiles show, in their order; it reports whether they did.
__device__ __forceinline__ bool compose(linear& all, const word* from, int count, const grid& g) {
  all = {1, 0};
  return follow(from, count, g, [] {}, [&](linear one) { all = then(all, one); });
}

// join shows what groups make whose last tile this block has. Nobody asks for a chain's last one, if it is not whole.
__device__ __forceinline__ void join(const grid& g, const int* done) {
  turn t = g.begin();
  for (int i = 0; g.there(t); g.next(t), i++) {
    const int inside = t.time % g.group;
    if (inside != g.group - 1) continue;
    while (get_here(done) < i - 1) rest();
#pragma unroll 1
    for (int v = threadIdx.x % 32; v < VALUES; v += 32) {
      linear all;
      if (!compose(all, g.sum(t, t.time - inside) + 2 * v, inside + 1, g)) return;
      put_staying(g.total(t, t.time / g.group) + 2 * v, tagged(all.factor, g.run), tagged(all.add, g.run));
    }
  }
}

// seek finds the states that the tiles of this block begin with, but not that of a
// chain's first, and arrives at the barriers where its threads wait for them, one
// for each of STATES tiles. Of the seekers, warps, each takes
// one of so many tiles; walked are the states behind all groups before those of the block's last tiles, one for each chain that it
// has tiles of, found counts the tiles for which they are, and done is the last tile after whose composition all
// threads have met, or the first. A state goes through the same numbers in the same order whichever block
// follows it: groups, one after the other, and the tiles of the own one, composed. Nobody looks for words long before they can be there.
__device__ __forceinline__ void seek(const grid& g, int which, float* starts, float* walked, int* found, const int* done) {
  bool fine = true;
  turn t = g.begin();
  for (int i = 0; g.there(t); g.next(t), i++) {
    if (i % SEEKERS != which) continue;
    while (get_here(done) < i - 1) rest();
    const int to = t.time / g.group, inside = t.time - to * g.group, from = max(0, t.time - g.apart) / g.group;
#pragma unroll 1
    for (int v = threadIdx.x % 32, first = 1; v < VALUES; v += 32, first = 0) {
      linear tiles;
      fine = fine && compose(tiles, g.sum(t, t.time - inside) + 2 * v, inside, g);
      float state = 0, *const last = walked + i % g.period * VALUES + v;
      bool known = false;
      auto ready = [&] {
        if (known) return;
        while (first && (get_here(found) < i || get_here(done) < i + BEHIND + 1 - STATES)) rest();
        state = i < g.period ? 0 : *last, known = true;
      };
      fine = fine && follow(g.total(t, from) + 2 * v, to - from, g, ready, [&](linear one) { state = after(one, state); });
      ready();
      *last = state;
      if (t.time > 0) starts[i % STATES * VALUES + v] = after(tiles, state);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) put_here(found, i + 1);
    arrive_at(STARTED + i % STATES, THREADS + 32);
  }
}

// seek_together does the same where there are no groups: of SEEKERS warps, each composes a part of the tiles of the chain from
// this block's last one, so that each looks but once, after the tile has been composed, and the first one
// puts the parts together, which it has done before any shares the next tile: all meet ahead of that. At the start all look at about the same time, and who looks a little too early must look again, after as
// long as whole tiles take from memory: hence nobody does before the block's second tile has come, if a third is copied then.
__device__ __forceinline__ void seek_together(const grid& g, int which, float* starts, float* walked, linear* parts, const int* second) {
  bool fine = true;
  turn t = g.begin(), third = t;
  g.next(third), g.next(third);
  for (int i = 0; g.there(t); g.next(t), i++) {
    meet_at(SHOWN + i % STATES, THREADS + 32 * SEEKERS);
    if (i == 0 && g.there(third))
      while (!get_here(second)) rest();
    const int from = max(0, t.time - g.apart), each = (t.time - from + SHARES - 1) / SHARES;
    const int share = which * SIDES + threadIdx.x % 32 / (32 / SIDES);
    const int first = min(t.time, from + share * each), count = min(each, t.time - first);
#pragma unroll 1
    for (int v = threadIdx.x % (32 / SIDES); v < VALUES; v += 32) {
      linear all = {1, 0};
      fine = fine && compose(all, g.sum(t, first) + 2 * v, count, g);
      parts[share * VALUES + v] = all;
    }
    __syncwarp();
    if (which > 0) {
      arrive_at(PARTED, 32 * SEEKERS);
      continue;
    }
    meet_at(PARTED, 32 * SEEKERS);
#pragma unroll 1
    for (int v = threadIdx.x % 32; v < VALUES; v += 32) {
      float* const last = walked + i % g.period * VALUES + v;
      float state = i < g.period ? 0 : *last;
#pragma unroll
      for (int k = 0; k < SHARES; k++) state = after(parts[k * VALUES + v], state);
      *last = state;
      if (t.time > 0) starts[i % STATES * VALUES + v] = state;
    }
    __syncwarp();
    arrive_at(STARTED + i % STATES, THREADS + 32);
  }
}
#ifdef SAMPLE_TEAM
#include "sample/team_entry.cuh"
#endif
