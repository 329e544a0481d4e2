#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_MMA_STREAM
#include "sample/mma_stream.cuh"
#endif
// A layer whose weights exceed the chip, over all steps in one group of blocks from all over the
// GPU, with products on tensor cores. A block's weights are in three tiers: registers, shared
// memory, and memory, in practice the L2 cache. Those in memory pass through a ring in shared
// memory at each step. Weights never change, so the ring simply goes round: it fills again while
// states are exchanged.
//
// The warps of a block share the columns. Each multiplies all rows of the block, gate after gate,
// in TILES tiles of 16, by its slice of h. So a block reads each state once. One product of
// fragments uses half a piece of the columns. Each warp has a ring of its own, and starts the next
// copy as soon as it has multiplied one. A group with many sequences takes turns with PARTS of
// them: while the last part's h travels, it multiplies the next. A turn:
//
//   wait      until the warp's slice of h has come (see mma_poll.cu for words that say
//             by themselves whether they are new)
//   product   first the weights in the ring, then those of all tiers in turn
//   sum       over the warps, in the place of their last copies, a few eights of sequences
//             at a time
//   cell      states stay in registers
//   put       the units' new h to memory, for all blocks
constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, STATES = Cell::STATES, INPUTS = GATES + Cell::FREE;
constexpr int THREADS = SPLIT * 32, TILES = tiles_of(GATES), EIGHTS = SAMPLES / 8, CHAINS = chains(TILES * EIGHTS);
constexpr int LOCAL = THREADS / 8, ROUNDS = (UNITS + LOCAL - 1) / LOCAL;   // units that run at the same time, for eight sequences, and rounds of them
constexpr int WORDS = (HIDDEN + SIDE - 1) / SIDE * SIDE / PAIR;            // of a sequence's h
constexpr int LAST = GATES * UNITS % 16 == 0 ? 32 : GATES * UNITS % 16 * 2; // lanes that have rows of the last tile
constexpr int HALVES = 2 * CHUNKS, FAR = HALVES - NEAR - PASSING, QUADS = (TILES - 1) * 32 + LAST; // quads per half
constexpr int BARRIERS = (SPLIT * RING * 8 + 16 + 127) / 128 * 128;        // bytes, the last 16 for values that all threads keep
constexpr int HELD = EIGHTS > 1 && STAGE == 1 && RING > 1 && PASSING > 1 ? 2 : 1, BUFFERS = EIGHTS > 1 ? HELD * STAGE : 1; // copies whose places are refilled late, since sums are there
constexpr int SLOTS = RING * STAGE * QUADS * 4;                            // words of a warp's ring

typedef Tiers<HALVES, PASSING, RING * STAGE> Tier;                         // of a warp's halves
typedef float Sums[CHAINS][EIGHTS][TILES][4]; // a lane's part of a warp's sums

// multiply_half multiplies half of a piece of the columns by EIGHTS tiles of eight sequences.
__device__ __forceinline__ void multiply_half(Sums& sum, int half, const quad* weights, const quad* in) {
  constexpr int LOWS = CHAINS > 1 ? 1 : 0;
#pragma unroll
  for (int part = 0; part < (EXACT && half % 2 == 0 ? 2 : 1); part++)
#pragma unroll
    for (int g = 0; g < TILES; g++)
#pragma unroll
      for (int n = 0; n < EIGHTS; n++)
        if (EXACT)  // high · high and high · low, or low · high
          mma_part(fp16(), sum[half % 2 ? CHAINS - 1 : part ? LOWS : 0][n][g], weights[g].v, in[n].v[part], in[n].v[part + 2]);
        else
          mma_part(W(), sum[half % CHAINS][n][g], weights[g].v, in[n].v[half % 2 * 2], in[n].v[half % 2 * 2 + 1]);
}

