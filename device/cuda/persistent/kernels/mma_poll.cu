#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_MMA_POLL
#include "sample/mma_poll.cuh"
#endif
// A layer over all steps in a group of blocks from all over the GPU. Its weights are in registers
// and shared memory, and its products on tensor cores as in mma.cu. The blocks leave h in memory.
// Each warp reads the part that it multiplies from there straight into registers. Every lane finds
// the 16 bytes of a fragment side by side. A step:
//
//   wait      polls all of the warp's slice of h; each part is multiplied once it has
//             come
//   product   the warp's rows times its slice
//   sum       over the slices, through shared memory
//   cell      states stay in registers
//   put       the units' new h to memory, for all blocks
//
// So no thread waits for a whole block except for sums, and there only for the warps of its own
// units. A group with more than SAMPLES sequences takes turns with PARTS of them, a step of each:
// while the last part's h travels, it multiplies the next.
//
// Each word says by itself whether it is new. In 16-bit values within ±2, the highest bit of the
// exponent is free: it tells odd uses of a word from even ones (PHASED), since all words are used
// equally often. BOUNDED is 1 if h is a product of sigmoids and tangents. It is 2 if h lies between
// such a product and the h before it: then h stays bounded if the first h is. Otherwise a word is
// 64 bits, half of it the number of the exchange.
template <bool PHASED> __device__ __forceinline__ void pull(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr int LINES = CHUNKS * SPLIT;                       // pieces of 64 bytes of HIDDEN columns, rounded up
  constexpr bool FULL = WORDS == LINES * 16;
  constexpr int WIDE = PHASED ? 1 : 2, IMAGE = LINES * SEQUENCES * 16 * WIDE; // words of 32 bits of a step's h
  constexpr int MOST = EIGHTS < 4 ? 4 / EIGHTS : 1, DEEP = CHUNKS < MOST ? CHUNKS : MOST; // pieces that are read at the same time
  constexpr int PORTIONS = (CHUNKS + DEEP - 1) / DEEP;
  constexpr int AHEAD = PARTS == 1 ? 2 : 1;                   // steps from reading inputs to their use
  constexpr unsigned FREE_BITS = 0x40004000;

  DYNAMIC_SHARED(memory);
  float* const sums = (float*)memory;                         // [2][WARPS][PART], used in turns
  quad* const far = (quad*)(sums + 2 * WARPS * PART);         // weights in shared memory
  steps = keep(steps, memory);
  const Thread my;

  const Weights weights(cell, my, far, status);

  // For each group: the number of its latest exchange, and two buffers of words,
  // [LINES][SEQUENCES][16], separate ones for either kind of words.
  constexpr int ONE = 32 + 2 * LINES * SEQUENCES * 16, TWO = 32 + 4 * LINES * SEQUENCES * 16;
  unsigned* const latest = control + 64 + my.group * ((BOUNDED ? ONE : 0) + (BOUNDED != 1 ? TWO : 0ll)) + (BOUNDED && !PHASED ? ONE : 0);
  unsigned* const words = latest + 32;
  unsigned number = *(volatile unsigned*)latest;

  const int local = my.warp / SPLIT * BAND + my.lane % BAND, unit = my.rank * UNITS + local, u = min(unit, HIDDEN - 1);
  const int sample = my.slice * ACROSS + my.lane / BAND;            // and every APART-th after it
  const bool some = sample < SAMPLES;                         // else there are more threads than sums
  const Fixed fixed(cell, u);
  const long long stride = cell.stride(batch);
  bool stuck = false;
  Clock<CLOCKS> clock;
  const int together = gridDim.x / CLUSTER * SEQUENCES;
  for (int begin = my.group * SEQUENCES; begin < batch; begin += together) {
    __syncthreads();
    const int live = keep(min(SEQUENCES, batch - begin), memory); // sequences of the group
    float state[PARTS][EACH][STATES];
    float x[AHEAD][PARTS][EACH][INPUTS];                      // inputs of even and odd steps
    auto input = [&](int part, int e, int now, int t) {
      const int n = min(begin + part * SAMPLES + sample + e * APART, batch - 1);
      const Cell::Input* at = cell.input(0, n, u) + t * stride;
#pragma unroll
      for (int i = 0; i < INPUTS; i++) {
        const int g = i < GATES ? i : Cell::free(i - GATES);
        x[now % AHEAD][part][e][i] = i >= GATES || Cell::owns(g) ? cell.value(at, g, t, batch, n) : 0;
        if ((i >= GATES || Cell::owns(g)) && !Cell::flag(g) && t + 8 < steps) prefetch(at + 8 * stride + cell.at(g));
      }
    };
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        const int n = min(begin + part * SAMPLES + sample + e * APART, batch - 1);
        cell.before(n, u, state[part][e]);
#pragma unroll
        for (int t = 0; t < AHEAD; t++) input(part, e, t, min(t, steps - 1));
      }

    quad in[2][DEEP][EIGHTS][WIDE];
    for (int even = 0; even < steps; even += 2)
#pragma unroll
      for (int now = 0; now < 2; now++) {
        const int t = even + now;
        if (t >= steps) break;
        const unsigned pattern = PHASED ? ((number + 1) / 2 % 2 ? FREE_BITS : 0) : number, next = number + 1;
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
          // look reads DEEP pieces of each eight sequences of a part.
          auto look = [&](int part, int portion) {
#pragma unroll
            for (int d = 0; d < DEEP; d++)
#pragma unroll
              for (int e = 0; e < EIGHTS; e++)
#pragma unroll
                for (int k = 0; k < WIDE; k++) {
                  const int i = portion * DEEP + d, n = part * SAMPLES + e * 8 + my.row;
                  if (i < CHUNKS && n < SEQUENCES)
                    in[portion % 2][d][e][k] = get_quad(words + number % 2 * IMAGE + (((i * SPLIT + my.slice) * SEQUENCES + n) * 16 + my.four * 4) * WIDE + k * 4);
                }
          };
          auto beyond = [&](int i, int j) { return !FULL && ((i * SPLIT + my.slice) * 4 + my.four) * 4 + j >= WORDS; };
          auto come = [&](int portion) {
            unsigned wrong = 0;
#pragma unroll
            for (int d = 0; d < DEEP; d++)
#pragma unroll
              for (int e = 0; e < EIGHTS; e++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                  const int i = portion * DEEP + d;
                  if (i >= CHUNKS || beyond(i, j) || part * SAMPLES + e * 8 + my.row >= SEQUENCES) continue;
                  const quad(&q)[WIDE] = in[portion % 2][d][e];
                  wrong |= PHASED ? (q[0].v[j] ^ pattern) & FREE_BITS : q[j / 2 % WIDE].v[j % 2 * 2 + 1] ^ pattern;
                }
            return __all_sync(0xffffffff, wrong == 0);
          };
          // The first h is the caller's.
          auto first = [&](int portion) {
            for (int d = 0; d < DEEP; d++)
              for (int e = 0; e < EIGHTS; e++)
                for (int j = 0; j < 4; j++) {
                  const int n = min(begin + part * SAMPLES + e * 8 + my.row, batch - 1);
                  const int k = (((portion * DEEP + d) * SPLIT + my.slice) * 4 + my.four) * FEW + (EXACT ? j / 2 * 2 : j * PAIR);
                  float a[STATES], b[STATES];
                  cell.before(n, min(k, HIDDEN - 1), a);
                  cell.before(n, min(k + 1, HIDDEN - 1), b);
                  const float own = a[Cell::THROUGH], other = k + 1 < HIDDEN ? b[Cell::THROUGH] : 0;
                  in[portion % 2][d][e][PHASED ? 0 : j / 2 % WIDE].v[PHASED ? j : j % 2 * 2] = EXACT && j % 2 ? word_of(other, own, true, status) : word_of(own, other, false, status);
                }
          };
          Sums sum;
          clear(sum);
          if (t > 0 && (PARTS == 1 || part == 0)) look(part, 0);
#pragma unroll
          for (int p = 0; p < PORTIONS; p++) {
            if (t == 0) {
              first(p);
            } else {
              if (p + 1 < PORTIONS) look(part, p + 1);
              if (!stuck && !come(p)) {
                const long long start = clock64();
                do {
                  look(part, p);
                  if (p + 1 < PORTIONS) look(part, p + 1);
                  if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) {
                    *status = STUCK;
                    stuck = true;
                  }
                } while (!stuck && !come(p));
              }
            }
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
                  const unsigned v = in[p % 2][d][e][PHASED ? 0 : j / 2 % WIDE].v[PHASED ? j : j % 2 * 2];
                  b[e].v[j] = beyond(i, j) || part * SAMPLES + e * 8 + my.row >= SEQUENCES ? 0 : PHASED && t > 0 ? v & ~FREE_BITS : v;
                }
              weights.multiply_piece(sum, i, b, my.tid);
            }
          }
          clock.mark(PRODUCT, sum[0][0][0][0], sum[CHAINS - 1][EIGHTS - 1][TILES - 1][3]);
          if (t > 0 && part + 1 < PARTS) look(part + 1, 0);   // it may have come by now
          float* const mine = sums + (now * PARTS + part) % 2 * WARPS * PART;
          put_sums<CHAINS, SAMPLES>(sum, mine + my.warp * PART, my.lane);
          if (SPLIT == 1) __syncwarp();
          else if (UNITS / BAND <= 15) meet_at(1 + my.warp / SPLIT, SPLIT * 32);
          else __syncthreads();
          clock.mark(SUM);

          float saved[EACH][Cell::SAVED > 0 ? Cell::SAVED : 1];
          if (some) {
#pragma unroll
            for (int e = 0; e < EACH; e++) {
              const int n = sample + e * APART;
              fixed.run(x[now % AHEAD][part][e], mine + my.warp / SPLIT * SPLIT * PART, my.lane % BAND, n, state[part][e], saved[e]);
              const float fresh = unit < HIDDEN ? state[part][e][Cell::THROUGH] : 0, other = __shfl_xor_sync(0xffffffff, fresh, 1);
              const unsigned word = word_of(fresh, other, my.lane % 2, status);
              if (my.lane % PAIR == 0 && t + 1 < steps && unit < WORDS * PAIR && part * SAMPLES + n < SEQUENCES) {
                const int k = unit / PAIR;
                unsigned* const to = words + next % 2 * IMAGE + ((k / 16 * SEQUENCES + part * SAMPLES + n) * 16 + k % 16) * WIDE;
                if (PHASED) put_one(to, word & ~FREE_BITS | ((next + 1) / 2 % 2 ? FREE_BITS : 0));
                else put_word(to, __uint_as_float(word), next);
              }
            }
          }
          clock.mark(CELL);

          // Nobody waits for what follows.
