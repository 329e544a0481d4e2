#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_TEAM
#include "sample/team.cuh"
#endif
// A linear recurrence of few channels, in one pass over memory, by a team of blocks.
//
// Channels form chains of LANES lanes, with V adjacent channels per lane. A chain's time is cut
// into tiles. Blocks take the tiles in turns, in the order of time, and for each time the tiles of
// all chains. A block's compute threads form lanes, too; threads of the same lane have consecutive
// steps. A thread has K steps of a tile, or TAIL in the last turn.
//
// A block has these roles, and others where its tiles are whole rows (roles_rows.tpl):
//
//   compute   threads compose the steps of a tile to its tile aggregate and publish it. They
//             run the steps BEHIND tiles later. Until HOLD tiles later a tile stays in shared
//             memory; from then on it is in registers.
//   copy      a warp has tiles copied to shared memory, as soon as there is a place. In
//             inference and without groups it waits until the tile before has arrived.
//   join      a warp composes the group aggregates of groups whose last tile the block has.
//   seek      carry-propagation warps find the exclusive prefix of each tile by look-back:
//             over group aggregates, then over the tile aggregates within the group.
//
// Look-back follows the order of time, so results do not depend on which block came first. There
// are no groups if few tiles lie between a block's tile of a chain and its next one.

enum {
  DEEP = THREADS / LANES,  // threads per lane
  VALUES = LANES * N,      // values of a chain: N per lane
  ROWS = THREADS / 32,     // compute warps
  SIDES = VALUES < 32 && 32 % VALUES == 0 ? 32 / VALUES : 1, // threads of a seeker that share a value's look-back
  SHARES = SEEKERS * SIDES,                                  // shares of a look-back without groups
  ROUND = RING > 0 ? RING : 1 << 30,                         // tiles of a chain that have words of their own; later tiles reuse them
};

// Named barriers: COMPOSED is for the compute threads. STARTED and SHOWN have one for each of
// STATES tiles. PARTED is for the seekers that share a look-back.
enum { COMPOSED = 1, STARTED, SHOWN = STARTED + STATES, PARTED = SHOWN + STATES };

// A turn names a tile of a block: its chain and its place in time.
struct turn { int chain, time; };

// A tile has a thread's place in it.
struct tile {
  int time;
  bool inside;      // the thread has channels
  int n, u;         // the sequence and the first unit
  int first, steps; // the first step, and the number of steps; 0: the thread idles
  int each;         // steps of a thread that does not idle
};

// A grid says how a scan is divided, and where blocks publish: tile aggregates in sums, group
// aggregates in totals. A block has tiles of period chains, in turn.
struct grid {
  int steps, batch, hidden, chains, tiles, regular, group, period; // regular: tiles of a chain ahead of the last turn
  word *sums, *totals;
  unsigned* status;
  int times, over; // distance to a block's next tile, in time and in chains
  int apart;       // distance to a block's next tile of the same chain, in tiles
  int groups;      // groups of a chain
  unsigned run;
  int walkers = 0; // blocks that walk, ahead of all others

  __device__ __forceinline__ unsigned members() const { return RING > 0 ? gridDim.x - walkers : gridDim.x; }
  __device__ __forceinline__ int member() const { return RING > 0 ? blockIdx.x - walkers : blockIdx.x; }
  __device__ __forceinline__ void settle() {
    times = members() / chains, over = members() % chains;
    apart = (long long)period * members() / chains;
    groups = (tiles + group - 1) / group;
  }

  // who returns this thread's number; idle threads act as the last thread with a lane.
  __device__ __forceinline__ unsigned who() const { return DEEP * LANES < THREADS ? min((int)threadIdx.x, (int)(DEEP * LANES) - 1) : threadIdx.x; }
  __device__ __forceinline__ int x() const { return who() % LANES; }
  __device__ __forceinline__ bool last() const { return threadIdx.x >= (DEEP - 1) * LANES && (DEEP * LANES == THREADS || threadIdx.x < DEEP * LANES); }

  __device__ __forceinline__ turn begin() const { return {member() % chains, member() / chains}; }
  __device__ __forceinline__ bool there(const turn& t) const { return t.time < tiles; }
  __device__ __forceinline__ void next(turn& t) const {
    t.time += times, t.chain += over;
    if (t.chain >= chains) t.chain -= chains, t.time++;
  }

