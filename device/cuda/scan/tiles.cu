#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_TILES
#include "sample/tiles.cuh"
#endif
// A linear recurrence in one pass over memory. A tile is some channels over some steps. Blocks draw
// tiles in the order of time. A block's threads form lanes of V adjacent channels; threads of the
// same lane have consecutive steps, K each. A block composes the steps of its tile to the tile
// aggregate, waits for the tile's exclusive prefix, and computes the steps from there.
//
// With many chains of tiles, a block passes the state after its tile to the next tile of the chain.
// With few chains, tiles would wait long for each other. Then blocks publish tile aggregates, and
// some blocks are walkers: their carry-propagation warps go over the aggregates in the order of
// time and give each tile its prefix. Either way results do not depend on which block came first.

// A tile has this thread's place in it.
struct tile {
  bool there = false;
  int time, chain;      // which tile
  int n, u;             // the sequence and the first unit
  int first, steps = 0; // the first step, and the number of steps; 0: the thread idles
};

enum { DIVISOR = UNITS > 0 ? LANES : 1 };

// A grid says how a scan is divided. A block has LANES lanes if chains are dealt out, else 2^bits,
// since shifts by bits take fewer registers than products with a number of lanes. The tiles of a
// chain follow each other in time.
struct grid {
  int steps, batch, hidden, bits, chains, tiles, walkers;
  word *tickets, *sums, *starts;
  unsigned* status;

  __device__ __forceinline__ int lanes() const { return UNITS > 0 ? (int)LANES : 1 << bits; }
  __device__ __forceinline__ int x() const { return UNITS > 0 ? threadIdx.x % DIVISOR : threadIdx.x & (lanes() - 1); }
  __device__ __forceinline__ int y() const { return lines(threadIdx.x); }
  __device__ __forceinline__ int deep() const { return lines(blockDim.x); }
  // A line is one thread of each lane. span is the number of lanes of so many lines, and lines is
  // the number of lines of so many threads.
  __device__ __forceinline__ int span(int times) const { return UNITS > 0 ? times * LANES : times << bits; }
  __device__ __forceinline__ int lines(unsigned threads) const { return UNITS > 0 ? threads / DIVISOR : threads >> bits; }
  __device__ __forceinline__ bool last() const { return threadIdx.x >= blockDim.x - lanes(); }
  // A row is the threads of a warp, or of all lanes where there are more than 32.
  __device__ __forceinline__ int row() const { return wide(threadIdx.x); }
  __device__ __forceinline__ int rows() const { return wide(blockDim.x); }
  // wide is the number of rows of so many threads.
  __device__ __forceinline__ int wide(unsigned threads) const { return UNITS > 0 ? threads / max(32, (int)LANES) : threads >> max(bits, 5); }
  // closes reports whether this thread is in the last line of its row.
  __device__ __forceinline__ bool closes() const {
    const int row = UNITS > 0 ? 32 : 1 << max(bits, 5);
    return (int)(threadIdx.x & (row - 1)) >= row - lanes();
  }

  __device__ __forceinline__ unsigned all() const { return chains * tiles; }
  __device__ __forceinline__ int values() const { return span(N); } // of a chain

  // draw returns a ticket: a walker's number or, after those, the number of the run's next tile.
  // With all() or more, none is left. noted resets the counter after the run's
  // last draw.
  //
  // once reports that each block has one tile, which waits for no other. Such a block does not
  // draw, since that would be a memory access before all others. It uses the ticket without.
  __device__ __forceinline__ bool once() const { return tiles == 1 && walkers == 0 && chains <= gridDim.x; }
  __device__ __forceinline__ word draw(word without) const { return once() ? without : atomicAdd(tickets, (word)1); }
  __device__ __forceinline__ word noted(word ticket) const {
    const unsigned last = all() + gridDim.x - 1;
    if (!once() && (unsigned)ticket == last) atomicAdd(tickets, ((word)1 << 32) - last - 1);
    return ticket;
  }

  __device__ __forceinline__ tile at(unsigned i) const {
    tile t;
    t.there = i < all();
    if (!t.there) return t;
    t.time = i / (unsigned)chains, t.chain = i - t.time * chains;
    const unsigned across = hidden / V, column = span(t.chain) + x();
    bool inside = column < batch * across;
    if (UNITS > 0) inside = dealt(t.chain, x(), batch, hidden, t.n, t.u);
    else t.n = batch == 1 ? 0 : column / across, t.u = (column - t.n * across) * V;
    t.first = (t.time * deep() + y()) * K;
    t.steps = inside ? max(0, min((int)K, steps - t.first)) : 0;
    return t;
  }

  // has reports whether value v of a chain belongs to a channel.
  __device__ __forceinline__ bool has(int chain, int v) const {
    int n, u;
    if (UNITS > 0) return v < values() && dealt(chain, v / N, batch, hidden, n, u);
    return v < values() && span(chain) + v / N < batch * (hidden / V);
  }

  // sum is where a tile publishes its aggregate for value v; start is where it finds its
  // exclusive prefix.
  __device__ __forceinline__ word* sum(int chain, int time, int v) const { return sums + 2 * (((long long)chain * tiles + time) * values() + v); }
  __device__ __forceinline__ word* start(int chain, int time, int v) const { return starts + ((long long)chain * tiles + time) * values() + v; }
  // further is the start of the tile i after a time, and tag marks a tile's words of a run.
  __device__ __forceinline__ word* further(word* start, int, int i) const { return start + (long long)i * values(); }
  __device__ __forceinline__ unsigned tag(unsigned run, int) const { return run; }

