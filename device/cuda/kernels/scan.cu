// A linear recurrence in one pass over memory. Tiles, some channels over a
// stretch of time, are handed out in the order of time. The threads of a tile's
// block lie in lanes, V channels side by side each, and behind one another in
// time; each has K steps. A block composes the steps of its tile to one, shows
// the other blocks what that is, looks back at those of the tiles before it and
// then computes its steps from the state that they lead to.
//
// Looking back goes in groups of tiles: over what the tiles before it in the
// group show, always in the same order, to the state that the group begins with, which the last
// tile of the group before shows. So results do not depend on who came first.

// Steps of the recurrence as one: they make factor·h + add of a state h.
struct linear { float factor, add; };

__device__ __forceinline__ linear then(linear first, linear second) {
  linear both;
  both.factor = first.factor * second.factor;
  both.add = second.factor * first.add + second.add;
  return both;
}

enum { BUFFERS = 3 }; // one fills, one is composed, one waits for its state

// A tile and the place of this thread in it.
struct tile {
  bool there = false;
  int time, chain;      // which
  int n, u;             // the sequence and the first unit
  int first, steps = 0; // the first step and how many; 0: the thread idles
};

struct grid {
  int steps, batch, hidden, lanes, chains, tiles; // chains of tiles behind one another
  int group;
  word *tickets, *sums, *starts;
  unsigned* trouble;

  __device__ __forceinline__ unsigned all() const { return chains * tiles; }

  // draw is the next tile of this run, all() or more where there is none. The last draw
  // of a run begins the next.
  __device__ __forceinline__ word draw() const {
    const word ticket = atomicAdd(tickets, (word)1);
    const unsigned last = all() + gridDim.x - 1;
    if ((unsigned)ticket == last) atomicAdd(tickets, ((word)1 << 32) - last - 1);
    return ticket;
  }

  __device__ __forceinline__ tile at(unsigned i) const {
    tile t;
    t.there = i < all();
    if (!t.there) return t;
    t.time = i / chains, t.chain = i % chains;
    const int across = hidden / V, x = t.chain * lanes + threadIdx.x % lanes;
    t.n = x / across, t.u = x % across * V;
    t.first = (t.time * (blockDim.x / lanes) + threadIdx.x / lanes) * K;
    t.steps = x < batch * across ? max(0, min((int)K, steps - t.first)) : 0;
    return t;
  }
};

// identity composes nothing.
__device__ __forceinline__ void identity(linear (&p)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) p[i].factor = 1, p[i].add = 0;
}

// within composes in p what the threads of the lane up to this one hold, as far
// as they are of its warp, and shows in rows what those of the warp hold together.
__device__ __forceinline__ void within(linear (&p)[N], linear* rows, int lanes) {
  for (int d = lanes; d < 32; d *= 2) {
#pragma unroll
    for (int i = 0; i < N; i++) {
      linear up;
      up.factor = __shfl_up_sync(0xffffffff, p[i].factor, d), up.add = __shfl_up_sync(0xffffffff, p[i].add, d);
      if (threadIdx.x % 32 >= d) p[i] = then(up, p[i]);
    }
  }
  const int wide = max(lanes, 32), row = threadIdx.x / wide;
  if (threadIdx.x % wide >= wide - lanes)
#pragma unroll
    for (int i = 0; i < N; i++) rows[(row * N + i) * lanes + threadIdx.x % lanes] = p[i];
}

// fold composes so many rows.
__device__ __forceinline__ void fold(linear (&p)[N], const linear* rows, int count, int lanes) {
  identity(p);
  for (int row = 0; row < count; row++)
#pragma unroll
    for (int i = 0; i < N; i++) p[i] = then(p[i], rows[(row * N + i) * lanes + threadIdx.x % lanes]);
}

// before leaves in p what the threads of the lane up to this one compose, and in
// earlier what those before it do.
__device__ __forceinline__ void before(linear (&p)[N], linear (&earlier)[N], linear* rows, int lanes) {
  within(p, rows, lanes);
  linear self[N];
  identity(self);
  if (lanes < 32)
#pragma unroll
    for (int i = 0; i < N; i++) {
      linear up;
      up.factor = __shfl_up_sync(0xffffffff, p[i].factor, lanes), up.add = __shfl_up_sync(0xffffffff, p[i].add, lanes);
      if (threadIdx.x % 32 >= lanes) self[i] = up;
    }
  __syncthreads();
  fold(earlier, rows, threadIdx.x / max(lanes, 32), lanes);
#pragma unroll
  for (int i = 0; i < N; i++) p[i] = then(earlier[i], p[i]), earlier[i] = then(earlier[i], self[i]);
}

// A patience bounds a wait: it ends after a second, or once another block has
// given up.
struct patience {
  unsigned looks = 0;
  long long start = 0;
  __device__ __forceinline__ bool over(unsigned* trouble) {
    pause();
    if (++looks % 1024) return false;
    if (start == 0) start = clock64();
    if (get_acquire(trouble)) return true;
    if (clock64() - start < 2000000000ll) return false;
    *trouble = STUCK;
    return true;
  }
};

