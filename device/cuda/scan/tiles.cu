#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_TILES
#include "sample/tiles.cuh"
#endif
// A linear recurrence in one pass over memory. Tiles, some channels over a
// stretch of time, are handed out in the order of time. The threads of a tile's
// block lie in lanes, V channels side by side each, and behind one another in
// time; each has K steps. A block composes the steps of its tile to one, shows
// the other blocks what that is or what it leads to, waits for the state that the tile
// begins with and then computes its steps from there.
//
// Where there are many chains of tiles, a block shows the next tile of the chain
// the state behind its own. Where they are few, states would wait for each other:
// some blocks are walkers, which walk through what the tiles of their chains show,
// in the order of time, and show each tile the state that it begins with. Either
// way results do not depend on who came first.

enum { LOOKS = 24 }; // of a walker at a time

// A tile and the place of this thread in it.
struct tile {
  bool there = false;
  int time, chain;      // which
  int n, u;             // the sequence and the first unit
  int first, steps = 0; // the first step and how many; 0: the thread idles
};

// A grid is how a scan is cut, with the place of this thread in a block of 2^bits
// lanes. The tiles of a chain lie behind one another.
struct grid {
  int steps, batch, hidden, bits, chains, tiles, walkers;
  word *tickets, *sums, *starts;
  unsigned* trouble;

  __device__ __forceinline__ int lanes() const { return 1 << bits; }
  __device__ __forceinline__ int x() const { return threadIdx.x & (lanes() - 1); }
  __device__ __forceinline__ int y() const { return threadIdx.x >> bits; }
  __device__ __forceinline__ int deep() const { return blockDim.x >> bits; }
  __device__ __forceinline__ bool last() const { return threadIdx.x >= blockDim.x - lanes(); }
  // A row is the lanes that a warp or, where there are more lanes, several share.
  __device__ __forceinline__ int rowbits() const { return max(bits, 5); }
  __device__ __forceinline__ int row() const { return threadIdx.x >> rowbits(); }
  __device__ __forceinline__ int rows() const { return blockDim.x >> rowbits(); }

  __device__ __forceinline__ unsigned all() const { return chains * tiles; }
  __device__ __forceinline__ int values() const { return N << bits; } // of a chain

  // draw is a place among the walkers or, behind them, the next tile of this run,
  // all() or more where there is none. The last draw of a run, when it is noted, begins
  // the next.
  __device__ __forceinline__ word draw() const { return atomicAdd(tickets, (word)1); }
  __device__ __forceinline__ word noted(word ticket) const {
    const unsigned last = all() + gridDim.x - 1;
    if ((unsigned)ticket == last) atomicAdd(tickets, ((word)1 << 32) - last - 1);
    return ticket;
  }

  __device__ __forceinline__ tile at(unsigned i) const {
    tile t;
    t.there = i < all();
    if (!t.there) return t;
    t.time = i / (unsigned)chains, t.chain = i - t.time * chains;
    const unsigned across = hidden / V, column = (t.chain << bits) + x();
    t.n = batch == 1 ? 0 : column / across, t.u = (column - t.n * across) * V;
    t.first = (t.time * deep() + y()) * K;
    t.steps = column < batch * across ? max(0, min((int)K, steps - t.first)) : 0;
    return t;
  }

  // has reports whether value v of a chain is one of a channel.
  __device__ __forceinline__ bool has(int chain, int v) const { return v < values() && (chain << bits) + v / N < batch * (hidden / V); }

  // sum is where a tile shows what its steps make of value v, start where the value
  // is that it begins with.
  __device__ __forceinline__ word* sum(int chain, int time, int v) const { return sums + 2 * (((long long)chain * tiles + time) * values() + v); }
  __device__ __forceinline__ word* start(int chain, int time, int v) const { return starts + ((long long)chain * tiles + time) * values() + v; }
};

// stagger waits so many cycles.
__device__ __forceinline__ void stagger(int cycles) {
  for (const long long start = clock64(); clock64() - start < cycles;) {}
}