  // each is the number of steps of a thread in a tile; low is the tile's first step.
  __device__ __forceinline__ int each(int time) const { return TAIL < K && time >= regular ? TAIL : K; }
  __device__ __forceinline__ int low(int time) const { return DEEP * (TAIL < K ? min(time, regular) * K + max(0, time - regular) * TAIL : time * K); }

  __device__ __forceinline__ tile at(const turn& at, int who) const {
    tile t;
    t.time = at.time;
    if (UNITS > 0) t.inside = dealt(at.chain, who % LANES, batch, hidden, t.n, t.u);
    else {
      const unsigned across = hidden / V, column = at.chain * LANES + who % LANES;
      t.n = batch == 1 ? 0 : column / across, t.u = (column - t.n * across) * V;
      t.inside = column < batch * across;
    }
    if (DEEP * LANES < THREADS) t.inside = t.inside && who < DEEP * LANES;
    t.each = each(t.time), t.first = low(t.time) + who / LANES * t.each;
    t.steps = t.inside ? max(0, min(t.each, steps - t.first)) : 0;
    return t;
  }

  // taken returns the word that says that a chain's first tile has read the state of a lane.
  __device__ __forceinline__ word* taken(int chain, int lane) const { return sums + (long long)chains * (RING > 0 ? RING : tiles) * (2 * VALUES) + chain * LANES + lane; }

  // sum is where a tile of a turn's chain publishes its aggregate; total is where a group does.
  __device__ __forceinline__ word* sum(const turn& t, int time) const { return sums + ((long long)t.chain * tiles + time) * (2 * VALUES); }
  __device__ __forceinline__ word* total(const turn& t, int i) const { return totals + ((long long)t.chain * groups + i) * (2 * VALUES); }

  // For walkers: values counts a chain's values, and has tells whether one belongs to a channel.
  // sum and start are where a tile publishes its aggregate and finds its prefix. further is the
  // start of the tile i after a time. tag marks the words of a run and round.
  __device__ __forceinline__ int values() const { return VALUES; }
  __device__ __forceinline__ bool has(int chain, int v) const {
    int n, u;
    return v < VALUES && dealt(chain, v / N, batch, hidden, n, u);
  }
  __device__ __forceinline__ long long at(int chain, int time, int v) const { return ((long long)chain * ROUND + time % (unsigned)ROUND) * VALUES + v; }
  __device__ __forceinline__ word* sum(int chain, int time, int v) const { return sums + 2 * at(chain, time, v); }
  __device__ __forceinline__ word* start(int chain, int time, int v) const { return totals + at(chain, time, v); }
  __device__ __forceinline__ word* further(word* start, int time, int i) const { return start + (i - (time % (unsigned)ROUND + i < (unsigned)ROUND ? 0 : ROUND)) * VALUES; }
  __device__ __forceinline__ unsigned tag(unsigned run, int time) const { return run + time / (unsigned)ROUND; }
};

// count_block counts this block once all of its threads have read the number of the run. The last
// block counted writes the next run's number. Doing so at the end of the kernel would cost one more
// access to memory. A run uses so many numbers (runs).
__device__ __forceinline__ void count_block(word* ticket, int runs = 1) {
  if (threadIdx.x == blockDim.x - 1 && (unsigned)atomicAdd(ticket, (word)1) == gridDim.x - 1) atomicAdd(ticket, ((word)runs << 32) - gridDim.x);
}

// await waits until a phase of a barrier in shared memory has ended.
__device__ __forceinline__ void await(shared_t bar, int phase) {
  while (!bar_try(bar, phase & 1)) pause();
}

// await_all is await for a whole warp, whose threads leave together by a vote. If they left one by
// one, nothing would bring them together before arrive_at, which would count the warp several
// times.
__device__ __forceinline__ void await_all(shared_t bar, int phase) {
  while (!__all_sync(0xffffffff, bar_try(bar, phase & 1))) pause();
}

// write_stretch writes bytes, by a warp, that begin equally far after a multiple of 16 in shared
// memory and in memory. The copy engine writes whole pieces of EACH bytes, at multiples of EACH.
// Threads write the rest at both ends.
template <int EACH, class T> __device__ __forceinline__ void write_stretch(T* to, const unsigned char* from, int bytes) {
  const int head = min(bytes, (int)(-(unsigned)(size_t)to & (EACH - 1))), whole = (bytes - head) / EACH * EACH;
  if (threadIdx.x % 32 == 0 && whole > 0) write_bulk((char*)to + head, shared_address(from + head), whole);
  for (int i = threadIdx.x % 32 * (int)sizeof(T); i < bytes - whole; i += 32 * (int)sizeof(T)) {
    const int at = i < head ? i : i + whole;
    *(T*)((char*)to + at) = *(const T*)(from + at);
  }
}

