#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_BACKWARD_WIDE
#include "sample/backward_wide.cuh"
#endif
// The gradient of a layer over all steps, from the last to the first, for many sequences. A group
// has CLUSTERS clusters of CLUSTER blocks each. A cluster has UNITS · CLUSTER units of the layer,
// and a block UNITS of them. As in backward_bulk.cu, blocks of the same rank gather each other's
// gradients, those of their units' gates. They multiply them by the weights from there to all units
// of their own cluster. The parts of a unit's gradient in the blocks of a cluster are summed where
// the unit is.
//
// Products are Hopper's fastest, as in mma_wide.cu: a warpgroup has HEIGHT tiles of 64 units and
// multiplies them by the gradients of SAMPLES sequences at once. All warpgroups of a block read the
// same columns, so each column is copied to a block once.
//
// In memory, gradients lie as products read them: 16 columns of all sequences form one piece.
// PORTION such pieces are copied together, as soon as the clusters that write them have counted
// theirs. A ring holds the copies. Weights that exceed the chip come from memory in each turn,
// through another ring, which fills again while gradients are exchanged. A turn is a step of
// SAMPLES sequences:
//
//   product   of each portion, as soon as its copy has come
//   push      sums to the blocks of the cluster, once all have read the previous turn's
//   cell      of the sums that have come; gradients go to memory, and are counted
//   rest      results go to memory
//
// One warp of another warpgroup copies gradients, and one copies weights.
constexpr int FOUR = 128, THREADS = WARPGROUPS * FOUR;       // threads of a warpgroup, and of all that multiply
constexpr int TILES = WARPGROUPS * HEIGHT, LINE = 64 * TILES; // tiles per block; units per cluster
constexpr int TILE = SAMPLES * 32, PIECE = PORTION * TILE;   // bytes of 16 columns, [2][SAMPLES][8 columns], and of a copy
constexpr int PORTIONS = (PRODUCTS + PORTION - 1) / PORTION, FAR = PRODUCTS - HELD - PASSING;
constexpr int WEIGHTS = 2048, ALL_WEIGHTS = TILES * WEIGHTS; // bytes of a product's weights in shared memory, and of all tiles'
constexpr int BARRIERS = ((2 * DEPTH + 2 * ROUND + 3) * 8 + 127) / 128 * 128; // bytes
constexpr int PARTS = UNITS * SAMPLES, PAIRS = PARTS / 2;    // values per block; pairs of adjacent sequences
constexpr int EACH = (PAIRS + THREADS - 1) / THREADS;        // such pairs per thread

typedef Tiers<PRODUCTS, PASSING, ROUND> Tier;

// A Lane says which rows of a tile a lane has: two adjacent units.
struct Lane {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, role = threadIdx.x / FOUR;
  __device__ __forceinline__ int unit(int h) const { return ((role * HEIGHT + h) * 4 + warp) * 16 + lane / 4 * 2; } // within the cluster
};

// pair_of returns the weights from a gate's row to two adjacent units; beyond the layer they are 0.
template <class Cell> __device__ __forceinline__ unsigned pair_of(const W* row, int to) {
  constexpr int HIDDEN = Cell::hidden;
  if (HIDDEN % 2 == 0) return to < HIDDEN ? *(const unsigned*)(row + to) : 0;
  return (to < HIDDEN ? bits_of(row[to]) : 0) | (to + 1 < HIDDEN ? bits_of(row[to + 1]) << 16 : 0);
}

// A Part is the columns of a block's rank: RUN columns of each cluster, gate after gate.
template <class Cell> struct Part {
  static constexpr int RUN = (Cell::GATES * UNITS + 15) / 16 * 16, PER = RUN / 16; // and products by them
  // take loads a lane's weights for a product, of units to and to + 1 of the layer. Eight columns
  // belong to one gate, which is found from the first of them: for a lane's odd column, NVRTC
  // dropped the division. See docs/notebook/persistent.md, "Many sequences".
  static __device__ __forceinline__ void take(const Cell& cell, const Lane& my, int rank, int product, int to, unsigned* w) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int k = product * 16 + half * 8, g = k % RUN / UNITS, first = (k / RUN * CLUSTER + rank) * UNITS + k % RUN % UNITS + my.lane % 4 * 2;
      unsigned from[2];
#pragma unroll
      for (int i = 0; i < 2; i++)
        from[i] = g < Cell::GATES && first + i < Cell::hidden ? pair_of<Cell>(cell.weights + ((long long)g * Cell::hidden + first + i) * Cell::hidden, to) : 0;
      w[half * 2] = (from[0] & 0xffff) | from[1] << 16;
      w[half * 2 + 1] = from[0] >> 16 | (from[1] & 0xffff0000);
    }
  }
};