// within composes in p what the threads of the lane up to this one hold, as far
// as they are of its warp, and leaves in rows what those of each row hold
// together.
__device__ __forceinline__ void within(several& p, several* rows, const grid& g) {
  for (int d = g.lanes(); d < 32; d *= 2) {
#pragma unroll
    for (int i = 0; i < N; i++) {
      linear up;
      up.factor = __shfl_up_sync(0xffffffff, p.of[i].factor, d), up.add = __shfl_up_sync(0xffffffff, p.of[i].add, d);
      if (threadIdx.x % 32 >= d) p.of[i] = then(up, p.of[i]);
    }
  }
  const int wide = 1 << g.rowbits();
  if ((threadIdx.x & (wide - 1)) >= wide - g.lanes()) rows[(g.row() << g.bits) + g.x()] = p;
}

// fold composes the first rows.
__device__ __forceinline__ several fold(const several* rows, int count, const grid& g) {
  several p = identity();
  const several* const end = rows + (count << g.bits);
#pragma unroll 1
  for (rows += g.x(); rows < end; rows += g.lanes()) p = then(p, *rows);
  return p;
}

// until waits until there is what this lane wants. All lanes of the warp leave
// together.
template <class F> __device__ __forceinline__ void until(F there, bool wanted, unsigned* trouble) {
  for (patience left; __ballot_sync(0xffffffff, wanted);)
    if (wanted) wanted = !there() && !left.over(trouble);
}

// A tile's last lanes and the threads of their warps, value by value: mouth reports
// whether this thread is one of them, mouthful is the first value of its warp, and each(f) is f of the thread's values,
// which are within the chain where has holds.
__device__ __forceinline__ bool mouth(const grid& g) { return (threadIdx.x | 31) >= blockDim.x - g.lanes(); }
__device__ __forceinline__ int mouthful(const grid& g) { return max(0, (int)(threadIdx.x / 32 * 32 - (blockDim.x - g.lanes()))) * N; }
template <class F> __device__ __forceinline__ void each(const grid& g, const tile& t, F f) {
  const int from = mouthful(g), to = from + min(32, g.lanes()) * N;
#pragma unroll 1
  for (int v = from + threadIdx.x % 32; v / 32 * 32 < to; v += 32) f(v, v < to && g.has(t.chain, v));
}

// tell leaves in total what a tile's steps make, given what the row up to a thread's
// last step and the rows before it do, and shows it to the walkers. The first tiles of
// time find in start what they begin with.
__device__ __forceinline__ void tell(const grid& g, const tile& t, const several& row, const several& earlier, linear* total, const float* start, unsigned run) {
  if (g.last())
#pragma unroll
    for (int i = 0; i < N; i++) total[g.x() * N + i] = then(earlier.of[i], row.of[i]);
  __syncwarp();
  if (g.walkers && t.time < g.tiles - 1)
    each(g, t, [&](int v, bool has) {
      if (!has) return;
      const linear all = total[v];
      if (t.time == 0) put_staying(g.sum(t.chain, 0, v), tagged(0, run), tagged(after(all, start[v]), run));
      else put_staying(g.sum(t.chain, t.time, v), tagged(all.factor, run), tagged(all.add, run));
    });
}

// show tells the next tile the state that it begins with, value v behind this tile's last step, unless walkers do.
__device__ __forceinline__ void show(const grid& g, const tile& t, int v, const linear* total, const float* start, unsigned run) {
  if (!g.walkers && t.time < g.tiles - 1) put_staying(g.start(t.chain, t.time + 1, v), tagged(after(total[v], start[v]), run));
}

// glance shows the next tile the states behind a first one, which has its own, and
// begins to look for those of another: the look is under way while the block begins to copy its next tile.
__device__ __forceinline__ word glance(const grid& g, const tile& t, const linear* total, const float* start, unsigned run) {
  if (t.time == 0) {
    each(g, t, [&](int v, bool has) {
      if (has) show(g, t, v, total, start, run);
    });
    return 0;
  }
  const int v = mouthful(g) + threadIdx.x % 32;
  return v < g.values() && g.has(t.chain, v) ? get_staying(g.start(t.chain, t.time, v)) : 0;
}

