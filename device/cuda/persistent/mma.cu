#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/mma.cuh"
#endif
// A layer over all steps of time in a group of blocks, its weights in registers
// and shared memory and its products on tensor cores. Groups and what they
// exchange are those of simt.cu. A warp multiplies 16 units, all of their
// gates, with one of SPLIT slices of the columns, 64 bytes of it at a time, for
// all SEQUENCES sequences, filled up to SAMPLES. A step:
//
//   wait      until all of h has come
//   product   the warp's rows times its slice of h
//   sum       over the slices, through shared memory: a thread ends with all
//             gates of a unit for EACH sequences
//   cell      of these; states stay in registers
//   push      the units' new h to all blocks, 16 bytes at a time
template <class Cell> __device__ __forceinline__ void mma_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* trouble) {
  constexpr bool ALONE = !SPREAD && CLUSTER == 1, SENT = !SPREAD && !ALONE;
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, TILES = tiles_of(GATES), EIGHTS = SAMPLES / 8;
  constexpr int WARPS = UNITS / BAND * SPLIT, THREADS = WARPS * 32;
  constexpr int EACH = SAMPLES >= ACROSS * SPLIT ? SAMPLES / (ACROSS * SPLIT) : 1; // sequences of a thread after the sum
  constexpr int CHAINS = chains(TILES * EIGHTS);
  constexpr int WIDTH = CHUNKS * SPLIT * 64;                  // bytes of HIDDEN columns and what fills them up
  constexpr int ROW = WIDTH + (WIDTH % 128 == 0 ? 64 : 0), BUFFER = SAMPLES * ROW; // neighbours in other banks
  constexpr int PART = TILES * SAMPLES * GAP;                 // a warp's sums
  constexpr int PIECES = UNITS < FEW ? 1 : UNITS / FEW, PUSHES = (CLUSTER * SAMPLES * PIECES + THREADS - 1) / THREADS;
  constexpr int WORDS = (HIDDEN + SIDE - 1) / SIDE * SIDE / PAIR; // of a sequence
  constexpr int NEXT = SPREAD ? 0 : BUFFER;                   // from one buffer of h to the other: a block that fetches h has used what it had

  DYNAMIC_SHARED(memory);
  unsigned char* const h = memory + 128;                      // [1 or 2][SAMPLES][ROW]
  unsigned char* const own = h + BUFFER + NEXT;                  // [SAMPLES][UNITS], this block's new h
  float* const sums = (float*)(own + SAMPLES * UNITS * SIZE);    // [WARPS][PART]
  quad* const far = (quad*)(sums + WARPS * PART);             // weights beyond registers
  const shared_t base = shared_address(memory), bar = base;
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, row = lane / 4, four = lane % 4, slice = warp % SPLIT;
  const int rank = blockIdx.x % CLUSTER, group = blockIdx.x / CLUSTER;

  quad w[RESIDENT > 0 ? RESIDENT : 1][TILES][2];
  take_weights<CHUNKS, RESIDENT, SPLIT, THREADS>(cell, rank * UNITS + warp / SPLIT * BAND, slice, w, far, trouble);

  for (int i = tid; i < (BUFFER + NEXT) / 4; i += THREADS) ((unsigned*)h)[i] = 0;
  shared_t to[PUSHES];
  if (SENT)
#pragma unroll
    for (int p = 0; p < PUSHES; p++) to[p] = remote(base, min((tid + p * THREADS) / (PIECES * SAMPLES), CLUSTER - 1));
  Exchange<WORDS * SAMPLES, THREADS> words(control, group);

  typedef typename Cell::Input Input;
  constexpr int INPUTS = GATES + Cell::FREE, AHEAD = STREAMED ? 3 : 2; // steps from reading inputs to their use
  static_assert(!STREAMED || STREAMED == INPUTS, "inputs");
  Stream<EACH * INPUTS, THREADS> stream(far + (CHUNKS - RESIDENT) * TILES * 2 * THREADS);
  const int local = warp / SPLIT * BAND + lane % BAND, unit = rank * UNITS + local, u = min(unit, HIDDEN - 1);
  // Where there are fewer sequences than places some warps have none, not all of a
  // quarter of the multiprocessor.
  constexpr bool FEWER = SEQUENCES < SAMPLES;
  const int part = FEWER ? (slice + warp / SPLIT * SPLIT / 4) % SPLIT : slice;
  const int sample = part * ACROSS + lane / BAND;             // and every ACROSS·SPLIT-th after it
  const bool some = sample < SAMPLES;                         // or there are more threads than sums
  auto idle = [&](int e, int live) { return FEWER && (part + e * SPLIT) * ACROSS >= live; };
  float bias[GATES], constants[Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
#pragma unroll
  for (int g = 0; g < GATES; g++) bias[g] = cell.bias(g, u);
  cell.constants(u, constants);
  const long long stride = cell.stride(batch);
  bool stuck = false;
  Clock<CLOCKS> clock;
  const int together = gridDim.x / CLUSTER * SEQUENCES;
  for (int begin = group * SEQUENCES; begin < batch; begin += together) {
    const int live = min(SEQUENCES, batch - begin);             // sequences of the group
    const int bytes = live * ((HIDDEN + FEW - 1) / FEW * 16);
    __syncthreads();
    if (SENT && tid == 0) expect(bar, bytes, begin >= together);
    for (int i = tid; i < HIDDEN * live; i += THREADS) {
      float state[Cell::STATES];
      cell.before(begin + i / HIDDEN, i % HIDDEN, state);
      put_state(h + i / HIDDEN * ROW, i % HIDDEN, state[Cell::THROUGH], trouble);
    }
    __syncthreads();
    if (SENT) cluster_barrier();

    float state[EACH][Cell::STATES];
    const Input* from[EACH];
    float x[2][EACH][INPUTS] = {};  // inputs of even and of odd steps
    auto read = [&](int now, int t) {
      if (t < steps)
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          if (idle(e, live)) continue;
          const Input* at = from[e] + t * stride;
#pragma unroll
          for (int i = 0; i < INPUTS; i++) {
            const int g = i < GATES ? i : Cell::free(i - GATES);
            if (i < GATES && !Cell::owns(g)) continue;
            if (STREAMED) {
              stream.read(e * INPUTS + i, t, at + g * HIDDEN);
            } else {
              x[now][e][i] = widen(at[g * HIDDEN]);
              if (t + 8 < steps) prefetch(at + 8 * stride + g * HIDDEN);
            }
          }
        }
      if (STREAMED) stream.end();
    };
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int n = min(begin + sample + e * ACROSS * SPLIT, batch - 1);
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
        float sum[CHAINS][EIGHTS][TILES][4];
#pragma unroll
        for (int i = 0; i < CHAINS * EIGHTS * TILES * 4; i++) (&sum[0][0][0][0])[i] = 0;
        auto place = [&](int i, float v) { *(unsigned*)(h + now * NEXT + i / WORDS * ROW + i % WORDS * 4) = __float_as_uint(v); };
        if (!ALONE && !stuck && !(SPREAD ? t == 0 || words.fetch(live * WORDS, place) : arrived(bar + 8 * now, phase))) {
          *trouble = STUCK;
          stuck = true;
        }
        if (!SENT) __syncthreads();
        clock.mark(WAIT);
        auto piece = [&](int i, int chain, const quad (*weights)[2]) {
          quad in[EIGHTS];
#pragma unroll
          for (int n = 0; n < EIGHTS; n++) in[n] = *(const quad*)(h + now * NEXT + (n * 8 + row) * ROW + ((i * SPLIT + slice) * 4 + four) * 16);
          multiply<CHAINS>(sum, chain, weights, in);
        };
#pragma unroll
        for (int i = 0; i < RESIDENT; i++) piece(i, 2 * i, w[i]);
#pragma unroll 2
        for (int i = RESIDENT; i < CHUNKS; i++) {
          quad some[TILES][2];
#pragma unroll
          for (int q = 0; q < TILES * 2; q++) some[q / 2][q % 2] = far[((i - RESIDENT) * TILES * 2 + q) * THREADS + tid];
          piece(i, 0, some);
        }
        clock.mark(PRODUCT, sum[0][0][0][0], sum[CHAINS - 1][EIGHTS - 1][TILES - 1][3]);
        put_sums<CHAINS, SAMPLES>(sum, sums + warp * PART, lane);
        if (SPLIT == 1 && !SPREAD) __syncwarp();  // but who fetches h waits until all have read what they had
        else __syncthreads();

        clock.mark(SUM);
        float saved[EACH][Cell::SAVED > 0 ? Cell::SAVED : 1];
        if (SPREAD && t + 1 < steps) words.next();
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          if (idle(e, live)) continue;
          const int n = some ? sample + e * ACROSS * SPLIT : 0;
          float gate[GATES];
#pragma unroll
          for (int g = 0; g < GATES; g++) {
            const float z = sum_of<SPLIT, SAMPLES, PART>(x[now][e][g] + bias[g], sums + warp / SPLIT * SPLIT * PART, g, lane % BAND, n);
            gate[g] = Cell::early(g, z);
          }
          Cell::rest(gate, x[now][e] + GATES, constants, state[e], saved[e]);
          const float fresh = unit < HIDDEN ? state[e][Cell::THROUGH] : 0, other = __shfl_xor_sync(0xffffffff, fresh, 1);
          const unsigned word = word_of(fresh, other, lane % 2, trouble);
          if (some && lane % PAIR == 0) {
            if (ALONE) *(unsigned*)(h + next * NEXT + n * ROW + local * SIZE) = word;
            else if (SENT) *(unsigned*)(own + (n * UNITS + local) * SIZE) = word;
            else if (t + 1 < steps && unit < WORDS * PAIR && n < live) words.put(__uint_as_float(word), n * WORDS + unit / PAIR);
          }
        }
        clock.mark(CELL);
        if (SENT) {
          __syncthreads();
          constexpr bool BRANCHES = Cell::SAVED > 0 || EXACT || GATES == 1 && THREADS < 256;  // as was measured to be faster
          float piece[PUSHES][4];
          auto get = [&](int p) {
            const int i = tid + p * THREADS, n = i / PIECES % SAMPLES;
            load<4>(piece[p], (const float*)(own + (n * UNITS + i % PIECES * FEW) * SIZE));
          };
          if (!BRANCHES)
#pragma unroll
            for (int p = 0; p < PUSHES; p++) get(p);
          const bool may = t + 1 < steps;  // nothing may be under way to a block that has ended
          if (!BRANCHES || may)
#pragma unroll
            for (int p = 0; p < PUSHES; p++) {
              const int i = tid + p * THREADS, n = i / PIECES % SAMPLES, begins = rank * UNITS + i % PIECES * FEW;
              const bool mine = i < CLUSTER * SAMPLES * PIECES && n < live && begins < HIDDEN;
              if (BRANCHES && mine) get(p);
              if (!BRANCHES || mine) push<4>(may && mine, to[p] + 128 + next * NEXT + n * ROW + begins * SIZE, piece[p], to[p] + 8 * next);
            }
          if (tid == 0) bar_arrive(bar + 8 * now, bytes);  // for h(t+2)
        }

        clock.mark(SEND);

        // Nobody waits for what follows.
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          const int n = sample + e * ACROSS * SPLIT;
          if (some && unit < HIDDEN && n < live)
#pragma unroll
            for (int r = 0; r < Cell::RESULTS; r++) Cell::put(r, cell.place(r, batch, t * batch + begin + n, unit), Cell::result(r, state[e], saved[e]));
        }
        read(now, t + AHEAD);
        clock.mark(REST);
      }
  }
  if (SPREAD) words.finish((batch + together - 1) / together * (steps - 1));
  else if (SENT) cluster_barrier();
  if (CLOCKS && blockIdx.x == 0 && (tid == 0 || tid == THREADS - 32)) clock.tell(cell, batch, tid == 0 ? 0 : PHASES, steps);
}