// put_weights leaves a product's weights in shared memory as the product reads them: [2][8][8
// rows][8 columns].
__device__ __forceinline__ void put_weights(unsigned char* to, const Lane& my, const unsigned* w) {
#pragma unroll
  for (int i = 0; i < 4; i++) *(unsigned*)(to + i / 2 * 1024 + (my.warp * 2 + i % 2) * 128 + my.lane / 4 * 16 + my.lane % 4 * 4) = w[i];
}

// A Memory is what blocks exchange: for each SAMPLES sequences and each rank, a counter of each
// cluster, and two images of gradients, for even and odd steps.
struct Memory {
  unsigned* const counters;
  unsigned char* const images;
  const int all; // in units of SAMPLES sequences
  __device__ __forceinline__ Memory(unsigned* control, int all) : counters(control + 64), images((unsigned char*)(counters + all * (CLUSTER * CLUSTERS * 32ll))), all(all) {}
  __device__ __forceinline__ unsigned* count(int id, int rank, int cluster) const { return counters + ((id * CLUSTER + rank) * CLUSTERS + cluster) * 32; }
  __device__ __forceinline__ unsigned char* image(int id, int rank, int step) const { return images + ((step % 2 * (long long)all + id) * CLUSTER + rank) * (PRODUCTS * TILE); }
  __device__ __forceinline__ unsigned char* weights() const { return images + 2ll * all * CLUSTER * (PRODUCTS * TILE); }
};

// copy_gradients copies, by one warp, what a block multiplies, turn after turn. PER is the number
// of products by a cluster's columns.
template <int PER> __device__ __forceinline__ void copy_gradients(const Memory& there, int rank, unsigned char* ring, shared_t full, shared_t empty, int steps, int group, int groups, int passes, unsigned* status) {
  const int lane = threadIdx.x % 32;
  int slot = 0, phase = 1;
  bool stuck = false;
  for (int k = 1; k <= steps; k++)
    for (int p = 0; p < passes; p++) {
      const int id = p * groups + group;
      const unsigned char* const from = there.image(id, rank, k - 1);
      const unsigned* const count = there.count(id, rank, min(lane, CLUSTERS - 1));
      unsigned ready = 0;              // clusters that have written all of theirs
      for (int i = 0; i < PORTIONS; i++) {
        const int first = i * PORTION, end = min(first + PORTION, PRODUCTS), bytes = (end - first) * TILE;
        const unsigned need = 0xffffffffu >> (31 - (end - 1) / PER) & 0xffffffffu << first / PER;
        if (!stuck && !arrived(empty + 8 * slot, phase)) *status = STUCK, stuck = true;
        if (lane == 0) bar_arrive(full + 8 * slot, bytes);
        for (const long long start = clock64(); !stuck && (ready & need) != need;) {
          ready = __ballot_sync(0xffffffff, (int)(get_acquire(count) - k * (4 * WARPGROUPS)) >= 0);
          if ((ready & need) == need) break;
          pause();
          if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) *status = STUCK, stuck = true;
        }
        __syncwarp();
        if (lane == 0) copy_bulk(shared_address(ring + slot * PIECE), from + i * PIECE, bytes, full + 8 * slot);
        if (++slot == DEPTH) slot = 0, phase ^= 1;
      }
    }
}

