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

enum { LOOKS = 4 }; // at a time

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
  // draw of a run, when it is noted, begins the next.
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

// gather composes one value of what so many tiles show, in their order.
__device__ __forceinline__ linear gather(const word* from, int count, int apart, unsigned run, unsigned* trouble) {
  linear all = {1, 0};
#pragma unroll 1
  for (; count > 0; count -= LOOKS, from += LOOKS * apart) {
    word a[LOOKS], b[LOOKS];
    unsigned missing = count < LOOKS ? (1u << count) - 1 : (1u << LOOKS) - 1;
    for (patience left;;) {
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if (missing >> i & 1) get_words(a[i], b[i], from + i * apart);
      const word* last = from;
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if (missing >> i & 1) {
          if (of(a[i], run) && of(b[i], run)) missing &= ~(1u << i);
          else last = from + i * apart;
        }
      if (!missing) break;
      for (word c, d;;) { // the others are likely to be there before the last
        if (left.over(trouble)) return all;
        get_words(c, d, last);
        if (of(c, run) && of(d, run)) break;
      }
    }
#pragma unroll
    for (int i = 0; i < LOOKS; i++)
      if (i < count) {
        linear one;
        one.factor = number(a[i]), one.add = number(b[i]);
        all = then(all, one);
      }
  }
  return all;
}

// look finds the states before this thread's steps of a tile, given what the row
// up to its last step and the rows before it make. The tiles of the first group
// find in start what time starts from. Each row of threads gathers what a part of
// the group's tiles make.
__device__ __forceinline__ void look(const grid& g, const tile& t, const several& row, const several& earlier, float (&state)[N],
                                     several* rows, float* start, unsigned run) {
  const bool later = t.time >> g.groupbits > 0, hands = g.ends(t) && t.time < g.tiles - 1, mouth = g.mine(t) && g.last();
  const int inside = g.inside(t), each = max(1, (1 << g.groupbits) / g.rows()), used = (inside + each - 1) / each;
  if (g.row() < used) {
    const int wide = 1 << g.rowbits(), from = g.row() * each;
#pragma unroll 1
    for (int v = threadIdx.x & (wide - 1); v < N << g.bits; v += wide) {
      linear part = {1, 0};
      if ((t.chain << g.bits) + v / N < g.batch * (g.hidden / V)) part = gather(g.sums(t, from) - 2 * N * g.x() + 2 * v, min(each, inside - from), 2 * N << g.bits, run, g.trouble);
      ((linear*)rows)[(g.row() * N << g.bits) + v] = part;
    }
  }
  if (later && !hands && mouth) await(state, g.start(t), run, g.trouble);
  if (later && !hands && mouth)
#pragma unroll
    for (int i = 0; i < N; i++) start[(i << g.bits) + g.x()] = state[i];
  __syncthreads();
  const several back = fold(rows, used, g);
  float end[N];
  if (hands) {
    if (mouth) {
      if (later) {
        await(state, g.start(t), run, g.trouble);
      } else {
#pragma unroll
        for (int i = 0; i < N; i++) state[i] = start[(i << g.bits) + g.x()];
      }
#pragma unroll
      for (int i = 0; i < N; i++) {
        const linear all = then(earlier.of[i], row.of[i]);
        end[i] = after(all, after(back.of[i], state[i]));
      }
      show(g.start(t) + (N << g.bits), end, run);
#pragma unroll
      for (int i = 0; i < N; i++) start[(i << g.bits) + g.x()] = state[i];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    state[i] = after(back.of[i], start[(i << g.bits) + g.x()]);
    state[i] = after(earlier.of[i], state[i]);
    end[i] = after(row.of[i], state[i]);
  }
  if (g.bits < 5)
#pragma unroll
    for (int i = 0; i < N; i++) {
      const float up = __shfl_up_sync(0xffffffff, end[i], g.lanes());
      if (threadIdx.x % 32 >= g.lanes()) state[i] = up;
    }
}
