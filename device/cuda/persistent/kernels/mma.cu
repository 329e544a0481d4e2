#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_MMA
#include "sample/mma.cuh"
#endif
// A layer over all steps in a group of blocks, its weights in registers and shared memory and its
// products on tensor cores (mma_layer.cu). Groups are divided as in simt.cu, and exchange by Push,
// below. A group has SEQUENCES sequences, rounded up to SAMPLES. A step:
//
//   wait      until all of h has come
//   product   the warp's rows times its slice of h
//   sum       over the slices, through shared memory
//   cell      of a unit for EACH sequences; states stay in registers
//   push      the units' new h to all blocks, 16 bytes at a time
constexpr bool ALONE = !SPREAD && CLUSTER == 1, SENT = !SPREAD && !ALONE;
constexpr int NEXT = SPREAD ? 0 : BUFFER;                   // from one buffer of h to the other; a block that fetches h has used up the old one
constexpr int PIECES = UNITS < FEW ? 1 : UNITS / FEW, PUSHES = (CLUSTER * SAMPLES * PIECES + THREADS - 1) / THREADS;

// Push exchanges h. A cluster pushes it to the shared memory of all of its blocks, whose barriers
// count the bytes (SENT). A group that is spread over the GPU passes words through memory
// (recurrence.cu). A block that is ALONE has it already.
struct Push {
  unsigned char *const h, *const own;                       // [1 or 2][SAMPLES][ROW]; [SAMPLES][UNITS], this block's new h
  const shared_t base, bar;
  shared_t to[PUSHES];
  Exchange<WORDS * SAMPLES, THREADS> words;
  bool stuck = false;

  __device__ __forceinline__ Push(unsigned char* h, unsigned char* own, shared_t base, const Thread& my, unsigned* control)
      : h(h), own(own), base(base), bar(base), words(control, my.group) {
    if (SENT)
#pragma unroll
      for (int p = 0; p < PUSHES; p++) to[p] = remote(base, min((my.tid + p * THREADS) / (PIECES * SAMPLES), CLUSTER - 1));
  }

  // begin reads the caller's first h of live sequences, from begin on.
  __device__ __forceinline__ void begin(const Cell& cell, const Thread& my, int begin, int live, int bytes, bool again, unsigned* status) {
    __syncthreads();
    if (SENT && my.tid == 0) expect(bar, bytes, again);
    for (int i = my.tid; i < HIDDEN * live; i += THREADS) {
      float state[STATES];
      cell.before(begin + i / HIDDEN, i % HIDDEN, state);
      put_state(h + i / HIDDEN * ROW, i % HIDDEN, state[Cell::THROUGH], status);
    }
    __syncthreads();
    if (SENT) cluster_barrier();
  }

  // wait waits for the h that step t reads.
  __device__ __forceinline__ void wait(int t, int now, int phase, int live, unsigned* status) {
    auto place = [&](int i, float v) { *(unsigned*)(h + now * NEXT + i / WORDS * ROW + i % WORDS * 4) = __float_as_uint(v); };
    if (!ALONE && !stuck && !(SPREAD ? t == 0 || words.fetch(live * WORDS, place) : arrived(bar + 8 * now, phase))) {
      *status = STUCK;
      stuck = true;
    }
    if (!SENT) __syncthreads();
  }

  // put hands over a word of sequence n's new h; more says that a step follows.
  __device__ __forceinline__ void put(unsigned word, int n, int local, int unit, int next, int live, bool more) {
    if (ALONE) *(unsigned*)(h + next * NEXT + n * ROW + local * SIZE) = word;
    else if (SENT) *(unsigned*)(own + (n * UNITS + local) * SIZE) = word;
    else if (more && unit < WORDS * PAIR && n < live) words.put(__uint_as_float(word), n * WORDS + unit / PAIR);
  }