// The values of a unit's cell that are the same at all steps.
struct Fixed {
  float bias[GATES], constants[Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
  __device__ __forceinline__ void take(const Cell& cell, int u) {
#pragma unroll
    for (int g = 0; g < GATES; g++) bias[g] = cell.bias(g, u);
    cell.constants(u, constants);
  }
  // run adds the sums of all warps to the inputs x, for one of the block's units and one of eight
  // sequences, and runs the cell.
  __device__ __forceinline__ void run(const float* x, const float* sums, int unit, int n, float* state, float* saved) const {
    float gate[GATES];
#pragma unroll
    for (int g = 0; g < GATES; g++) {
      const float* const at = sums + unit / 2 * 16 + unit % 2 * 2 + n / 2 * 4 + n % 2 + g * (UNITS / 2 * 16); // in the order in which lanes left them
      float z = x[g] + bias[g];
#pragma unroll
      for (int q = 0; q < SPLIT; q++) z += at[q * SLOTS];
      gate[g] = Cell::early(g, z);
    }
    Cell::rest(gate, x + GATES, constants, state, saved);
  }
};

// turn rotates v, so that the next part's values come first and this part's last.
template <int N, class T> __device__ __forceinline__ void turn(T (&v)[N]) {
  if (N == 1) return;
  float(*const all)[sizeof(T) / 4] = (float(*)[sizeof(T) / 4])&v;
#pragma unroll
  for (int i = 0; i < (int)sizeof(T) / 4; i++) {
    const float first = all[0][i];
#pragma unroll
    for (int n = 0; n + 1 < N; n++) all[n][i] = all[n + 1][i];
    all[N - 1][i] = first;
  }
}

template <bool PHASED> __device__ __forceinline__ void stream_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr int LINES = CHUNKS * SPLIT;                       // pieces of 64 bytes of HIDDEN columns, rounded up
  constexpr bool FULL = WORDS == LINES * 16;
  constexpr int WIDE = PHASED ? 1 : 2, IMAGE = LINES * SEQUENCES * 16 * WIDE; // words of 32 bits of a step's h
  constexpr int DEEP = PHASED || LOOK == 1 ? LOOK : LOOK / 2, PORTIONS = (CHUNKS + DEEP - 1) / DEEP; // pieces per portion, and portions
  constexpr int UNDER_WAY = PHASED || DEEP < LOOK ? AHEAD : 2;  // portions that are read at the same time
  constexpr unsigned FREE_BITS = SIZE == 4 && !EXACT ? 0x40000000 : 0x40004000; // the highest of an exponent, free within ±2

  DYNAMIC_SHARED(memory);
  quad* const stages = (quad*)(memory + BARRIERS);            // [SPLIT][RING][STAGE][QUADS]
  quad* const shared = stages + SPLIT * RING * STAGE * QUADS; // [SPLIT][FAR][QUADS]
  int* const kept = (int*)(memory + BARRIERS - 16);
  steps = keep(steps, kept);
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, row = lane / 4, four = lane % 4;
  const int rank = blockIdx.x;

  // The number of the latest exchange, and two buffers of words, [LINES][SEQUENCES][16], separate
  // ones for either kind of words. After them, each block has the first h, as if it had been
  // exchanged, and then the weights that pass through rings, [blocks][SPLIT][PASSING][QUADS].
  constexpr int IMAGES = 2 * LINES * SEQUENCES * 16, ONE = 32 + IMAGES, TWO = 32 + 2 * IMAGES, BOTH = (BOUNDED ? ONE : 0) + (BOUNDED != 1 ? TWO : 0);
  constexpr int INITIAL = IMAGES / (BOUNDED == 1 ? 2 : 1);
  unsigned* const latest = control + 64 + (BOUNDED && !PHASED ? ONE : 0);
  unsigned* const words = latest + 32;
  unsigned number = *(volatile unsigned*)latest;
  unsigned* const initial = control + 64 + BOTH + rank * INITIAL;
  quad* const passing = (quad*)(control + 64 + BOTH + CLUSTER * INITIAL) + (rank * SPLIT + warp) * (PASSING * QUADS) + lane;

  quad near[NEAR > 0 ? NEAR : 1][TILES];
  quad* const far = shared + warp * (FAR * QUADS) + lane;
  auto fill = [&](int half, int g) { return tile_of(cell, g, rank * UNITS, ((half / 2 * SPLIT + warp) * 4 + four) * FEW, half % 2, status); };
  auto is_near = [](int half) { return half >= HALVES || !Tier::streamed(half) && half - Tier::streamed_before(half) < NEAR; };
  constexpr int FILLED = TILES < 8 ? 24 / TILES : 3;  // halves read before any is written, since reads might wait for writes
#pragma unroll 1
  for (int first = 0; first < HALVES; first += FILLED) {
    quad some[FILLED][TILES];
#pragma unroll
    for (int i = 0; i < FILLED * TILES; i++) some[i / TILES][i % TILES] = fill(first + i / TILES, i % TILES);
#pragma unroll
    for (int i = 0; i < FILLED; i++) {
      if (is_near(first + i)) continue;
      const int before = Tier::streamed_before(first + i), resident = first + i - before;
      quad* const to = Tier::streamed(first + i) ? passing + before * QUADS : far + (resident - NEAR) * QUADS;
#pragma unroll
      for (int g = 0; g < TILES; g++)
        if (g < TILES - 1 || lane < LAST) to[g * 32] = some[i][g];
    }
  }
#pragma unroll
  for (int half = 0; half < HALVES; half++) {
    const int resident = half - Tier::streamed_before(half);
    if (is_near(half))
#pragma unroll
      for (int g = 0; g < TILES; g++) near[resident < NEAR ? resident : 0][g] = fill(half, g);
  }
  const int passes = (batch + SEQUENCES - 1) / SEQUENCES;
  Ring<PASSING / STAGE, RING, STAGE * QUADS, KEPT> ring;
  ring.begin(passing - lane, stages + warp * (RING * STAGE * QUADS), shared_address(memory) + warp * RING * 8, passes * steps * PARTS * (PASSING / STAGE), lane);