#pragma unroll
          for (int e = 0; e < EACH; e++) {
            const int n = part * SAMPLES + sample + e * APART;
            if (some && unit < HIDDEN && n < live)
#pragma unroll
              for (int r = 0; r < Cell::RESULTS; r++) Cell::put(r, cell.place(r, batch, t * batch + begin + n, unit), Cell::result(r, state[part][e], saved[e]));
            if (t + AHEAD < steps) input(part, e, now, t + AHEAD);
          }
          clock.mark(REST);
        }
        if (t + 1 < steps) number = next;
      }
  }
  // All blocks of the group have read the number, or there was no exchange.
  if (my.rank == 0 && my.tid == 0 && steps > 1) *latest = number;
  if (CLOCKS && blockIdx.x == 0 && (my.tid == 0 || my.tid == THREADS - 32)) clock.tell(cell, batch, my.tid == 0 ? 0 : PHASES, steps);
}

__device__ __forceinline__ void mma_poll_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  if (BOUNDED == 2) {  // does any first h of a group exceed ±1?
    const int group = blockIdx.x / CLUSTER, together = gridDim.x / CLUSTER * SEQUENCES;
    DYNAMIC_SHARED(memory);
    int* const large = (int*)memory;
    if (threadIdx.x == 0) *large = 0;
    __syncthreads();
    for (int begin = group * SEQUENCES; begin < batch; begin += together)
      if (any_beyond(cell, begin, min(SEQUENCES, batch - begin))) *large = 1;
    __syncthreads();
    const bool any = *large;
    __syncthreads();
    if (any) return pull<false>(cell, steps, batch, control, status);
  }
  pull<BOUNDED != 0>(cell, steps, batch, control, status);
}
#ifdef SAMPLE_MMA_POLL
#include "sample/mma_poll_entry.cuh"
#endif