  // send pushes the block's new h to all blocks of its cluster if it may: nothing may be in flight
  // to a block that has ended.
  __device__ __forceinline__ void send(const Thread& my, int now, int bytes, int live, bool may) {
    __syncthreads();
    constexpr bool BRANCHES = Cell::SAVED > 0 || EXACT || GATES == 1 && THREADS < 256;  // as was measured to be faster
    float piece[PUSHES][4];
    auto get = [&](int p) {
      const int i = my.tid + p * THREADS, n = i / PIECES % SAMPLES;
      load<4>(piece[p], (const float*)(own + (n * UNITS + i % PIECES * FEW) * SIZE));
    };
    if (!BRANCHES)
#pragma unroll
      for (int p = 0; p < PUSHES; p++) get(p);
    const int next = 1 - now;
    if (!BRANCHES || may)
#pragma unroll
      for (int p = 0; p < PUSHES; p++) {
        const int i = my.tid + p * THREADS, n = i / PIECES % SAMPLES, begins = my.rank * UNITS + i % PIECES * FEW;
        const bool mine = i < CLUSTER * SAMPLES * PIECES && n < live && begins < HIDDEN;
        if (BRANCHES && mine) get(p);
        if (!BRANCHES || mine) push<4>(may && mine, to[p] + 128 + next * NEXT + n * ROW + begins * SIZE, piece[p], to[p] + 8 * next);
      }
    if (my.tid == 0) bar_arrive(bar + 8 * now, bytes);  // for h(t+2)
  }
};

__device__ __forceinline__ void mma_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  DYNAMIC_SHARED(memory);
  unsigned char* const h = memory + 128;                      // [1 or 2][SAMPLES][ROW]
  unsigned char* const own = h + BUFFER + NEXT;               // [SAMPLES][UNITS], this block's new h
  float* const sums = (float*)(own + SAMPLES * UNITS * SIZE); // [WARPS][PART]
  quad* const far = (quad*)(sums + WARPS * PART);             // weights in shared memory
  const shared_t base = shared_address(memory);
  const Thread my;
  const Weights weights(cell, my, far, status);

  for (int i = my.tid; i < (BUFFER + NEXT) / 4; i += THREADS) ((unsigned*)h)[i] = 0;
  Push exchange(h, own, base, my, control);

  typedef Cell::Input Input;
  constexpr int AHEAD = STREAMED ? 3 : 2; // steps from reading inputs to their use
  static_assert(!STREAMED || STREAMED == INPUTS, "inputs");
  Stream<EACH * INPUTS, THREADS> stream(far + FAR);
  const int local = my.warp / SPLIT * BAND + my.lane % BAND, unit = my.rank * UNITS + local, u = min(unit, HIDDEN - 1);
  // If there are fewer sequences than places, some warps have none. These are spread over the
  // quarters of the multiprocessor.
  constexpr bool FEWER = SEQUENCES < SAMPLES;
  const int part = FEWER ? (my.slice + my.warp / SPLIT * SPLIT / 4) % SPLIT : my.slice;
  const int sample = part * ACROSS + my.lane / BAND;             // and every APART-th after it
  const bool some = sample < SAMPLES;                         // else there are more threads than sums
  auto idle = [&](int e, int live) { return FEWER && (part + e * SPLIT) * ACROSS >= live; };
  const Fixed fixed(cell, u);
  const long long stride = cell.stride(batch);
  Clock<CLOCKS> clock;
  const int together = gridDim.x / CLUSTER * SEQUENCES;
  for (int begin = my.group * SEQUENCES; begin < batch; begin += together) {
    const int live = min(SEQUENCES, batch - begin);             // sequences of the group
    const int bytes = live * ((HIDDEN + FEW - 1) / FEW * 16);
    exchange.begin(cell, my, begin, live, bytes, begin >= together, status);

    float state[EACH][STATES];
    const Input* from[EACH];
    float x[2][EACH][INPUTS] = {};  // inputs of even and odd steps
    auto read = [&](int now, int t) {
      if (t < steps)
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          if (idle(e, live)) continue;
          const Input* at = from[e] + t * stride;
          const int n = min(begin + sample + e * APART, batch - 1);
#pragma unroll
          for (int i = 0; i < INPUTS; i++) {
            const int g = i < GATES ? i : Cell::free(i - GATES);
            if (i < GATES && !Cell::owns(g)) continue;
            if (STREAMED && Cell::flag(g)) {
              stream.read(e * INPUTS + i, t, cell.kept(t + 1, batch, n));
            } else if (STREAMED) {
              stream.read(e * INPUTS + i, t, at + cell.at(g));
            } else {
              x[now][e][i] = cell.value(at, g, t, batch, n);
              if (!Cell::flag(g) && t + 8 < steps) prefetch(at + 8 * stride + cell.at(g));
            }
          }
        }
      if (STREAMED) stream.end();
    };
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int n = min(begin + sample + e * APART, batch - 1);
      cell.before(n, u, state[e]);
      from[e] = cell.input(0, n, u);
    }