// A word holds a number and the run that it is of.
__device__ __forceinline__ word tagged(float v, unsigned run) { return (word)run << 32 | __float_as_uint(v); }
__device__ __forceinline__ bool of(word w, unsigned run) { return (unsigned)(w >> 32) == run; }
__device__ __forceinline__ float number(word w) { return __uint_as_float((unsigned)w); }

// show lets other blocks see sums or states, await waits to see them.
__device__ __forceinline__ void show(word* p, const linear (&v)[N], unsigned run) {
#pragma unroll
  for (int i = 0; i < N; i++) put_words(p + 2 * i, tagged(v[i].factor, run), tagged(v[i].add, run));
}
__device__ __forceinline__ void show(word* p, const float (&v)[N], unsigned run) {
#pragma unroll
  for (int i = 0; i < N; i++) put_word(p + i, tagged(v[i], run));
}
__device__ __forceinline__ void await(linear (&v)[N], const word* p, unsigned run, unsigned* trouble) {
  patience left;
  for (bool all = false; !all;) {
    all = true;
#pragma unroll
    for (int i = 0; i < N; i++) {
      word a, b;
      get_words(a, b, p + 2 * i);
      v[i].factor = number(a), v[i].add = number(b);
      all = all && of(a, run) && of(b, run);
    }
    if (!all && left.over(trouble)) return;
  }
}
__device__ __forceinline__ void await(float (&v)[N], const word* p, unsigned run, unsigned* trouble) {
  patience left;
  for (bool all = false; !all;) {
    all = true;
#pragma unroll
    for (int i = 0; i < N; i++) {
      const word w = get_word(p + i);
      v[i] = number(w);
      all = all && of(w, run);
    }
    if (!all && left.over(trouble)) return;
  }
}

// sums are where the tiles of t's group show what they make, this one's first.
__device__ __forceinline__ word* sums(const grid& g, const tile& t, int inside) {
  return g.sums + ((long long)t.chain * g.tiles + t.time - t.time % g.group + inside) * (2 * N * g.lanes) + threadIdx.x % g.lanes * (2 * N);
}
__device__ __forceinline__ bool ends(const grid& g, const tile& t) { return t.time % g.group == g.group - 1 || t.time == g.tiles - 1; }
__device__ __forceinline__ bool mine(const grid& g, const tile& t) { return t.chain * g.lanes + threadIdx.x % g.lanes < g.batch * (g.hidden / V); }
__device__ __forceinline__ bool last(const grid& g) { return threadIdx.x >= blockDim.x - g.lanes; }

// tell shows what a tile makes to those that look back at it.
__device__ __forceinline__ void tell(const grid& g, const tile& t, const linear (&own)[N], unsigned run) {
  if (t.there && last(g) && mine(g, t) && !ends(g, t)) show(sums(g, t, t.time % g.group), own, run);
}

// look finds the states before this thread's steps of a tile, given what they
// make, own with those of the lane before it and earlier without. The first tile
// of all finds in start what it starts from.
__device__ __forceinline__ void look(const grid& g, const tile& t, const linear (&own)[N], const linear (&earlier)[N], float (&state)[N],
                                     linear* rows, float* start, unsigned run) {
  const int lanes = g.lanes, x = threadIdx.x % lanes, y = threadIdx.x / lanes, deep = blockDim.x / lanes;
  const int inside = t.there ? t.time % g.group : 0, group = t.there ? t.time / g.group : 0, groups = (g.tiles + g.group - 1) / g.group;
  const bool here = t.there && mine(g, t);
  word* starts = g.starts + ((long long)t.chain * groups + group) * (N * lanes) + x * N;
  linear back[N];
  identity(back);
  if (inside > 0) {
    const int each = (g.group + deep - 1) / deep;
    if (here)
      for (int i = y * each; i < min(inside, (y + 1) * each); i++) {
        linear one[N];
        await(one, sums(g, t, i), run, g.trouble);
#pragma unroll
        for (int k = 0; k < N; k++) back[k] = then(back[k], one[k]);
      }
    within(back, rows, lanes);
  }
  if (y == 0 && here && group > 0) {
    await(state, starts, run, g.trouble);
#pragma unroll
    for (int i = 0; i < N; i++) start[i * lanes + x] = state[i];
  }
  __syncthreads();
  if (inside > 0) fold(back, rows, blockDim.x / max(lanes, 32), lanes);
  float next[N];
#pragma unroll
  for (int i = 0; i < N; i++) {
    const float from = back[i].factor * start[i * lanes + x] + back[i].add;
    next[i] = own[i].factor * from + own[i].add;
    state[i] = earlier[i].factor * from + earlier[i].add;
  }
  if (here && last(g) && ends(g, t) && t.time < g.tiles - 1) show(starts + N * lanes, next, run);
}