  // A thread runs the cells of one sequence of each eight, and of ROUNDS units.
  Fixed fixed[ROUNDS];
  int unit[ROUNDS];
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    unit[r] = rank * UNITS + min(tid / 8 + r * LOCAL, UNITS - 1);
    fixed[r].take(cell, min(unit[r], HIDDEN - 1));
  }
  const long long stride = cell.stride(batch);
  bool stuck = false;
  Clock<CLOCKS> clock;
  for (int begin = 0; begin < batch; begin += SEQUENCES) {
    __syncthreads();
    const int live = keep(min(SEQUENCES, batch - begin), kept); // sequences of the group
    float state[PARTS][EIGHTS][ROUNDS][STATES], x[PARTS][EIGHTS][ROUNDS][INPUTS]; // the current part's come first; x is of the next step
    auto input = [&](int after, int first, int e, int r, int t) {
      const int n = min(begin + first + e * 8 + tid % 8, batch - 1);
      const Cell::Input* at = cell.input(0, n, min(unit[r], HIDDEN - 1)) + t * stride;
#pragma unroll
      for (int i = 0; i < INPUTS; i++) {
        const int g = i < GATES ? i : Cell::free(i - GATES);
        x[after][e][r][i] = i >= GATES || Cell::owns(g) ? cell.value(at, g, t, batch, n) : 0;
      }
    };
#pragma unroll
    for (int e = 0; e < PARTS * EIGHTS; e++)
#pragma unroll
      for (int r = 0; r < ROUNDS; r++) {
        cell.before(min(begin + e * 8 + tid % 8, batch - 1), min(unit[r], HIDDEN - 1), state[e / EIGHTS][e % EIGHTS][r]);
        input(e / EIGHTS, e / EIGHTS * SAMPLES, e % EIGHTS, r, 0);
      }

    // The first h is the caller's. Each lane stores what it will multiply.
    constexpr int FIRST = 4, ALL = CHUNKS * PARTS * EIGHTS;  // pieces read before any is written, and all pieces
#pragma unroll 1
    for (int first = 0; first < ALL; first += FIRST) {
      float own[FIRST][4], other[FIRST][4];
#pragma unroll
      for (int i = 0; i < FIRST; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const int piece = min(first + i, ALL - 1), at = min(begin + piece % (PARTS * EIGHTS) * 8 + row, batch - 1);
          const int k = ((piece / (PARTS * EIGHTS) * SPLIT + warp) * 4 + four) * FEW + (EXACT ? j / 2 * 2 : j * PAIR);
          float a[STATES], b[STATES];
          cell.before(at, min(k, HIDDEN - 1), a);
          cell.before(at, min(k + 1, HIDDEN - 1), b);
          own[i][j] = a[Cell::THROUGH], other[i][j] = k + 1 < HIDDEN ? b[Cell::THROUGH] : 0;
        }
#pragma unroll
      for (int i = 0; i < FIRST; i++) {
        const int n = (first + i) % (PARTS * EIGHTS) * 8 + row;
        if (first + i >= ALL || n >= SEQUENCES) continue;
        quad q[2];
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const float a = own[i][j], b = other[i][j];
          q[PHASED ? 0 : j / 2].v[PHASED ? j : j % 2 * 2] = EXACT && j % 2 ? word_of(b, a, true, status) : word_of(a, b, false, status);
        }
#pragma unroll
        for (int k = 0; k < WIDE; k++) ((quad*)(initial + (((first + i) / (PARTS * EIGHTS) * SPLIT + warp) * SEQUENCES + n) * (16 * WIDE)))[four * WIDE + k] = q[k];
      }
    }

    quad in[UNDER_WAY][DEEP][EIGHTS][WIDE];
    for (int t = 0, part = 0; t < steps; part + 1 < PARTS ? part++ : (part = 0, t++)) {
      const int own = part * SAMPLES;                           // the first sequence of the part
      const unsigned pattern = PHASED ? ((number + 1) / 2 % 2 ? FREE_BITS : 0) : number, next = number + 1;
      const unsigned* const from = t == 0 ? initial : words + number % 2 * IMAGE;
      // look reads DEEP pieces of all sequences of the part.
      auto look = [&](int portion) {
#pragma unroll
        for (int d = 0; d < DEEP; d++)
#pragma unroll
          for (int e = 0; e < EIGHTS; e++)
#pragma unroll
            for (int k = 0; k < WIDE; k++) {
              const int i = portion * DEEP + d, n = own + e * 8 + row;
              if (i < CHUNKS && n < SEQUENCES)
                in[portion % UNDER_WAY][d][e][k] = get_quad(from + (((i * SPLIT + warp) * SEQUENCES + n) * 16 + four * 4) * WIDE + k * 4);
            }
      };
      auto beyond = [&](int i, int j) { return !FULL && ((i * SPLIT + warp) * 4 + four) * 4 + j >= WORDS; };
      auto come = [&](int portion) {
        unsigned wrong = 0;
#pragma unroll
        for (int d = 0; d < DEEP; d++)
#pragma unroll
          for (int e = 0; e < EIGHTS; e++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
              const int i = portion * DEEP + d;
              if (i >= CHUNKS || beyond(i, j) || own + e * 8 + row >= SEQUENCES) continue;
              const quad(&q)[WIDE] = in[portion % UNDER_WAY][d][e];
              wrong |= PHASED ? (q[0].v[j] ^ pattern) & FREE_BITS : q[j / 2 % WIDE].v[j % 2 * 2 + 1] ^ pattern;
            }
        return __all_sync(0xffffffff, wrong == 0);
      };
      Sums sum;
#pragma unroll
      for (int i = 0; i < CHAINS * EIGHTS * TILES * 4; i++) (&sum[0][0][0][0])[i] = 0;
      look(0);
      constexpr int THERE = Tier::FIRST / STAGE;  // copies that come while states are exchanged
#pragma unroll
      for (int i = 0; i < THERE; i++) ring.wait(status, i);
#pragma unroll
      for (int p = 0; p < PORTIONS; p++) {
        if (t > 0 && !stuck && !come(p)) {
          const long long start = clock64();
          do {
            look(p);
            if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) {
              *status = STUCK;
              stuck = true;
            }
          } while (!stuck && !come(p));
        }
        // Portions after the first have probably come by now.
#pragma unroll
        for (int q = p == 0 ? 1 : p + UNDER_WAY - 1; q < p + UNDER_WAY && q < PORTIONS; q++) look(q);
        if (p == 0) clock.mark(WAIT, __uint_as_float(in[0][0][0][0].v[0]));
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
          const int i = p * DEEP + d;
          if (i >= CHUNKS) break;
          quad b[EIGHTS];
#pragma unroll
          for (int e = 0; e < EIGHTS; e++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
              const unsigned v = in[p % UNDER_WAY][d][e][PHASED ? 0 : j / 2 % WIDE].v[PHASED ? j : j % 2 * 2];
              b[e].v[j] = beyond(i, j) || own + e * 8 + row >= SEQUENCES ? 0 : PHASED && t > 0 ? v & ~FREE_BITS : v;
            }
#pragma unroll
          for (int half = 2 * i; half < 2 * i + 2; half++) {
            const int before = Tier::streamed_before(half), resident = half - before;
            if (!Tier::streamed(half) && resident < NEAR) {
              multiply_half(sum, half, near[resident < NEAR ? resident : 0], b);
              continue;
            }
            const quad* at = far + (resident - NEAR) * QUADS;
            if (Tier::streamed(half)) at = (before % STAGE == 0 && before >= THERE * STAGE ? ring.wait(status) : ring.here()) + before % STAGE * QUADS + lane;
            quad weights[TILES];
#pragma unroll
            for (int g = 0; g < TILES; g++) weights[g] = g < TILES - 1 || lane < LAST ? at[g * 32] : quad{};
            multiply_half(sum, half, weights, b);
            if (Tier::streamed(half) && before % STAGE == STAGE - 1) {
              if (before / STAGE < PASSING / STAGE - HELD) ring.next(before / STAGE, lane);
              else ring.leave();
            }
          }
        }
      }
      clock.mark(PRODUCT, sum[0][0][0][0], sum[CHAINS - 1][EIGHTS - 1][TILES - 1][3]);

      // The sums are where each warp's last copies were.
      auto sums_of = [&](int e) { return (float*)(stages + ring.latest(e % BUFFERS / STAGE) * (STAGE * QUADS) + e % BUFFERS % STAGE * QUADS); };