#pragma unroll
    for (int t = 0; t < AHEAD; t++) read(t % 2, t);

    for (int even = 0, phase = 0; even < steps; even += 2, phase ^= 1)
#pragma unroll
      for (int now = 0; now < 2; now++) {
        const int t = even + now, next = 1 - now;
        if (t >= steps) break;
        if (STREAMED) {
          stream.wait();
#pragma unroll
          for (int i = 0; i < EACH * INPUTS; i++)
            if (i % INPUTS >= GATES || Cell::owns(i % INPUTS)) x[now][i / INPUTS][i % INPUTS] = stream.get(i, t);
        }
        Sums sum;
        clear(sum);
        exchange.wait(t, now, phase, live, status);
        clock.mark(WAIT);
        weights.multiply_all(sum, h, now * NEXT, my);
        clock.mark(PRODUCT, sum[0][0][0][0], sum[CHAINS - 1][EIGHTS - 1][TILES - 1][3]);
        put_sums<CHAINS, SAMPLES>(sum, sums + my.warp * PART, my.lane);
        if (SPLIT == 1 && !SPREAD) __syncwarp();  // whoever fetches h waits until all have read the old one
        else __syncthreads();

        clock.mark(SUM);
        float saved[EACH][Cell::SAVED > 0 ? Cell::SAVED : 1];
        if (SPREAD && t + 1 < steps) exchange.words.next();
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          if (idle(e, live)) continue;
          const int n = some ? sample + e * APART : 0;
          fixed.run(x[now][e], sums + my.warp / SPLIT * SPLIT * PART, my.lane % BAND, n, state[e], saved[e]);
          const float fresh = unit < HIDDEN ? state[e][Cell::THROUGH] : 0, other = __shfl_xor_sync(0xffffffff, fresh, 1);
          const unsigned word = word_of(fresh, other, my.lane % 2, status);
          if (some && my.lane % PAIR == 0) exchange.put(word, n, local, unit, next, live, t + 1 < steps);
        }
        clock.mark(CELL);
        if (SENT) exchange.send(my, now, bytes, live, t + 1 < steps);
        clock.mark(SEND);

        // Nobody waits for what follows.
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          const int n = sample + e * APART;
          if (some && unit < HIDDEN && n < live)
#pragma unroll
            for (int r = 0; r < Cell::RESULTS; r++) Cell::put(r, cell.place(r, batch, t * batch + begin + n, unit), Cell::result(r, state[e], saved[e]));
        }
        read(now, t + AHEAD);
        clock.mark(REST);
      }
  }
  if (SPREAD) exchange.words.finish((batch + together - 1) / together * (steps - 1));
  else if (SENT) cluster_barrier();
  if (CLOCKS && blockIdx.x == 0 && (my.tid == 0 || my.tid == THREADS - 32)) clock.tell(cell, batch, my.tid == 0 ? 0 : PHASES, steps);
}
#ifdef SAMPLE_MMA
#include "sample/mma_entry.cuh"
#endif