  // taken says that a chain's first tile has read a lane's state. Its place is an unused prefix.
  __device__ __forceinline__ word* taken(int chain, int lane) const { return start(chain, 0, lane * N); }
};

// stagger waits for a number of cycles.
__device__ __forceinline__ void stagger(int cycles) {
  for (const long long start = clock64(); clock64() - start < cycles;) {}
}

// within turns p into the composition of the lane's threads up to this one, within its warp. It
// leaves the composition of each whole row in rows.
__device__ __forceinline__ void within(several& p, several* rows, const grid& g) {
  for (int d = g.lanes(); d < 32; d *= 2) {
#pragma unroll
    for (int i = 0; i < N; i++) {
      linear up;
      up.factor = __shfl_up_sync(0xffffffff, p.of[i].factor, d), up.add = __shfl_up_sync(0xffffffff, p.of[i].add, d);
      if (threadIdx.x % 32 >= d) p.of[i] = then(up, p.of[i]);
    }
  }
  if (g.closes()) rows[g.span(g.row()) + g.x()] = p;
}

// fold composes the first count rows.
__device__ __forceinline__ several fold(const several* rows, int count, const grid& g) {
  several p = identity();
  const several* const end = rows + g.span(count);
#pragma unroll 1
  for (rows += g.x(); rows < end; rows += g.lanes()) p = then(p, *rows);
  return p;
}

// until waits until there() returns true on all lanes that wanted it. All lanes of the warp leave
// together.
template <class F> __device__ __forceinline__ void until(F there, bool wanted, unsigned* status) {
  for (patience left; __ballot_sync(0xffffffff, wanted);)
    if (wanted) wanted = !there() && !left.over(status);
}

// The edge of a tile is its last line and the other threads of these warps; they exchange the
// tile's values. at_edge reports whether this thread is one of them, and edge_begin is the first
// value of its warp. each calls f for each of the thread's values, and says whether the value
// belongs to the chain.
__device__ __forceinline__ bool at_edge(const grid& g) { return (threadIdx.x | 31) >= blockDim.x - g.lanes(); }
__device__ __forceinline__ int edge_begin(const grid& g) { return max(0, (int)(threadIdx.x / 32 * 32 - (blockDim.x - g.lanes()))) * N; }
template <class F> __device__ __forceinline__ void each(const grid& g, const tile& t, F f) {
  const int from = edge_begin(g), to = from + min(32, g.lanes()) * N;
#pragma unroll 1
  for (int v = from + threadIdx.x % 32; v / 32 * 32 < to; v += 32) f(v, v < to && g.has(t.chain, v));
}

// publish_aggregate leaves the tile aggregate in total, given the compositions of the thread's row
// and of the rows before it, and publishes it for walkers. A chain's first tile publishes the state
// after it, from its prefix in start.
__device__ __forceinline__ void publish_aggregate(const grid& g, const tile& t, const several& row, const several& earlier, linear* total, const float* start, unsigned run) {
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

// pass_prefix gives the next tile its prefix: value v after this tile's last step. Walkers, if any,
// do so instead.
__device__ __forceinline__ void pass_prefix(const grid& g, const tile& t, int v, const linear* total, const float* start, unsigned run) {
  if (!g.walkers && t.time < g.tiles - 1) put_staying(g.start(t.chain, t.time + 1, v), tagged(after(total[v], start[v]), run));
}

// peek_prefix passes on the states after a chain's first tile, which knows its prefix. For other
// tiles it starts to read the prefix. That read is in flight while the block starts to copy its
// next tile.
__device__ __forceinline__ word peek_prefix(const grid& g, const tile& t, const linear* total, const float* start, unsigned run) {
  if (t.time == 0) {
    each(g, t, [&](int v, bool has) {
      if (has) pass_prefix(g, t, v, total, start, run);
    });
    return 0;
  }
  const int v = edge_begin(g) + threadIdx.x % 32;
  return v < g.values() && g.has(t.chain, v) ? get_staying(g.start(t.chain, t.time, v)) : 0;
}

// await_prefix leaves the tile's exclusive prefix in start, and passes the states after the tile on
// to the next one. seen is what peek_prefix has read.
__device__ __forceinline__ void await_prefix(const grid& g, const tile& t, const linear* total, float* start, unsigned run, word seen) {
  if (t.time == 0) return;
  each(g, t, [&](int v, bool has) {
    word w = seen;
    seen = 0;
    until([&] { return of(w = get_staying(g.start(t.chain, t.time, v)), run); }, has && !of(w, run), g.status);
    if (!has) return;
    start[v] = number(w);
    pass_prefix(g, t, v, total, start, run);
  });
}

// before computes the state before this thread's steps.
__device__ __forceinline__ void before(float (&state)[N], const grid& g, const several& row, const several& earlier, const float* start) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    state[i] = after(earlier.of[i], start[g.x() * N + i]);
    const float up = __shfl_up_sync(0xffffffff, after(row.of[i], state[i]), g.lanes() & 31);
    if (threadIdx.x % 32 >= g.lanes()) state[i] = up;
  }
}
#ifdef SAMPLE_TILES
#include "sample/tiles_entry.cuh"
#endif
