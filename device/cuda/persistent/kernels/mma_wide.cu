#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_MMA_WIDE
#include "sample/mma_wide.cuh"
#endif
// A layer over all steps, for many sequences, in groups of blocks from all over the GPU. A block
// has 64 rows of weights. Two warpgroups multiply them by the h of SAMPLES sequences at once, each
// with half of the columns: Hopper's fastest product. Weights are in registers as far as they fit,
// and else in shared memory. If the rows of one gate are too long for that, two blocks of a cluster
// are partners: they have the same rows, and each has half of the columns.
//
// In memory, h lies as that product reads it: 16 columns of all sequences form one piece. PORTION
// such pieces are counted and copied together. So blocks multiply what has come while the rest is
// in flight. A ring holds the copies. Each block of a cluster copies its share of each portion for
// all of them. A turn is a step of SAMPLES sequences:
//
//   product   of each portion, as soon as its copy has come
//   sum       each warpgroup adds the other's sums for half of the sequences, and then each partner
//             the other's for every second of these
//   cell      states are in shared memory; h goes to memory, and is counted
//   rest      results go to memory; sums of the next turn begin with its inputs
//
// Two warps of a third warpgroup copy, one for each ring.
constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, STATES = Cell::STATES;
constexpr int FOUR = 128, BOTH = 256;                        // threads of a warpgroup, and of the two that multiply
constexpr int ROWS = 16 / BAND;                              // rows per unit: 4 for three or four gates, else 1
constexpr int SHARES = 2 * PARTNERS;                         // warpgroups that share the columns
constexpr int SIDES = 2 / PARTNERS, VALUES = 2 * SIDES;      // of a lane's two sequences of each eight, those that it has after the sum; values of two rows
constexpr int TILE = SAMPLES * 32, PIECE = PORTION * TILE;   // bytes of 16 columns, [2][SAMPLES / 8][8][8 columns], and of a copy
constexpr int PORTIONS = (PRODUCTS + PORTION - 1) / PORTION, FAR = PRODUCTS - HELD;
constexpr int EIGHTS = SAMPLES / 16, EACH = VALUES / ROWS, CELLS = EIGHTS * EACH; // eights of sequences that a warpgroup has after the sum; cells per thread, of an eight and of all
constexpr int WEIGHTS = 2048;                                // bytes of a product's weights in shared memory
constexpr int PARTS = (PARTNERS - 1) * EIGHTS * BOTH * 2;    // sums that come from the partner
constexpr int BARRIERS = ((4 * DEPTH + 2 * (PARTNERS - 1)) * 8 + 127) / 128 * 128; // bytes
static_assert(PARTNERS == 1 || ROWS == 1 && COPIERS == 1, "partners have one gate, and copy for themselves");
constexpr bool SAVES = Cell::SAVED > 0;

// exchange4 passes value i of four to the lane whose bits BIT and 2·BIT are i. Value i of a lane
// then comes from that lane.
template <int BIT> __device__ __forceinline__ void exchange4(float* v, int lane) {
#pragma unroll
  for (int width = 2; width > 0; width /= 2) {
    const bool upper = lane & width * BIT;
#pragma unroll
    for (int i = 0; i < 4; i++)
      if (!(i & width)) {
        const float got = __shfl_xor_sync(0xffffffff, upper ? v[i] : v[i + width], width * BIT);
        if (upper) v[i] = got;
        else v[i + width] = got;
      }
  }
}

// A Lane says which rows of a product a lane has: of one gate, of two adjacent units.
struct Lane {
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  int gate = ROWS == 1 ? 0 : lane / 8, pair = ROWS == 1 ? lane / 4 * 2 : lane / 4 % 2 * 2;
};

// take_pair loads a lane's weights for two products, of 32 columns, number piece.
__device__ __forceinline__ void take_pair(const Cell& cell, const Lane& my, int first, int piece, unsigned (*w)[4], unsigned* status) {
  quad q[2];
#pragma unroll
  for (int half = 0; half < 2; half++)
    q[half] = my.gate < GATES ? weights_of(cell, my.gate, first + my.pair, (piece * 4 + my.lane % 4) * FEW, half, status) : quad{};
#pragma unroll
  for (int u = 0; u < 2; u++) {  // regroup: neighbouring lanes had eight columns each
    float v[4];
#pragma unroll
    for (int p = 0; p < 4; p++) v[p] = __uint_as_float(q[p / 2].v[p % 2 * 2 + u]);
    exchange4<1>(v, my.lane);
#pragma unroll
    for (int p = 0; p < 4; p++) w[p / 2][p % 2 * 2 + u] = __float_as_uint(v[p]);
  }
}