// before is a scan over the threads of a lane. It turns p, the composition of this thread's
// steps, into the inclusive prefix within the tile, and returns the exclusive one. No other
// tile may use rows at the same time.
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

// before_rows is the same if there are more lanes than threads in a warp.
__device__ __forceinline__ several before_rows(several& p, several* rows) {
  several earlier = identity();
  if (DEEP == 1) return earlier;
  const int row = threadIdx.x / LANES;
  if (row < DEEP - 1) rows[threadIdx.x] = p;
  meet_at(COMPOSED, THREADS);
  rows += threadIdx.x % LANES;
#pragma unroll
  for (int i = 0; i < DEEP - 1; i++)
    if (i < row) earlier = then(earlier, rows[i * LANES]);
  p = then(earlier, p);
  return earlier;
}

// follow passes one value of count aggregates to step, in order, as they are published. It calls
// ready before each batch of LOOKS aggregates. It returns whether all were published.
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
      if (missing && left.over(g.status)) return false;
    }
    ready();
#pragma unroll
    for (int i = 0; i < LOOKS; i++)
      if (i < count) step(linear{number(a[i]), number(b[i])});
  }
  return true;
}

// compose composes one value of count tile aggregates, in their order. It reports whether
// all were published.
__device__ __forceinline__ bool compose(linear& all, const word* from, int count, const grid& g) {
  all = {1, 0};
  return follow(from, count, g, [] {}, [&](linear one) { all = then(all, one); });
}

// join publishes the aggregates of groups whose last tile this block has. Nobody reads that
// of a chain's last group if it is not whole.
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

// seek finds the exclusive prefixes of this block's tiles, but for a chain's first tile. It
// leaves them in starts and arrives at the barriers where the compute threads wait, one for
// each of STATES tiles. The SEEKERS warps take the block's tiles in turns.
//
// For each chain of the block, walked has the state behind all groups ahead of the group of
// the block's latest tile. found counts the tiles for which walked is up to date. done is
// the latest tile whose composition all compute threads have finished.
//
// Every block combines the same aggregates in the same order: groups, one after the other,
// then the composition of the tiles within the group. No warp polls for words long before
// they can be there.
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

// seek_together does the same without groups. The SEEKERS warps share the tiles since this
// block's last one of the chain. After the block's own tile has been composed, each warp
// composes its share, so it needs a single look. The first warp applies the shares in order.
// All warps meet ahead of the next tile, so parts is free again by then.
//
// At the start, all blocks look at about the same time. A look that comes a little too early
// must be repeated, and competes with the copies of whole tiles. So if the block has a third
// tile, the first look waits until the second tile has arrived.
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

// seek_given waits for the prefixes of this block's tiles, which walkers find. Each warp has 32 of
// a tile's values, then every SEEKERS-th 32 after them.
__device__ __forceinline__ void seek_given(const grid& g, int which, float* starts) {
  enum { EACH = (VALUES + 32 * SEEKERS - 1) / (32 * SEEKERS) };
  const int first = which * 32 + threadIdx.x % 32;
  bool fine = true;
  turn t = g.begin();
  for (int i = 0; g.there(t); g.next(t), i++) {
    meet_at(SHOWN + i % STATES, THREADS + 32 * SEEKERS);
    word w[EACH];
    unsigned missing = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (fine && t.time > 0 && g.has(t.chain, first + k * 32 * SEEKERS)) missing |= 1u << k;
    const unsigned all = missing, round = g.tag(g.run, t.time);
    for (patience left; __any_sync(0xffffffff, missing);) {
#pragma unroll
      for (int k = 0; k < EACH; k++)
        if (missing >> k & 1) w[k] = get_staying(g.start(t.chain, t.time, first + k * 32 * SEEKERS));
#pragma unroll
      for (int k = 0; k < EACH; k++)
        if ((missing >> k & 1) && of(w[k], round)) missing &= ~(1u << k);
      if (missing && left.over(g.status)) fine = false, missing = 0;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (all >> k & 1) starts[i % STATES * VALUES + first + k * 32 * SEEKERS] = number(w[k]);
    __syncwarp();
    arrive_at(STARTED + i % STATES, THREADS + 32 * SEEKERS);
  }
}
#ifdef SAMPLE_TEAM
#include "sample/team_entry.cuh"
#endif
