// A linear recurrence in one pass over memory. Tiles, some channels over a
// stretch of time, are handed out in the order of time. The threads of a tile's
// block lie in lanes, V channels side by side each, and behind one another in
// time; each has K steps. A block composes the steps of its tile to one, shows
// the other blocks what that is, looks back at those of the tiles before it and
// then computes its steps from the state that they lead to.
//
// Looking back goes in groups of tiles: over what the tiles before it in the
// group show, always in the same order, to the state that the group begins with,
// which the last tile of the group before shows. So results do not depend on who
// came first.

enum { BUFFERS = 2 }; // one fills while the other is worked on

// A tile and the place of this thread in it.
struct tile {
  bool there = false;
  int time, chain;      // which
  int n, u;             // the sequence and the first unit
  int first, steps = 0; // the first step and how many; 0: the thread idles
};

// A grid is how a scan is cut, with the place of this thread in a block of 2^bits
// lanes. Chains of tiles lie behind one another, in groups of 2^groupbits.
struct grid {
  int steps, batch, hidden, bits, chains, tiles, groupbits;
  word *tickets, *words, *starts;
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
  __device__ __forceinline__ int inside(const tile& t) const { return t.time & ((1 << groupbits) - 1); }
  __device__ __forceinline__ bool ends(const tile& t) const { return inside(t) == (1 << groupbits) - 1 || t.time == tiles - 1; }

  // draw is the next tile of this run, all() or more where there is none. The last
  // draw of a run begins the next.
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
    t.time = i / (unsigned)chains, t.chain = i - t.time * chains;
    const unsigned across = hidden / V, column = (t.chain << bits) + x();
    t.n = batch == 1 ? 0 : column / across, t.u = (column - t.n * across) * V;
    t.first = (t.time * deep() + y()) * K;
    t.steps = column < batch * across ? max(0, min((int)K, steps - t.first)) : 0;
    return t;
  }

  // mine reports whether this thread's lane has channels.
  __device__ __forceinline__ bool mine(const tile& t) const { return t.there && (t.chain << bits) + x() < batch * (hidden / V); }

  // sums is where tile i of t's group shows this lane's steps, and start where the
  // states that the group begins with are.
  __device__ __forceinline__ word* sums(const tile& t, int i) const {
    return words + ((((long long)t.chain * tiles + t.time - inside(t) + i) << bits) + x()) * (2 * N);
  }
  __device__ __forceinline__ word* start(const tile& t) const {
    const int groups = ((tiles - 1) >> groupbits) + 1;
    return starts + ((((long long)t.chain * groups + (t.time >> groupbits)) << bits) + x()) * N;
  }
};

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

// show lets other blocks see sums or states, await waits to see them.
__device__ __forceinline__ void show(word* p, const several& v, unsigned run) {
#pragma unroll
  for (int i = 0; i < N; i++) put_words(p + 2 * i, tagged(v.of[i].factor, run), tagged(v.of[i].add, run));
}
__device__ __forceinline__ void show(word* p, const float (&v)[N], unsigned run) {
#pragma unroll
  for (int i = 0; i < N; i++) put_word(p + i, tagged(v[i], run));
}
__device__ __forceinline__ void await(several& v, const word* p, unsigned run, unsigned* trouble) {
  patience left;
  for (bool all = false; !all;) {
    all = true;
#pragma unroll
    for (int i = 0; i < N; i++) {
      word a, b;
      get_words(a, b, p + 2 * i);
      v.of[i].factor = number(a), v.of[i].add = number(b);
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

// tell shows what a tile makes to those that look back at it: the row of its last
// thread, given what those before it make.
__device__ __forceinline__ void tell(const grid& g, const tile& t, const several& row, const several& earlier, unsigned run) {
  if (!g.mine(t) || !g.last() || g.ends(t)) return;
  show(g.sums(t, g.inside(t)), then(earlier, row), run);
}

// look finds the states before this thread's steps of a tile, given what the row
// up to its last step and the rows before it make. The tiles of the first group
// find in start what time starts from.
__device__ __forceinline__ void look(const grid& g, const tile& t, const several& row, const several& earlier, float (&state)[N],
                                     several* rows, float* start, unsigned run) {
  const bool mine = g.mine(t);
  const int inside = t.there ? g.inside(t) : 0;
  several back = identity();
  // A thread looks at one tile, or at more where the group has more of them than the
  // block has threads behind one another.
  const int each = max(0, g.groupbits - __popc(g.deep() - 1)), used = inside > 0 ? ((inside - 1 >> each << g.bits) >> g.rowbits()) + 1 : 0;
  if (g.row() < used) {
    if (mine)
      for (int i = g.y() << each; i < min(inside, g.y() + 1 << each); i++) {
        several one;
        await(one, g.sums(t, i), run, g.trouble);
        back = then(back, one);
      }
    within(back, rows, g);
  }
  if (inside > 0) {
    __syncthreads();
    back = fold(rows, used, g);
  }
  // Who hands on a state looks for it himself: others wait for that.
  const bool later = mine && t.time >> g.groupbits > 0, ends = mine && g.last() && g.ends(t) && t.time < g.tiles - 1;
  if (later && (g.y() == 0 || ends)) {
    await(state, g.start(t), run, g.trouble);
    if (g.y() == 0)
#pragma unroll
      for (int i = 0; i < N; i++) start[(i << g.bits) + g.x()] = state[i];
  }
  float end[N];
  if (ends) {
#pragma unroll
    for (int i = 0; i < N; i++) {
      const float from = later ? state[i] : start[(i << g.bits) + g.x()];
      end[i] = then(earlier.of[i], row.of[i]).factor * (back.of[i].factor * from + back.of[i].add) + then(earlier.of[i], row.of[i]).add;
    }
    show(g.start(t) + (N << g.bits), end, run);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; i++) {
    state[i] = back.of[i].factor * start[(i << g.bits) + g.x()] + back.of[i].add;
    state[i] = earlier.of[i].factor * state[i] + earlier.of[i].add;
    end[i] = row.of[i].factor * state[i] + row.of[i].add;
  }
  if (g.bits < 5)
#pragma unroll
    for (int i = 0; i < N; i++) {
      const float up = __shfl_up_sync(0xffffffff, end[i], g.lanes());
      if (threadIdx.x % 32 >= g.lanes()) state[i] = up;
    }
}