// find leaves in start the states before a tile's first steps and shows the next tile those
// behind the last ones; seen is what a glance saw.
__device__ __forceinline__ void find(const grid& g, const tile& t, const linear* total, float* start, unsigned run, word seen) {
  if (t.time == 0) return;
  each(g, t, [&](int v, bool has) {
    word w = seen;
    seen = 0;
    until([&] { return of(w = get_staying(g.start(t.chain, t.time, v)), run); }, has && !of(w, run), g.trouble);
    if (!has) return;
    start[v] = number(w);
    show(g, t, v, total, start, run);
  });
}

// before is the state before this thread's steps.
__device__ __forceinline__ void before(float (&state)[N], const grid& g, const several& row, const several& earlier, const float* start) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    state[i] = after(earlier.of[i], start[g.x() * N + i]);
    const float up = __shfl_up_sync(0xffffffff, after(row.of[i], state[i]), g.lanes() & 31);
    if (threadIdx.x % 32 >= g.lanes()) state[i] = up;
  }
}

// walk is what walker number first does. Values of chains, 32 side by side, are
// dealt out to walkers; a warp takes LOOKS tiles of one after the other, in the order of
// time, and hands the state on to the warp that has the next ones.
__device__ __forceinline__ void walk(const grid& g, int first, unsigned char* memory, unsigned run) {
  const int pieces = (g.values() + 31) / 32, mine = (g.chains * pieces - first + g.walkers - 1) / g.walkers;
  const int lane = threadIdx.x % 32, batches = (g.tiles - 2 + LOOKS) / LOOKS;
  int* const done = (int*)memory;
  float* const states = (float*)(done + mine);
  for (int i = threadIdx.x; i < mine; i += blockDim.x) done[i] = 0;
  __syncthreads();
#pragma unroll 1
  for (int task = threadIdx.x / 32; task < batches * mine; task += blockDim.x / 32) {
    const int batch = task / mine, which = task - batch * mine, piece = first + which * g.walkers;
    const int chain = piece / pieces, v = piece % pieces * 32 + lane, time = batch * LOOKS, count = min((int)LOOKS, g.tiles - 1 - time);
    const word* const from = g.sum(chain, time, v);
    word* const to = g.start(chain, time + 1, v);
    word a[LOOKS], b[LOOKS];
    unsigned missing = !g.has(chain, v) ? 0 : 0xffffffffu >> 32 - count;
    int next = missing ? 0 : count;
    float state = 0;
    bool begun = false;
    for (patience left; __ballot_sync(0xffffffff, next < count);) {
      if (__ballot_sync(0xffffffff, missing)) {
#pragma unroll
        for (int i = 0; i < LOOKS; i++)
          if (missing >> i & 1) get_staying(a[i], b[i], from + (long long)i * 2 * g.values());
#pragma unroll
        for (int i = 0; i < LOOKS; i++)
          if (missing >> i & 1 && of(a[i], run) && of(b[i], run)) missing &= ~(1u << i);
      }
      if (!begun && !__ballot_sync(0xffffffff, get_here(done + which) < batch)) {
        begun = true;
        if (batch > 0) state = states[which * 32 + lane];
      }
      const int upto = !begun ? next : missing ? __ffs(missing) - 1 : count;
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if (i >= next && i < upto) {
          state = number(a[i]) * state + number(b[i]);
          put_staying(to + (long long)i * g.values(), tagged(state, run));
        }
      next = upto;
      if (next < count && left.over(g.trouble)) missing = 0, next = count;
    }
    states[which * 32 + lane] = state;
    __syncwarp();
    if (lane == 0) put_here(done + which, batch + 1);
  }
}
#ifdef SAMPLE_TILES
#include "sample/tiles_entry.cuh"
#endif