// copy_weights copies, by one warp, the weights that pass through the chip, for so many turns.
__device__ __forceinline__ void copy_weights(const unsigned char* from, unsigned char* ring, shared_t full, shared_t empty, int turns, unsigned* status) {
  const int lane = threadIdx.x % 32;
  int slot = 0, phase = 1;
  bool stuck = false;
  for (int turn = 0; turn < turns; turn++)
    for (int i = 0; i < PASSING; i++) {
      if (!stuck && !arrived(empty + 8 * slot, phase)) *status = STUCK, stuck = true;
      if (lane == 0) {
        const shared_t to = shared_address(ring + slot * ALL_WEIGHTS), bar = full + 8 * slot;
        bar_arrive(bar, ALL_WEIGHTS);
        if (turn == 0) copy_bulk(to, from + i * ALL_WEIGHTS, ALL_WEIGHTS, bar);
        else if (KEPT < PASSING) read_bulk(to, from + i * ALL_WEIGHTS, ALL_WEIGHTS, bar, i < KEPT);
        else read_bulk(to, from + i * ALL_WEIGHTS, ALL_WEIGHTS, bar);
      }
      __syncwarp();
      if (++slot == ROUND) slot = 0, phase ^= 1;
    }
}

// passing_in returns how many products of a portion have weights that pass through the chip.
__device__ constexpr int passing_in(int portion) {
  const int end = (portion + 1) * PORTION;
  return Tier::streamed_before(end < PRODUCTS ? end : PRODUCTS) - Tier::streamed_before(portion * PORTION);
}