#pragma unroll
      for (int e = 0; e < EIGHTS; e++) {
        if (e % BUFFERS == 0) {
          if (e > 0) __syncthreads();  // all have read the previous sums
#pragma unroll
          for (int n = e; n < e + BUFFERS && n < EIGHTS; n++)
#pragma unroll
            for (int g = 0; g < TILES; g++) {
              float z[4];
#pragma unroll
              for (int i = 0; i < 4; i++) {
                float more = 0;
#pragma unroll
                for (int c = 1; c < CHAINS; c++) more += sum[c][n][g][i];
                z[i] = sum[0][n][g][i] + (EXACT ? more / LOW : more);
              }
              if (g < TILES - 1 || lane < LAST) store<4>(sums_of(n) + warp * SLOTS + (g * 32 + lane) * 4, z);
            }
          __syncthreads();
        }
        const float* const sums = sums_of(e);
        clock.mark(SUM);
#pragma unroll
        for (int r = 0; r < ROUNDS; r++) {
          const int local = tid / 8 + r * LOCAL, at = min(local, UNITS - 1), n = own + e * 8 + tid % 8;
          if (warp * 4 + r * LOCAL >= UNITS) break;  // the same for all of a warp
          float saved[Cell::SAVED > 0 ? Cell::SAVED : 1];
          fixed[r].run(x[0][e][r], sums, at, tid % 8, state[0][e][r], saved);
          const bool mine = local < UNITS && unit[r] < HIDDEN;
          const float fresh = mine ? state[0][e][r][Cell::THROUGH] : 0, other = __shfl_xor_sync(0xffffffff, fresh, 8);
          const unsigned word = word_of(fresh, other, local % 2, status);
          if (local % PAIR == 0 && local < UNITS && t + 1 < steps && unit[r] < WORDS * PAIR && n < SEQUENCES) {
            const int k = unit[r] / PAIR;
            unsigned* const to = words + next % 2 * IMAGE + ((k / 16 * SEQUENCES + n) * 16 + k % 16) * WIDE;
            if (PHASED) put_one(to, word & ~FREE_BITS | ((next + 1) / 2 % 2 ? FREE_BITS : 0));
            else put_word(to, __uint_as_float(word), next);
          }
          clock.mark(CELL);

          // Nobody waits for what follows.
          if (mine && n < live)
#pragma unroll
            for (int i = 0; i < Cell::RESULTS; i++) Cell::put(i, cell.place(i, batch, t * batch + begin + n, unit[r]), Cell::result(i, state[0][e][r], saved));
          if (t + 1 < steps) input(0, own, e, r, t + 1);
        }
        clock.mark(REST);
      }
      show_engine();
      __syncthreads();  // all have read the sums
