// A linear recurrence of few channels in one pass over memory. They lie in chains of LANES
// lanes, V channels side by side each, and the time of a chain is cut into tiles, which
// blocks draw in the order of time. The warps of a block share the work: some draw
// tiles and begin to load them, some compute, and some look for the states that
// tiles begin with. The threads that compute lie in lanes, too, and behind one another
// in time; each has K steps of a tile.
//
// A block composes the steps of its tile to one, shows the others what that is and
// does the steps BEHIND tiles later: by then the state that they begin with has been
// found. GROUP tiles one after the other are a group, ERA groups an era. A group's last
// tile shows what the group makes, an era's the state behind it. A state is that before the
// era, followed through the groups before the tile's and the tiles before it in its
// group, always in this order: results do not depend on who came first.

enum {
  DEEP = THREADS / LANES, // threads behind one another
  ENDED = 1 << 30,        // and so many tiles are done
};

// A tile and the place of a thread in it.
struct tile {
  bool there;
  int chain, time;  // which
  bool inside;      // whether there are channels
  int n, u;         // the sequence and the first unit
  int first, steps; // the first step and how many; 0: the thread idles
};

// A grid is how a scan is cut, and where its blocks show each other what they make.
struct grid {
  int steps, batch, hidden, chains, tiles;
  word *tickets, *sums, *totals;
  unsigned* trouble;

  __device__ __forceinline__ int x() const { return threadIdx.x % LANES; }
  __device__ __forceinline__ bool last() const { return threadIdx.x >= THREADS - LANES; }
  __device__ __forceinline__ unsigned all() const { return chains * tiles; }

  // draw is the next tile, behind the number of the runs before this one. The last draw of
  // a run, when it is noted, begins the next.
  __device__ __forceinline__ word draw() const { return atomicAdd(tickets, (word)1); }
  __device__ __forceinline__ word noted(word ticket) const {
    const unsigned last = all() + gridDim.x - 1;
    if ((unsigned)ticket == last) atomicAdd(tickets, ((word)1 << 32) - last - 1);
    return ticket;
  }

  __device__ __forceinline__ tile at(word drawn, int who) const {
    const unsigned i = (unsigned)drawn, across = hidden / V;
    tile t;
    t.there = i < all();
    t.time = i / (unsigned)chains, t.chain = i - t.time * chains;
    const unsigned column = t.chain * LANES + who % LANES;
    t.n = batch == 1 ? 0 : column / across, t.u = (column - t.n * across) * V;
    t.inside = column < batch * across;
    t.first = (t.time * DEEP + who / LANES) * K;
    t.steps = t.there && t.inside ? max(0, min((int)K, steps - t.first)) : 0;
    return t;
  }

  // sum is where a tile shows what it makes, and total where what comes before a group
  // is shown: the group there, or the state at the beginning of an era.
  __device__ __forceinline__ word* sum(const tile& t, int time) const { return sums + ((long long)t.chain * tiles + time) * (2 * VALUES); }
  __device__ __forceinline__ word* total(const tile& t, int group) const {
    return totals + ((long long)t.chain * ((tiles + GROUP - 1) / GROUP) + group) * (2 * VALUES);
  }
};

__device__ __forceinline__ void await(shared_t bar, int phase) {
  while (!bar_try(bar, phase & 1)) pause();
}

__device__ __forceinline__ void show(word* to, const linear& l, unsigned run) { put_words(to, tagged(l.factor, run), tagged(l.add, run)); }

// seek finds the states that the tiles of this block begin with, but not that of a
// chain's first, and arrives at the barriers where the threads wait for them that compute,
// one for each of the SLOTS tiles in shared memory. Of the seekers, warps, each takes
// one of so many tiles, once its load has come, full, and the tile before it is
// composed, done: nobody looks for words long before they can be there.
__device__ __forceinline__ void seek(const grid& g, int which, float* starts, const word* drawn, shared_t full, const int* done) {
  bool fine = true;
  for (int i = which;; i += SEEKERS) {
    for (int is; (is = get_here(done)) < i - 1; rest())
      ;
    if (const int is = get_here(done); is >= ENDED && i >= is - ENDED) return;
    const int slot = i % SLOTS;
    await(full + 8 * slot, i / SLOTS);
    const tile t = g.at(drawn[slot], 0);
    if (!t.there) return;
    const unsigned run = (drawn[slot] >> 32) + 1;
    const int group = t.time / GROUP, inside = t.time % GROUP, era = max(group / ERA * ERA, 1);
    const bool closes = inside == GROUP - 1 && t.time < g.tiles - 1, ends = (group + 1) % ERA == 0;
#pragma unroll 1
    for (int v = threadIdx.x % 32; v < VALUES; v += 32) {
      linear groups = {1, 0}, tiles = {1, 0}, own = {1, 0};
      fine = fine && gather(tiles, g.sum(t, t.time - inside) + 2 * v, inside, run, g.trouble);
      if (closes) {
        fine = fine && gather(own, g.sum(t, t.time) + 2 * v, 1, run, g.trouble);
        if (!ends) show(g.total(t, group + 1) + 2 * v, then(tiles, own), run);
      }
      fine = fine && gather(groups, g.total(t, era) + 2 * v, group + 1 - era, run, g.trouble);
      const float state = after(tiles, groups.add);
      if (t.time > 0) starts[slot * VALUES + v] = state;
      if (closes && ends) show(g.total(t, group + 1) + 2 * v, {0, after(own, state)}, run);
    }
    __syncwarp();
    arrive_at(2 + slot, THREADS + 32);
  }
}