template <class Cell> __device__ __forceinline__ void back_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, STATES = Cell::STATES, RUN = Part<Cell>::RUN, PADDING = RUN - GATES * UNITS;
  constexpr int ROOM = (HEIGHT * SAMPLES / 2 - 2 * EACH * Cell::RESULTS + 8) / (2 * Cell::INPUTS); // pairs whose inputs fit the registers that sums leave
  constexpr int AT_ONCE = ROOM < 1 ? 1 : ROOM < EACH ? ROOM : EACH;       // pairs whose inputs are read at once
  DYNAMIC_SHARED(memory);
  unsigned char* const ring = memory + BARRIERS;               // [DEPTH][PIECE]
  unsigned char* const round = ring + DEPTH * PIECE;           // [ROUND][TILES][WEIGHTS]
  unsigned char* const far = round + ROUND * ALL_WEIGHTS;      // [FAR][TILES][WEIGHTS]
  float* const parts = (float*)(far + FAR * ALL_WEIGHTS);      // [CLUSTER][PARTS]
  float* const states = parts + CLUSTER * PARTS;               // [passes][EACH][2][STATES][THREADS]
  const int tid = threadIdx.x;
  const Lane my;
  const int block = blockIdx.x % (CLUSTERS * CLUSTER), rank = block % CLUSTER, cluster = block / CLUSTER;
  const int group = blockIdx.x / (CLUSTERS * CLUSTER), groups = gridDim.x / (CLUSTERS * CLUSTER);
  steps = keep(steps, memory);
  const int all = (batch + SAMPLES - 1) / SAMPLES, passes = (all - group + groups - 1) / groups; // units of SAMPLES sequences in all, and this group's
  const Memory there(control, all);
  unsigned char* const passing = there.weights() + block * (long long)(PASSING * ALL_WEIGHTS); // all groups write the same

  // Barriers of both rings: for copies that have come, and for those that have been multiplied.
  // Then those of the sums: all have come, and all blocks of the cluster have read theirs. The last
  // is for the weights that pass through the chip: all warps have written theirs.
  const shared_t base = shared_address(memory), full = base, empty = full + 8 * DEPTH, loaded = empty + 8 * DEPTH, passed = loaded + 8 * ROUND;
  const shared_t come = passed + 8 * ROUND, read = come + 8, written = read + 8;
  if (tid == 0) {
    for (int i = 0; i < DEPTH; i++) bar_init(full + 8 * i, 1), bar_init(empty + 8 * i, 4 * WARPGROUPS);
    for (int i = 0; i < ROUND; i++) bar_init(loaded + 8 * i, 1), bar_init(passed + 8 * i, 4 * WARPGROUPS);
    bar_init(come, 1);
    bar_init(read, CLUSTER * 4 * WARPGROUPS);
    bar_init(written, 4 * WARPGROUPS);
    bar_publish();
    bar_arrive(come, CLUSTER * PARTS * 4);
  }
  cluster_barrier();

  if (my.role < WARPGROUPS) {
    more_registers<MORE>();
    unsigned near[HELD > 0 ? HELD : 1][HEIGHT][4];
    auto take = [&](int product, int h, unsigned* w) { Part<Cell>::take(cell, my, rank, product, cluster * LINE + my.unit(h), w); };
#pragma unroll
    for (int i = 0; i < HELD * HEIGHT; i++) take(Tier::resident(i / HEIGHT), i % HEIGHT, near[i / HEIGHT][i % HEIGHT]);
    constexpr int MANY = 4;            // products whose weights are read before any are written, since reads might wait for writes
#pragma unroll 1
    for (int begin = 0; HELD < PRODUCTS && begin < PRODUCTS; begin += MANY) {
      unsigned some[MANY][HEIGHT][4];
#pragma unroll
      for (int i = 0; i < MANY * HEIGHT; i++) take(min(begin + i / HEIGHT, PRODUCTS - 1), i % HEIGHT, some[i / HEIGHT][i % HEIGHT]);
#pragma unroll
      for (int i = 0; i < MANY; i++) {
        const int product = begin + i, before = Tier::streamed_before(product), resident = product - before;
        const bool streamed = Tier::streamed(product);
        if (product >= PRODUCTS || !streamed && resident < HELD) continue;
        unsigned char* const to = (streamed ? passing + before * ALL_WEIGHTS : far + (resident - HELD) * ALL_WEIGHTS) + my.role * HEIGHT * WEIGHTS;
#pragma unroll
        for (int h = 0; h < HEIGHT; h++) put_weights(to + h * WEIGHTS, my, some[i][h]);
      }
    }
    if (PASSING > 0) __threadfence();  // the engine reads the L2 cache, which this thread's writes may not have reached, even after a barrier
    show_engine();
    meet_at(1, THREADS);
    if (PASSING > 0 && my.lane == 0) bar_arrive(written);

    // A thread's pairs: of a unit and two sequences.
    int me = tid; // hidden from the compiler in each turn, or it would keep addresses of all pairs
    auto unit_of = [&](int e) { return (me + e * THREADS) % UNITS; };
    auto sample_of = [&](int e) { return (me + e * THREADS) / UNITS * 2; };
    auto state_at = [&](int p, int e, int q, int s) { return states + (((p * EACH + e) * 2 + q) * STATES + s) * THREADS + tid; };
    const int first = block * UNITS;
    for (int p = 0; p < passes; p++) {
      const int id = p * groups + group;
#pragma unroll 1
      for (int i = 0; i < 2 * EACH; i++) {
        if (tid + i / 2 * THREADS >= PAIRS) break;
        float state[STATES];
        cell.before(min(id * SAMPLES + sample_of(i / 2) + i % 2, batch - 1), min(first + unit_of(i / 2), HIDDEN - 1), state);
#pragma unroll
        for (int s = 0; s < STATES; s++) *state_at(p, i / 2, i % 2, s) = state[s];
      }
      for (int i = tid; PADDING > 0 && i < PADDING / 2 * SAMPLES * 2; i += THREADS) { // columns without a unit
        const int column = cluster * RUN + GATES * UNITS + i / 2 / SAMPLES * 2;
        *(unsigned*)(there.image(id, rank, i % 2) + column / 16 * TILE + column % 16 / 8 * (SAMPLES * 16) + i / 2 % SAMPLES * 16 + column % 8 * 2) = 0;
      }
    }

    int slot = 0, phase = 0, at = 0, turned = 0, turn = 0; // state of both rings; turns with products
    bool stuck = false;
    auto wait = [&](shared_t bar, int phase) {
      if (!stuck && !arrived(bar, phase)) *status = STUCK, stuck = true;
    };
    for (int k = 0; k <= steps; k++)
      for (int p = 0; p < passes; p++) {
        const int id = p * groups + group, t = steps - 1 - k;
        if (k > 0) {
          for (int e = 0; e < EACH && t >= 0; e++) { // meanwhile, prefetch inputs to the L2 cache
            const int v = tid + e * THREADS, n = id * SAMPLES + v / UNITS * 2, u = first + v % UNITS;
            if (v < PAIRS && n < batch && u < HIDDEN && (v % UNITS % 8 == 0)) cell.ahead(t, batch, n, u), cell.ahead(t, batch, min(n + 1, batch - 1), u);
          }
          float sum[HEIGHT][SAMPLES / 2];
#pragma unroll
          for (int i = 0; i < HEIGHT * SAMPLES / 2; i++) (&sum[0][0])[i] = __uint_as_float(fresh(0)); // here, since within products it would separate them
          int before = 0, behind = 0; // places of the previous portion
          auto release = [&](int i) {
            if (my.lane == 0) bar_arrive(empty + 8 * before);
#pragma unroll
            for (int j = 0; j < passing_in(i); j++) {
              if (my.lane == 0) bar_arrive(passed + 8 * behind);
              if (++behind == ROUND) behind = 0;
            }
          };
          behind = at;
          const matrix weights = matrix_at(shared_address(far + my.role * HEIGHT * WEIGHTS), 1024);
#pragma unroll
          for (int i = 0; i < PORTIONS; i++) {
            wait(full + 8 * slot, phase);
            const matrix in = matrix_at(shared_address(ring + slot * PIECE), SAMPLES * 16);
            matrix come_now[PORTION];
#pragma unroll
            for (int j = 0; j < PORTION; j++) {
              if (i * PORTION + j >= PRODUCTS || !Tier::streamed(i * PORTION + j)) continue;
              wait(loaded + 8 * at, turned);
              come_now[j] = matrix_at(shared_address(round + at * ALL_WEIGHTS + my.role * HEIGHT * WEIGHTS), 1024);
              if (++at == ROUND) at = 0, turned ^= 1;
            }
            mma_begin();
#pragma unroll
            for (int s = i * PORTION; s < min((i + 1) * PORTION, PRODUCTS); s++) {
              const int resident = s - Tier::streamed_before(s), from = s % PORTION * TILE;
#pragma unroll
              for (int h = 0; h < HEIGHT; h++)
                if (Tier::streamed(s)) mma_wide<SAMPLES>(W(), sum[h], come_now[s % PORTION], h * WEIGHTS, in, from);
                else if (resident < HELD) mma_wide<SAMPLES>(W(), sum[h], near[resident < HELD ? resident : 0][h], in, from, true);
                else mma_wide<SAMPLES>(W(), sum[h], weights, (resident - HELD) * ALL_WEIGHTS + h * WEIGHTS, in, from);
            }
            mma_commit();
            if (i > 0) {
              mma_wait<1>();
              release(i - 1);
            }
            before = slot;
            if (++slot == DEPTH) slot = 0, phase ^= 1;
          }
          mma_wait<0>();
          release(PORTIONS - 1);
          wait(read, turn % 2 ^ 1);    // the previous turn's sums have been read
#pragma unroll
          for (int h = 0; h < HEIGHT; h++) {
            const int u = my.unit(h);
            const shared_t owner = remote(base, u / UNITS), bar = owner + (come - base);
            const shared_t to = owner + (unsigned)((unsigned char*)parts - memory) + (rank * PARTS + my.lane % 4 * UNITS * 2 + u % UNITS * 2) * 4;
#pragma unroll
            for (int j = 0; j < SAMPLES / 8; j++) push<4>(to + j * (UNITS * 8 * 4), sum[h] + j * 4, bar);
          }
        }

        me = fresh(tid);
        unsigned char* const image = there.image(id, rank, k);
        float kept[EACH][2][Cell::RESULTS];
#pragma unroll
        for (int begin = 0; begin < EACH; begin += AT_ONCE) {
          float x[AT_ONCE][2][Cell::INPUTS];
#pragma unroll
          for (int e = begin; e < min(begin + AT_ONCE, EACH); e++)
#pragma unroll
            for (int q = 0; q < 2; q++)
              cell.input(max(t, 0), batch, min(id * SAMPLES + sample_of(e) + q, batch - 1), min(first + unit_of(e), HIDDEN - 1), x[e - begin][q]);
          if (k > 0 && begin == 0) {
            wait(come, turn % 2);
            if (tid == 0) bar_arrive(come, CLUSTER * PARTS * 4); // of the next turn
          }
#pragma unroll
          for (int e = begin; e < min(begin + AT_ONCE, EACH); e++) {
            const int v = tid + e * THREADS, u = first + unit_of(e), n = id * SAMPLES + sample_of(e);
            if (v >= PAIRS) break;     // the same for all of a warp
            float both[2] = {0, 0};
            if (k > 0)
#pragma unroll
              for (int s = 0; s < CLUSTER; s++) {
                float more[2];
                load<2>(more, parts + s * PARTS + v * 2);
                both[0] += more[0], both[1] += more[1];
              }
            float sent[2][GATES];
#pragma unroll
            for (int q = 0; q < 2; q++) {
              float state[STATES], ready[Cell::READY];
#pragma unroll
              for (int s = 0; s < STATES; s++) state[s] = *state_at(p, e, q, s);
              state[Cell::THROUGH] += both[q];
              if (t < 0) {
                if (n + q < batch && u < HIDDEN) cell.after(n + q, u, state);
                continue;
              }
              Cell::early(x[e - begin][q], ready);
              Cell::rest(ready, state, sent[q], kept[e][q]);
#pragma unroll
              for (int s = 0; s < STATES; s++) *state_at(p, e, q, s) = state[s];
            }
            if (t < 0) continue;
#pragma unroll
            for (int g = 0; g < GATES; g++) {  // neighbouring lanes have adjacent units: each stores both for one sequence
              const bool odd = my.lane % 2;
              const float mine[2] = {n < batch && u < HIDDEN ? sent[0][g] : 0, n + 1 < batch && u < HIDDEN ? sent[1][g] : 0};
              const float other = __shfl_xor_sync(0xffffffff, odd ? mine[0] : mine[1], 1);
              W low, high;
              narrow(low, odd ? other : mine[0]);
              narrow(high, odd ? mine[1] : other);
              const int column = cluster * RUN + g * UNITS + unit_of(e) / 2 * 2;
              *(unsigned*)(image + column / 16 * TILE + column % 16 / 8 * (SAMPLES * 16) + (sample_of(e) + odd) * 16 + column % 8 * 2) = bits_of(low) | bits_of(high) << 16;
            }
          }
        }
        __syncwarp();
        if (k > 0) {
          if (my.lane < CLUSTER) bar_arrive_at(remote(read, my.lane));
          turn++;
        }
        if (t < 0) continue;
        if (my.lane == 0) add_release(there.count(id, rank, cluster));

        // Nobody waits for what follows.
#pragma unroll
        for (int i = 0; i < 2 * EACH; i++) {
          const int n = id * SAMPLES + sample_of(i / 2) + i % 2, u = first + unit_of(i / 2);
          if (tid + i / 2 * THREADS < PAIRS && n < batch && u < HIDDEN) cell.store(t, batch, n, u, kept[i / 2][i % 2]);
        }
      }
  } else {
    fewer_registers<FEWER>();
    if (my.warp == 0) copy_gradients<Part<Cell>::PER>(there, rank, ring, full, empty, steps, group, groups, passes, status);
    if (PASSING > 0 && my.warp == 1) {
      if (!arrived(written, 0)) *status = STUCK;
      copy_weights(passing, round, loaded, passed, steps * passes, status);
    }
  }
  // A block may end before another one's messages arrive. All have been counted as often as they
  // will be. The last block to end resets the counters to 0.
  cluster_barrier();
  if (tid != 0 || atomicAdd(control + 1, 1) != gridDim.x - 1) return;
  control[1] = 0;
  for (int i = 0; i < all * CLUSTER * CLUSTERS; i++) there.counters[i * 32] = 0;
}
#ifdef SAMPLE_BACKWARD_WIDE
#include "sample/backward_wide_entry.cuh"
#endif
