#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_MMA_BULK
#include "sample/mma_bulk.cuh"
#endif
// A layer over all steps in a group of blocks from all over the GPU, its products on tensor cores
// as in mma.cu. With many values to exchange, words that each say whether they are new would be
// twice the bytes, and every thread would poll many. So here a group's h of SAMPLES sequences lies
// in memory as it will lie in shared memory. Warps that have written their part count themselves.
// Once all are counted, each block copies it whole.
//
// A group with more than SAMPLES sequences takes turns with them, a step of each: while the last
// turn's h travels, it multiplies the next. A turn:
//
//   wait      until h has been copied
//   product   the warp's rows times its slice of h
//   sum       over the slices, through shared memory
//   cell      states are in shared memory; h goes to memory, and is counted
//   copy      the h of the next turn; with enough turns, of the next but one, which is
//             there by then
__device__ __forceinline__ void mma_bulk_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr int BUSY = APART <= SAMPLES ? SPLIT : SAMPLES / ACROSS; // warps per BAND that have sequences
  DYNAMIC_SHARED(memory);
  unsigned char* const h = memory + 128;                      // [SLOTS][SAMPLES][ROW]
  float* const sums = (float*)(h + SLOTS * BUFFER);           // [WARPS][PART]
  quad* const far = (quad*)(sums + WARPS * PART);             // weights in shared memory
  float* const states = (float*)(far + FAR); // [passes][EACH][STATES][THREADS]
  const shared_t bar = shared_address(memory);
  const Thread my;
  const int groups = gridDim.x / CLUSTER;
  const int all = (batch + SAMPLES - 1) / SAMPLES, passes = (all - my.group + groups - 1) / groups; // groups of SAMPLES sequences in all, and this group's
  const int lead = SLOTS == 2 && passes >= 4 ? 2 : 1;         // turns ahead whose h is copied
  const bool early = passes > 1, late = passes >= 2 + lead;   // it has been written by then; and long before

  const Weights weights(cell, my, far, status);

  const int local = my.warp / SPLIT * BAND + my.lane % BAND, unit = my.rank * UNITS + local, u = min(unit, HIDDEN - 1);
  const int sample = my.slice * ACROSS + my.lane / BAND;            // and every APART-th after it
  const bool some = my.slice < BUSY;
  const Fixed fixed(cell, u);
  const long long stride = cell.stride(batch);
  bool stuck = false;

  // For each SAMPLES sequences: a counter, and two images of h, for even and odd steps.
  unsigned* const counters = control + 64;
  unsigned char* const images = (unsigned char*)(counters + all * 32);
  auto image = [&](int id, int step) { return images + (step % 2 * (long long)all + id) * BUFFER; };
  auto put = [&](int id, int step, int n, float fresh) {
    if (unit >= HIDDEN) fresh = 0;
    const unsigned word = word_of(fresh, __shfl_xor_sync(0xffffffff, fresh, 1), my.lane % 2, status);
    if (my.lane % PAIR == 0 && unit < WORDS * PAIR && id * SAMPLES + n < batch) *(unsigned*)(image(id, step) + n * ROW + unit / PAIR * 4) = word;
  };
  auto count = [&](int id) {
    __syncwarp();
    if (my.lane == 0) add_release(counters + id * 32);
  };
  int next_pass = 0, next_step = 0, next = 0;                 // of the next copy, in one thread
  bool lost = false;
  auto copy = [&] {
    const int id = next_pass * groups + my.group, bytes = min(SAMPLES, batch - id * SAMPLES) * ROW;
    const unsigned want = (next_step + 1) * (CLUSTER * (UNITS / BAND) * BUSY);
    const long long start = clock64();
    while (!lost && (int)(get_acquire(counters + id * 32) - want) < 0) {
      pause();
      if (clock64() - start > PATIENCE) {
        *status = STUCK;
        lost = true;
      }
    }
    if (lost) return;
    bar_arrive(bar + 8 * (next % SLOTS), bytes);
    copy_bulk(shared_address(h + next % SLOTS * BUFFER), image(id, next_step), bytes, bar + 8 * (next % SLOTS));
    next++;
    if (++next_pass == passes) next_pass = 0, next_step++;
  };
  const bool copies = my.tid == THREADS - 32;

  for (int i = my.tid; i < SLOTS * BUFFER / 4; i += THREADS) ((unsigned*)h)[i] = 0;
  show_engine();  // the engine's copies come after these writes
  if (some)
    for (int p = 0; p < passes; p++) {
      const int id = p * groups + my.group;
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        float state[STATES];
        cell.before(min(id * SAMPLES + sample + e * APART, batch - 1), u, state);
#pragma unroll
        for (int s = 0; s < STATES; s++) states[((p * EACH + e) * STATES + s) * THREADS + my.tid] = state[s];
        put(id, 0, sample + e * APART, state[Cell::THROUGH]);
      }
      count(id);
    }
  if (my.tid == 0) {
    bar_init(bar, 1);
    bar_init(bar + 8, 1);
    bar_publish();
  }
  __syncthreads();
  if (copies)
    for (int i = 0; i < min(lead, steps * passes); i++) copy();

  Clock<CLOCKS> clock;
  int slot = 0, phase = 0, written = -1;                      // what is still to be counted; counting waits for writes, so it is done later
  for (int t = 0; t < steps; t++)
    for (int p = 0; p < passes; p++) {
      const int id = p * groups + my.group, left = (steps - 1 - t) * passes + passes - 1 - p;
      float x[EACH][INPUTS];
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        const int n = min(id * SAMPLES + sample + e * APART, batch - 1);
        const Cell::Input* at = cell.input(0, n, u) + t * stride;
#pragma unroll
        for (int i = 0; i < INPUTS; i++) {
          const int g = i < GATES ? i : Cell::free(i - GATES);
          const bool used = some && (i >= GATES || Cell::owns(g));
          x[e][i] = used ? cell.value(at, g, t, batch, n) : 0;
          if (used && !Cell::flag(g) && t + 2 < steps) prefetch(at + 2 * stride + cell.at(g));
        }
      }
      if (!stuck && !arrived(bar + 8 * slot, phase)) {
        *status = STUCK;
        stuck = true;
      }
      clock.mark(WAIT);
      Sums sum;
      clear(sum);
      weights.multiply_all(sum, h, slot * BUFFER, my);
      clock.mark(PRODUCT, sum[0][0][0][0], sum[CHAINS - 1][EIGHTS - 1][TILES - 1][3]);
      if (written >= 0) count(written);
      written = -1;
      __syncthreads();  // all have read the sums of the turn before, and this h
      put_sums<CHAINS, SAMPLES>(sum, sums + my.warp * PART, my.lane);
      __syncthreads();
      clock.mark(SUM);

      if (copies && early && left >= lead) copy();
      clock.mark(SEND);
      float state[EACH][STATES], saved[EACH][Cell::SAVED > 0 ? Cell::SAVED : 1];
      if (some) {
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          const int n = sample + e * APART;
          float gate[GATES];
#pragma unroll
          for (int s = 0; s < STATES; s++) state[e][s] = states[((p * EACH + e) * STATES + s) * THREADS + my.tid];
#pragma unroll
          for (int g = 0; g < GATES; g++) {
            const float z = sum_of<SPLIT, SAMPLES, PART>(x[e][g] + fixed.bias[g], sums + my.warp / SPLIT * SPLIT * PART, g, my.lane % BAND, n);
            gate[g] = Cell::early(g, z);
          }
          Cell::rest(gate, x[e] + GATES, fixed.constants, state[e], saved[e]);
          if (t + 1 < steps) put(id, t + 1, n, state[e][Cell::THROUGH]);
        }
        clock.mark(CELL);
        if (t + 1 < steps && !late) count(id);
        if (t + 1 < steps && late) written = id;
      }
      if (copies && !early && left >= lead) copy();

      clock.mark(SEND);

      // Nobody waits for what follows.
      if (some)
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          const int n = id * SAMPLES + sample + e * APART;
#pragma unroll
          for (int s = 0; s < STATES; s++) states[((p * EACH + e) * STATES + s) * THREADS + my.tid] = state[e][s];
          if (unit < HIDDEN && n < batch)
#pragma unroll
            for (int r = 0; r < Cell::RESULTS; r++) Cell::put(r, cell.place(r, batch, t * batch + n, unit), Cell::result(r, state[e], saved[e]));
        }
      if (++slot == SLOTS) slot = 0, phase ^= 1;
      clock.mark(REST);
    }
  if (CLOCKS && blockIdx.x == 0 && (my.tid == 0 || copies)) clock.tell(cell, batch, my.tid == 0 ? 0 : PHASES, steps);
  // All have been counted as often as they will be.
  // The last block to end resets the counters to 0.
  if (my.tid != 0 || atomicAdd(control + 1, 1) != gridDim.x - 1) return;
  control[1] = 0;
  for (int i = 0; i < all; i++) counters[i * 32] = 0;
}
#ifdef SAMPLE_MMA_BULK
#include "sample/mma_bulk_entry.cuh"
#endif
