// A linear recurrence of few channels in one pass over memory. They lie in chains of LANES
// lanes, V channels side by side each, and the time of a chain is cut into tiles.
// A team of blocks takes one chain after the other, its members one tile after
// the other in turns: a round of the team. The threads of a block that compute lie in lanes,
// too, and behind one another in time; each has K steps of a tile.
//
// One warp has tiles copied to shared memory, as soon as there is a place. The threads compose the
// steps of a tile to one, show the team what that is and do the steps BEHIND tiles later: by then
// other warps have found the state that they begin with. Until HOLD tiles later a tile keeps its
// place in shared memory, and then it is in registers. The others walk through all that the team
// has shown, in the order of time, so that results do not depend on who came first; in a large
// team over groups of members, whose last one shows what they make together.

enum {
  DEEP = THREADS / LANES, // threads behind one another
  VALUES = LANES * N,     // of a chain: N of each lane
  ROWS = THREADS / 32,    // warps that compute
  STATES = 4,             // tiles at the same time that have begun and are not done
  LOOKS = 12,             // of a warp that looks at what tiles show, at a time
};

// A turn is one of the tiles that a block takes, in a round of its team.
struct turn { int chain, time, round; };

// A tile is one with the place of a thread in it.
struct tile {
  int time;
  bool inside;      // whether there are channels
  int n, u;         // the sequence and the first unit
  int first, steps; // the first step and how many; 0: the thread idles
};

// A grid is how a scan is cut, and where its blocks show each other what they
// make: tiles in sums, groups in totals. A group of one has no sums.
struct grid {
  int steps, batch, hidden, chains, tiles, team, group;
  word *sums, *totals;
  unsigned* trouble;
  int member, teams;   // which this block is, and how many
  int groups, rounds;  // of a round, and of a chain
  int inside, mine;    // the place in a group, and which it is
  unsigned run;

  __device__ __forceinline__ void settle() {
    member = blockIdx.x % team, teams = gridDim.x / team;
    groups = (team + group - 1) / group, rounds = (tiles + team - 1) / team;
    inside = member % group, mine = member / group;
  }

  __device__ __forceinline__ int x() const { return threadIdx.x % LANES; }
  __device__ __forceinline__ bool last() const { return threadIdx.x >= THREADS - LANES; }

  __device__ __forceinline__ turn begin() const { return {(int)blockIdx.x / team, member, 0}; }
  __device__ __forceinline__ bool there(const turn& t) const { return t.chain < chains; }
  __device__ __forceinline__ void next(turn& t) const {
    t.time += team, t.round++;
    if (t.time >= tiles) t.time = member, t.round = 0, t.chain += teams;
  }

  __device__ __forceinline__ tile at(const turn& at, int who) const {
    tile t;
    t.time = at.time;
    const unsigned across = hidden / V, column = at.chain * LANES + who % LANES;
    t.n = batch == 1 ? 0 : column / across, t.u = (column - t.n * across) * V;
    t.inside = column < batch * across;
    t.first = (t.time * DEEP + who / LANES) * K;
    t.steps = t.inside ? max(0, min((int)K, steps - t.first)) : 0;
    return t;
  }

  // sum and total are where a tile and a group of a turn's chain show what they
  // make, and shown where a turn's tile does; the turn's group is number in_group.
  __device__ __forceinline__ int in_group(const turn& t) const { return t.round * groups + mine; }
  __device__ __forceinline__ word* sum(const turn& t, int time) const { return sums + ((long long)t.chain * tiles + time) * (2 * VALUES); }
  __device__ __forceinline__ word* total(const turn& t, int i) const { return totals + ((long long)t.chain * rounds * groups + i) * (2 * VALUES); }
  __device__ __forceinline__ word* shown(const turn& t) const { return group > 1 ? sum(t, t.time) : total(t, in_group(t)); }
};

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
  meet_at(1, THREADS);
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

// gather composes one value of what so many tiles or groups show, in their order;
// it reports whether they did.
__device__ __forceinline__ bool gather(linear& all, const word* from, int count, unsigned run, unsigned* trouble) {
  all = {1, 0};
#pragma unroll 1
  for (; count > 0; count -= LOOKS, from += LOOKS * 2 * VALUES) {
    word a[LOOKS], b[LOOKS];
    unsigned missing = count < LOOKS ? (1u << count) - 1 : (1u << LOOKS) - 1;
    for (patience left; missing;) {
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if (missing >> i & 1) get_words(a[i], b[i], from + i * (2 * VALUES));
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if ((missing >> i & 1) && of(a[i], run) && of(b[i], run)) missing &= ~(1u << i);
      if (missing && left.over(trouble)) return false;
    }
#pragma unroll
    for (int i = 0; i < LOOKS; i++)
      if (i < count) {
        linear one;
        one.factor = number(a[i]), one.add = number(b[i]);
        all = then(all, one);
      }
  }
  return true;
}

// join shows what groups make whose last member this block is.
__device__ __forceinline__ void join(const grid& g, const int* done) {
  if (g.inside != g.group - 1 && g.member != g.team - 1) return;
  turn t = g.begin();
  for (int i = 0; g.there(t); g.next(t), i++) {
    while (get_here(done) < i - 1) rest();
#pragma unroll 1
    for (int v = threadIdx.x % 32; v < VALUES; v += 32) {
      linear all;
      if (!gather(all, g.sum(t, t.time - g.inside) + 2 * v, g.inside + 1, g.run, g.trouble)) return;
      put_words(g.total(t, g.in_group(t)) + 2 * v, tagged(all.factor, g.run), tagged(all.add, g.run));
    }
  }
}

// seek finds the states that the tiles of this block begin with, but not that of a
// chain's first, and arrives at the barriers where its threads wait for them, one
// for each of STATES tiles. Of the seekers, warps, each takes
// one of so many tiles; state is that behind all groups before the tile's, found
// counts the tiles for which it is, and done those after whose composition all
// threads have met. Nobody looks for words long before they can be there.
__device__ __forceinline__ void seek(const grid& g, int which, float* starts, float* state, int* found, const int* done) {
  bool fine = true;
  turn t = g.begin();
  for (int i = 0; g.there(t); g.next(t), i++) {
    if (i % SEEKERS != which) continue;
    while (get_here(done) < i - 1) rest();
    const int to = g.in_group(t), from = t.round == 0 ? 0 : to - g.groups;
#pragma unroll 1
    for (int v = threadIdx.x % 32, first = 1; v < VALUES; v += 32, first = 0) {
      linear tiles, groups;
#pragma unroll 1
      for (int of_tiles = 1; of_tiles >= 0; of_tiles--) { // what is shown last, groups, is asked for last
        const word* const at = of_tiles ? g.sum(t, t.time - g.inside) : g.total(t, from);
        fine = fine && gather(groups, at + 2 * v, of_tiles ? g.inside : to - from, g.run, g.trouble);
        if (of_tiles) tiles = groups;
      }
      while (first && (get_here(found) < i || get_here(done) < i + BEHIND + 1 - STATES)) rest();
      const float now = after(groups, t.round == 0 ? 0 : state[v]);
      state[v] = now;
      if (t.time > 0) starts[i % STATES * VALUES + v] = after(tiles, now);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) put_here(found, i + 1);
    arrive_at(2 + i % STATES, THREADS + 32);
  }
}