#pragma unroll
      for (int before = HELD - 1; before >= 0; before--) ring.refill(PASSING / STAGE - 1 - before, lane, before);
      turn(state);
      turn(x);
      if (part == PARTS - 1 && t + 1 < steps) number = next;
    }
  }
  // All blocks of the group have read the number, or there was no exchange.
  if (rank == 0 && tid == 0 && steps > 1) *latest = number;
  if (CLOCKS && blockIdx.x == 0 && (tid == 0 || tid == THREADS - 32)) clock.tell(cell, batch, tid == 0 ? 0 : PHASES, steps);
}

__device__ __forceinline__ void mma_stream_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  if (BOUNDED == 2) {  // does any first h of a group exceed ±1?
    DYNAMIC_SHARED(memory);
    int* const large = (int*)memory;
    if (threadIdx.x == 0) *large = 0;
    __syncthreads();
    if (any_beyond(cell, 0, batch)) *large = 1;
    __syncthreads();
    const bool any = *large;
    __syncthreads();
    if (any) return stream_layer<false>(cell, steps, batch, control, status);
  }
  stream_layer<BOUNDED != 0>(cell, steps, batch, control, status);
}
#ifdef SAMPLE_MMA_STREAM
#include "sample/mma_stream_entry.cuh"
#endif