// put_weights leaves a product's weights in shared memory as the product reads them: [2][8][8
// rows][8 columns].
__device__ __forceinline__ void put_weights(unsigned char* to, const Lane& my, const unsigned* w) {
#pragma unroll
  for (int i = 0; i < 4; i++) *(unsigned*)(to + i / 2 * 1024 + (my.warp * 2 + i % 2) * 128 + my.lane / 4 * 16 + my.lane % 4 * 4) = w[i];
}

// input_of returns the gate whose input begins a row's sum; -1: none. Inputs that only the rest of
// the cell reads use the rows of missing gates.
__device__ __forceinline__ int input_of(int gate) {
  int from = gate < GATES && Cell::owns(gate) ? gate : -1;
#pragma unroll
  for (int i = 0; i < Cell::FREE; i++)
    if (gate == GATES + i) from = Cell::free(i);
  return from;
}

// A Memory is what blocks exchange: for each SAMPLES sequences, counters of all portions, and two
// images of h, for even and odd steps.
struct Memory {
  unsigned* const counters;
  unsigned char* const images;
  const int all; // in units of SAMPLES sequences
  __device__ __forceinline__ Memory(unsigned* control, int all) : counters(control + 64), images((unsigned char*)(counters + all * (SHARES * PORTIONS * 32ll))), all(all) {}
  __device__ __forceinline__ unsigned* count(int id, int of, int portion) const { return counters + ((id * SHARES + of) * PORTIONS + portion) * 32; }
  __device__ __forceinline__ unsigned char* image(int id, int step) const { return images + (step % 2 * (long long)all + id) * (SHARES * PRODUCTS * TILE); }
};

// copy_all_turns copies, by one warp, the h that a warpgroup multiplies, turn after turn.
__device__ __forceinline__ void copy_all_turns(const Memory& there, int of, unsigned char* ring, shared_t full, shared_t empty, int steps, int passes, unsigned* status) {
  const int lane = threadIdx.x % 32, share = blockIdx.x % COPIERS, group = blockIdx.x / CLUSTER, groups = gridDim.x / CLUSTER;
  const unsigned each = SHARES * ROWS * (min(lane, PORTIONS - 1) == PORTIONS - 1 ? PRODUCTS - (PORTIONS - 1) * PORTION : PORTION); // warps that write a portion
  int slot = 0, phase = 1;
  bool stuck = false;
  for (int t = 0; t < steps; t++)
    for (int p = 0; p < passes; p++) {
      const int id = p * groups + group;
      const unsigned char* const from = there.image(id, t) + of * (PRODUCTS * TILE);
      const unsigned* const count = there.count(id, of, min(lane, PORTIONS - 1));
      unsigned ready = 0;              // portions that all warps have written
      for (int i = 0; i < PORTIONS; i++) {
        if (!stuck && !arrived(empty + 8 * slot, phase)) *status = STUCK, stuck = true;
        const int bytes = (i < PORTIONS - 1 ? PORTION : PRODUCTS - (PORTIONS - 1) * PORTION) * TILE, mine = bytes / COPIERS;
        if (lane == 0) bar_arrive(full + 8 * slot, bytes);
        for (const long long start = clock64(); !stuck && !(ready >> i & 1);) {
          ready = __ballot_sync(0xffffffff, (int)(get_acquire(count) - (t + 1) * each) >= 0);
          if (ready >> i & 1) break;
          pause();
          if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) *status = STUCK, stuck = true;
        }
        __syncwarp();
        if (lane == 0) copy_all<COPIERS>(shared_address(ring + slot * PIECE + share * mine), from + i * PIECE + share * mine, mine, full + 8 * slot);
        if (++slot == DEPTH) slot = 0, phase ^= 1;
      }
    }
}

__device__ __forceinline__ void mma_wide_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  DYNAMIC_SHARED(memory);
  unsigned char* const rings = memory + BARRIERS;             // [2][DEPTH][PIECE]
  unsigned char* const far = rings + 2 * DEPTH * PIECE;        // [2][FAR][WEIGHTS]
  quad* const sums = (quad*)(far + 2 * FAR * WEIGHTS);        // [2][EIGHTS][FOUR]
  float* const parts = (float*)(sums + 2 * EIGHTS * FOUR);    // [2][EIGHTS][BOTH][2]
  float* const states = parts + 2 * PARTS;                    // [passes][CELLS][STATES][BOTH]
  const int tid = threadIdx.x, role = tid / FOUR, mine = tid % FOUR;
  const Lane my;
  const int rank = blockIdx.x % CLUSTER / PARTNERS, partner = blockIdx.x % PARTNERS, group = blockIdx.x / CLUSTER, groups = gridDim.x / CLUSTER;
  steps = keep(steps, memory);
  const int all = (batch + SAMPLES - 1) / SAMPLES, passes = (all - group + groups - 1) / groups; // units of SAMPLES sequences in all, and this group's
  const Memory there(control, all);

  // Barriers of a warpgroup's ring: for copies that have come, and for those already multiplied.
  // Then two for the partner's sums, of even and odd turns.
  const shared_t bars = shared_address(memory);
  const shared_t full = bars + role % 2 * (16 * DEPTH), empty = full + 8 * DEPTH, come = bars + 32 * DEPTH;
  if (tid == 0) {
    for (int i = 0; i < 4 * DEPTH; i++) bar_init(bars + 8 * i, i / DEPTH % 2 ? 4 * COPIERS : 1);
    for (int i = 0; i < 2 * (PARTNERS - 1); i++) bar_init(come + 8 * i, 1);
    bar_publish();
    for (int i = 0; i < 2 * (PARTNERS - 1); i++) bar_arrive(come + 8 * i, PARTS * 4);
  }
  cluster_barrier();

  if (role < 2) {
    more_registers<MORE>();
    const int first = rank * UNITS + my.warp * BAND;
    unsigned near[HELD > 0 ? HELD : 1][4];
    unsigned char* const beyond = far + role * FAR * WEIGHTS;
#pragma unroll
    for (int i = 0; i < HELD; i += 2) take_pair(cell, my, first, ((partner * 2 + role) * PRODUCTS + i) / 2, near + i, status);
#pragma unroll 1
    for (int i = HELD; i < PRODUCTS; i += 2) {
      unsigned w[2][4];
      take_pair(cell, my, first, ((partner * 2 + role) * PRODUCTS + i) / 2, w, status);
      put_weights(beyond + (i - HELD) * WEIGHTS, my, w[0]);
      put_weights(beyond + (i - HELD + 1) * WEIGHTS, my, w[1]);
    }
    show_engine();
    meet_at(1 + role, FOUR);

    // After all sums, a thread has these units and sequences of each eight.
    constexpr int KINDS = ROWS == 1 ? 2 : 1;
    auto unit = [&](int i) { return first + my.pair + (ROWS == 1 ? i / SIDES : my.lane / 16); };
    auto sample = [&](int j, int i) { return (role * EIGHTS + j) * 8 + my.lane % 4 * 2 + (ROWS == 1 ? i % SIDES + partner : my.lane / 8 % 2); };
    float bias[KINDS][GATES], constants[KINDS][Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
#pragma unroll
    for (int k = 0; k < KINDS; k++) {
      const int u = min(unit(k * SIDES), HIDDEN - 1);
#pragma unroll
      for (int g = 0; g < GATES; g++) bias[k][g] = cell.bias(g, u);
      cell.constants(u, constants[k]);
    }
    auto state_at = [&](int p, int i, int s) { return states + ((p * CELLS + i) * STATES + s) * BOTH + tid; };
    // put writes h of two adjacent units for the other blocks.
    auto put = [&](unsigned char* image, int u, int n, float even, float odd) {
      if (u >= HIDDEN) even = 0;
      if (u + 1 >= HIDDEN) odd = 0;
      *(unsigned*)(image + u / 8 * (SAMPLES * 16) + n * 16 + u % 8 * 2) = word_of(even, odd, false, status);
    };
    // put_all does so for a thread's cells of one eight.
    auto put_all = [&](unsigned char* image, int j, const float* fresh) {
      if (ROWS == 1)
#pragma unroll
        for (int e = 0; e < SIDES; e++) put(image, unit(0), sample(j, e), fresh[e], fresh[e + SIDES]);
      else {
        const float other = __shfl_xor_sync(0xffffffff, fresh[0], 16);
        if (my.lane < 16) put(image, unit(0), sample(j, 0), fresh[0], other);
      }
    };
    const int step = first / 16, of = step / PRODUCTS, portion = step % PRODUCTS / PORTION; // place of this warp's columns
    auto tell = [&](int id) {
      __syncwarp();
      if (my.lane == 0) add_release(there.count(id, of, portion));
    };
    for (int p = 0; p < passes; p++) {
      const int id = p * groups + group;
#pragma unroll 1
      for (int j = 0; j < EIGHTS; j++) {
        float fresh[VALUES];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          float state[STATES];
          cell.before(min(id * SAMPLES + sample(j, i), batch - 1), min(unit(i), HIDDEN - 1), state);
#pragma unroll
          for (int s = 0; s < STATES; s++) *state_at(p, j * EACH + i, s) = state[s];
          fresh[i] = state[Cell::THROUGH];
        }
        put_all(there.image(id, 0), j, fresh);
      }
      tell(id);
    }

    const long long stride = cell.stride(batch);
    const int from = input_of(my.gate);
    float sum[SAMPLES / 2];
    // inputs begins the sums of a turn with its inputs, in the warpgroup's half and for the
    // sequences that the block has after the sum.
    auto inputs = [&](float* own, float* others, int t, int id) {
#pragma unroll
      for (int i = 0; i < EIGHTS * 4; i++) {
        if (i % 2 < SIDES) {
          const int n = min(id * SAMPLES + (role * EIGHTS + i / 4) * 8 + my.lane % 4 * 2 + i % 2 + partner, batch - 1), u = min(first + my.pair + i % 4 / 2, HIDDEN - 1);
          const float x = from < 0 ? 0 : widen(cell.input(from, n, u)[t * stride]);
          own[i] = PARTNERS == 1 || partner == 0 ? x : 0;
          if (PARTNERS > 1) own[i + 1] = partner == 0 ? 0 : x;
        }
        others[i] = 0;
      }
    };
    auto begin = [&](int t, int id) {
      if (role == 0) inputs(sum, sum + EIGHTS * 4, t, id);
      else inputs(sum + EIGHTS * 4, sum, t, id);
    };
    int slot = 0, phase = 0;
    bool stuck = false;
    // join sends half of a thread's sums to the partner and adds those that come to the other half,
    // EACH of an eight. Sums of even and of odd turns have places of their own, since the partner may
    // be one turn ahead. It is never two ahead: before that it needs this block's sums.
    auto join = [&](float* z, int turn) {
      float* const mine = parts + turn % 2 * PARTS + tid * 2;
      const shared_t bar = come + turn % 2 * 8, to = remote(shared_address(mine), partner ^ 1), sent = remote(bar, partner ^ 1);
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) {
        const float give[2] = {partner == 0 ? z[j * 4 + 1] : z[j * 4], partner == 0 ? z[j * 4 + 3] : z[j * 4 + 2]};
        push<2>(to + j * (BOTH * 8), give, sent);
      }
      if (!stuck && !arrived(bar, turn / 2 % 2)) *status = STUCK, stuck = true;
      if (tid == 0) bar_arrive(bar, PARTS * 4); // of the turn after the next
      __syncwarp();
#pragma unroll
      for (int j = 0; j < EIGHTS; j++) {
        float more[2];
        load<2>(more, mine + j * (BOTH * 2));
#pragma unroll
        for (int i = 0; i < 2; i++) z[j * 2 + i] = (partner == 0 ? z[j * 4 + i * 2] : z[j * 4 + i * 2 + 1]) + more[i];
      }
    };
    auto release = [&](int slot) {
      if (my.lane < COPIERS) bar_arrive_at(remote(empty + 8 * slot, partner + my.lane));
    };
    Clock<CLOCKS> clock;
    begin(0, group);
    for (int t = 0; t < steps; t++)
      for (int p = 0; p < passes; p++) {
        const int id = p * groups + group;
        int before = 0;
        const matrix weights = matrix_at(shared_address(beyond), 1024);
#pragma unroll
        for (int i = 0; i < PORTIONS; i++) {
          if (!stuck && !arrived(full + 8 * slot, phase)) *status = STUCK, stuck = true;
          if (i == 0) clock.mark(WAIT);
          const matrix h = matrix_at(shared_address(rings + (role * DEPTH + slot) * PIECE), SAMPLES * 16);
          mma_begin();
#pragma unroll  // separate loops for near and far: one loop was not unrolled, which put near in memory
          for (int s = i * PORTION; s < min((i + 1) * PORTION, HELD); s++) mma_wide<SAMPLES>(W(), sum, near[s], h, s % PORTION * TILE, true);
#pragma unroll
          for (int s = max(i * PORTION, HELD); s < min((i + 1) * PORTION, PRODUCTS); s++)
            mma_wide<SAMPLES>(W(), sum, weights, (s - HELD) * WEIGHTS, h, s % PORTION * TILE);
          mma_commit();
          if (i > 0) {
            mma_wait<1>();
            release(before);
          }
          before = slot;
          if (++slot == DEPTH) slot = 0, phase ^= 1;
        }
        mma_wait<0>();
        release(before);
        clock.mark(PRODUCT, sum[0], sum[SAMPLES / 2 - 1]);

        auto leave = [&](const float* other) {
#pragma unroll
          for (int j = 0; j < EIGHTS; j++) {
            quad v;
#pragma unroll
            for (int i = 0; i < 4; i++) v.v[i] = __float_as_uint(other[j * 4 + i]);
            sums[(role * EIGHTS + j) * FOUR + mine] = v;
          }
        };
        float z[EIGHTS * 4];
        auto add = [&](const float* own) {
#pragma unroll
          for (int j = 0; j < EIGHTS; j++) {
            const quad v = sums[((1 - role) * EIGHTS + j) * FOUR + mine];
#pragma unroll
            for (int i = 0; i < 4; i++) z[j * 4 + i] = own[j * 4 + i] + __uint_as_float(v.v[i]);
          }
        };
        meet_at(3, BOTH);  // both have read the previous turn's sums
        if (role == 0) leave(sum + EIGHTS * 4);
        else leave(sum);
        meet_at(4, BOTH);
        if (role == 0) add(sum);
        else add(sum + EIGHTS * 4);
        if (PARTNERS > 1) join(z, t * passes + p);
        clock.mark(SUM);

        unsigned char* const image = there.image(id, t + 1);
        const int live = min(SAMPLES, batch - id * SAMPLES);
        auto result = [&](int r, int j, int i, const float* state, const float* saved) {
          const int n = sample(j, i), u = unit(i);
          if (n < live && u < HIDDEN) Cell::put(r, cell.place(r, batch, t * batch + id * SAMPLES + n, u), Cell::result(r, state, saved));
        };
#pragma unroll
        for (int j = 0; j < EIGHTS; j++) {
          if (ROWS > 1) exchange4<8>(z + j * VALUES, my.lane);
          float fresh[VALUES];
#pragma unroll
          for (int i = 0; i < EACH; i++) {
            const int k = ROWS == 1 ? i / SIDES : 0;
            float state[STATES], gate[GATES], input[Cell::FREE > 0 ? Cell::FREE : 1], saved[SAVES ? Cell::SAVED : 1];
#pragma unroll
            for (int s = 0; s < STATES; s++) state[s] = *state_at(p, j * EACH + i, s);
#pragma unroll
            for (int g = 0; g < GATES; g++) gate[g] = Cell::early(g, z[j * VALUES + (ROWS == 1 ? i : g)] + bias[k][g]);
#pragma unroll
            for (int f = 0; f < Cell::FREE; f++) input[f] = z[j * VALUES + (GATES + f) % 4];
            Cell::rest(gate, input, constants[k], state, saved);
#pragma unroll
            for (int s = 0; s < STATES; s++) *state_at(p, j * EACH + i, s) = state[s];
            fresh[i] = state[Cell::THROUGH];
            if (SAVES)
#pragma unroll
              for (int r = 0; r < Cell::RESULTS; r++) result(r, j, i, state, saved);
          }
          if (t + 1 < steps) put_all(image, j, fresh);
        }
        if (t + 1 < steps) tell(id);
        clock.mark(CELL);

        // Nobody waits for what follows.
        if (!SAVES)
#pragma unroll
          for (int i = 0; i < CELLS; i++) {
            float state[STATES], saved[1];
#pragma unroll
            for (int s = 0; s < STATES; s++) state[s] = *state_at(p, i, s);
#pragma unroll
            for (int r = 0; r < Cell::RESULTS; r++) result(r, i / EACH, i % EACH, state, saved);
          }
        const int next = p + 1 < passes ? t : t + 1;
        begin(min(next, steps - 1), p + 1 < passes ? id + groups : group);
        clock.mark(REST);
      }
    if (CLOCKS && blockIdx.x == 0 && mine == 0) clock.tell(cell, batch, role * PHASES, steps);
  } else {
    fewer_registers<FEWER>();
    if (my.warp < 2) {
      const shared_t full = bars + my.warp * (16 * DEPTH);
      copy_all_turns(there, partner * 2 + my.warp, rings + my.warp * DEPTH * PIECE, full, full + 8 * DEPTH, steps, passes, status);
    }
  }
  // The other block may end before this one's messages arrive. All have been counted as often as
  // they will be. The last block to end resets the counters to 0.
  cluster_barrier();
  if (tid != 0 || atomicAdd(control + 1, 1) != gridDim.x - 1) return;
  control[1] = 0;
  for (int i = 0; i < all * SHARES * PORTIONS; i++) there.counters[i * 32] = 0;
}
#ifdef SAMPLE_MMA_WIDE
#include "sample/mma_wide_entry.cuh"
#endif
