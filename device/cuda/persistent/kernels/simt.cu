#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_SIMT
#include "sample/simt.cuh"
#endif
// A layer over all steps in a group of blocks, its weights in registers and shared memory. A group
// runs SAMPLES sequences at a time. Block r owns UNITS units with all their gates. A thread
// multiplies TILE units with a slice of the columns; LANES threads share the units. A step:
//
//   wait      until all of h has come
//   product   the thread's rows times its columns of h
//   spread    the sums over the LANES threads: each ends with a gate of a unit
//   early     what a gate can do alone, then each lane gathers the other gates
//   rest      of the cell, on every lane of a unit alike; states stay in registers
//   push      the unit's new h to all blocks
//
// Blocks of a cluster push h into each other's shared memory: each lane of a unit serves some of
// the blocks, and a barrier there counts the bytes. With SPREAD, a group has blocks from all over
// the GPU, which leave h in memory and poll for it. Each value carries a mark of its own. If a
// block's values are less than a 32-byte sector of memory, each is in a word with the number of the
// exchange instead.
//
// A block that is alone keeps h to itself.
//
// Two buffers of h are enough: a block sends h(t+2) once it has all of h(t+1), and each warp sends
// its part of that after it has read h(t).

// Marked passes N values from step to step within a group of blocks, through memory. It has two
// buffers of words. The last bit of a word is a mark that changes whenever the word is written. So
// polling reads nothing but the values, and old words, even of an earlier run, are never mistaken
// for new. A word is from this exchange or from the last but one, since nobody writes again before
// all have read. The value of the mark's bit is lost, at most 2⁻²³ of a value; readers fill
// in the bit before it.
template <int N, int THREADS> struct Marked {
  enum { QUADS = (N + 3) / 4, MINE = (QUADS + THREADS - 1) / THREADS, MOST = MINE < 8 ? MINE : 8 };
  unsigned *words, number;  // of the latest exchange, over all runs
  __device__ __forceinline__ Marked(unsigned* control, int group) : words(control + 64 + group * (8ll * QUADS + 4)) {
    number = SPREAD ? *(volatile unsigned*)(words + 8 * QUADS) : 0;
  }
  // next begins an exchange. Threads then put values.
  __device__ __forceinline__ void next() { number++; }
  __device__ __forceinline__ unsigned* buffer() const { return words + number % 2 * (4 * QUADS); }
  __device__ __forceinline__ unsigned mark() const { return (number + 1) / 2 % 2; }
  __device__ __forceinline__ void put(float v, int at) { put_one(buffer() + at, (__float_as_uint(v) & ~1u) | mark()); }
  // fetch waits for the values of the exchange that this block began, and puts them in to, four at
  // a time. A poll that comes too early must be repeated, so the first comes after some (after)
  // cycles.
  __device__ __forceinline__ bool fetch(float* to, int after) const {
    const long long start = clock64();
    while (after > 0 && __any_sync(0xffffffff, clock64() - start < after)) {}
    for (int first = threadIdx.x; first - (int)threadIdx.x % 32 < QUADS; first += MOST * THREADS) {
      quad q[MOST];
      for (;;) {
        unsigned wrong = 0;
#pragma unroll
        for (int i = 0; i < MOST; i++)
          if (first + i * THREADS < QUADS) q[i] = get_quad(buffer() + 4 * (first + i * THREADS));
#pragma unroll
        for (int i = 0; i < MOST; i++)
          if (first + i * THREADS < QUADS)
#pragma unroll
            for (int j = 0; j < 4; j++)
              if (N % 4 == 0 || 4 * (first + i * THREADS) + j < N) wrong |= q[i].v[j] ^ mark();
        if (__all_sync(0xffffffff, wrong % 2 == 0)) break;
        pause();
        if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) return false;
      }
#pragma unroll
      for (int i = 0; i < MOST; i++) {
        float v[4];
#pragma unroll
        for (int j = 0; j < 4; j++) v[j] = __uint_as_float((q[i].v[j] & ~1u) | (q[i].v[j] / 2 & 1));
        if (first + i * THREADS < QUADS) store<4>(to + 4 * (first + i * THREADS), v);
      }
    }
    return true;
  }
  // finish stores the number from which the next run counts on.
  __device__ __forceinline__ void finish(int, int rank) const {
    if (threadIdx.x == 0 && rank == 0) words[8 * QUADS] = number;
  }
};

template <bool FIRST, class A, class B> struct Either { typedef A type; };
template <class A, class B> struct Either<false, A, B> { typedef B type; };

template <class Cell> __device__ __forceinline__ void simt_layer(const Cell& cell, int steps, int batch, unsigned* control, unsigned* status) {
  constexpr bool ALONE = !SPREAD && CLUSTER == 1, SENT = !SPREAD && !ALONE;
  constexpr int SLOTS = Cell::SLOTS, GATES = Cell::GATES, HIDDEN = Cell::hidden;
  constexpr int WIDE = TILE <= 2 ? TILE : TILE <= 4 ? 4 : TILE <= 8 ? 8 : 16; // units per thread, rounded up to a power of two
  constexpr bool EVEN = WIDE == TILE, PERMUTE = EVEN && GATES == SLOTS; // rows of units, and of gates, permuted; see spread
  constexpr int ROWS = WIDE * SLOTS;                       // per thread
  constexpr int VALUES = ROWS * SAMPLES;
  constexpr int EACH = VALUES > LANES ? VALUES / LANES : 1; // samples that stay together in a lane
  constexpr int APART = SAMPLES / EACH, SUMS = VALUES / EACH, SAME = LANES / SUMS; // lanes per value
  constexpr int COPIES = SLOTS * SAME;                     // lanes with the same new h
  constexpr int SENDS = (CLUSTER + COPIES - 1) / COPIES;
  constexpr int STEP = SAMPLES >= 4 ? 1 : 4 / SAMPLES;     // adjacent columns of a thread
  constexpr int COLUMNS = CHUNKS * STEP * LANES;           // HIDDEN, rounded up
  constexpr int THREADS = UNITS / TILE * LANES;
  constexpr int CHAINS = SAMPLES == 1 ? 2 : 1;             // independent sums per row: the adder's latency
  constexpr int PER = STEP * TILE * GATES;                 // weights per piece
  constexpr int BUFFER = COLUMNS * SAMPLES * 4, BYTES = HIDDEN * SAMPLES * 4;
  static_assert(SUMS <= LANES && APART * EACH == SAMPLES && (RESIDENT == CHUNKS || PER % 4 == 0), "shape");

  DYNAMIC_SHARED(memory);
  float* const h = (float*)(memory + 128);                 // [2][COLUMNS][SAMPLES]
  float* const far = (float*)(memory + 128 + 2 * BUFFER);  // weights beyond registers, four at a time
  const shared_t base = shared_address(memory), bar = base;
  const int tid = threadIdx.x, lane = tid % 32, s = tid % LANES;
  const int rank = blockIdx.x % CLUSTER, group = blockIdx.x / CLUSTER;

  // This lane ends with (unit, gate, samples).
  const int v = s / SAME, sample = v % APART * EACH, g = v / APART % SLOTS, tile = v / (APART * SLOTS);
  const int first = rank * UNITS + tid / LANES * TILE, unit = first + tile, u = min(unit, HIDDEN - 1);
  const int copy = g * SAME + s % SAME, gate0 = lane - (g * APART) * SAME;
  const bool live = unit < HIDDEN && (EVEN || tile < TILE);

  typedef decltype(cell.weights(0)) Weights;
  Weights weights[GATES];  // the gates in this lane's order
#pragma unroll
  for (int i = 0; i < GATES; i++) weights[i] = cell.weights(PERMUTE ? i ^ g : i);
  float w[RESIDENT > 0 ? RESIDENT : 1][PER];
  auto fill = [&](int i, float* to) {
#pragma unroll
    for (int k = 0; k < STEP; k++)
#pragma unroll
      for (int j = 0; j < TILE * GATES; j++) {
        const int row = min(first + (EVEN ? (j / GATES) ^ tile : j / GATES), HIDDEN - 1);
        const int column = (i * LANES + s) * STEP + k;
        to[k * TILE * GATES + j] = column < HIDDEN ? widen(weights[j % GATES][ORDERED ? (long long)row * HIDDEN + column : (long long)column * HIDDEN + row]) : 0;
      }
  };
#pragma unroll
  for (int i = 0; i < RESIDENT; i++) fill(i, w[i]);
  for (int i = RESIDENT; i < CHUNKS; i++) {
    float some[PER];
    fill(i, some);
#pragma unroll
    for (int q = 0; q < PER; q++) far[(((i - RESIDENT) * (PER / 4) + q / 4) * THREADS + tid) * 4 + q % 4] = some[q];
  }

  if (SETTLED) settle(&w[0][0], RESIDENT * PER);
  for (int i = tid; i < 2 * COLUMNS * SAMPLES; i += THREADS) h[i] = 0;
  shared_t to[SENDS];  // one address per block of the cluster
  if (SENT)
#pragma unroll
    for (int p = 0; p < SENDS; p++) to[p] = remote(base, min(copy + p * COPIES, CLUSTER - 1));
  constexpr bool MARKED = UNITS * SAMPLES >= 8;
  typename Either<MARKED, Marked<HIDDEN * SAMPLES, THREADS>, Exchange<HIDDEN * SAMPLES, THREADS>>::type words(control, group);
  // As measured to be faster. One or two warps alone take longer to send without branches.
  constexpr bool LATE = !SPREAD || GATES == 1, BRANCHES = Cell::SAVED > 0 || THREADS < 128;
  if (LATE) settle(&words.number, 1);

  typedef typename Cell::Input Input;
  constexpr int INPUTS = 1 + Cell::FREE;
  auto flags = [](int i) { return i > 0 && Cell::flag(Cell::free(i - 1)); };
  const bool owns = Cell::owns(g);
  // With LATE, the input is added last. Otherwise compilers would add it at the start of a step,
  // and wait there for the next step's input. The bias is added FIRST if a lane's own value is
  // always in the same place, by one of the lanes that end with it.
  constexpr int PLAIN = PERMUTE ? APART : EVEN ? APART * SLOTS : SUMS;
  constexpr bool FIRST = LATE && PLAIN == 1;
  const float bias = FIRST && s % SAME > 0 ? 0 : cell.bias(g, u);
  const long long stride = cell.stride(batch);
  float constants[Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
  cell.constants(u, constants);
  constexpr int ROUNDS = (Cell::RESULTS + COPIES - 1) / COPIES;  // in each round, a unit's lane stores a result
  long long apart[ROUNDS];
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) apart[r] = cell.apart(copy + r * COPIES, batch);
  // A warp without a unit sends nothing, and so nobody would wait for it. If there is no such warp,
  // compilers know that warps stay together.
  constexpr bool IDLE = SENT && CLUSTER * UNITS - HIDDEN >= 32 / LANES * TILE;
  const int last = !IDLE || rank * UNITS + tid / 32 * 32 / LANES * TILE < HIDDEN ? steps : 0;
  bool stuck = false;
  Clock<CLOCKS> clock;
  const int together = gridDim.x / CLUSTER * SAMPLES;  // sequences that run at the same time
  for (int begin = group * SAMPLES; begin < batch; begin += together) {
    __syncthreads();
    if (SENT && tid == 0) expect(bar, BYTES, begin >= together);
    for (int i = tid; i < HIDDEN * SAMPLES; i += THREADS) {
      float state[Cell::STATES];
      cell.before(min(begin + i % SAMPLES, batch - 1), i / SAMPLES, state);
      h[i] = state[Cell::THROUGH];
    }
    __syncthreads();
    if (SENT) cluster_barrier();

    float state[EACH][Cell::STATES];
    const Input* from[EACH][INPUTS];
    const float* flag[EACH];
    char* result[EACH][ROUNDS];
    float x[2][EACH][INPUTS];  // inputs of even and odd steps
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int n = min(begin + sample + e, batch - 1);
      cell.before(n, u, state[e]);
#pragma unroll
      for (int r = 0; r < ROUNDS; r++) result[e][r] = cell.place(copy + r * COPIES, batch, n, u);
#pragma unroll
      for (int i = 0; i < INPUTS; i++) {
        const bool used = i > 0 || owns;
        if (flags(i)) {
          flag[e] = cell.kept(1, batch, n);
          x[0][e][i] = *flag[e];
          if (steps > 1) flag[e] += cell.kept_stride(batch);
          x[1][e][i] = *flag[e];
          if (steps > 2) flag[e] += cell.kept_stride(batch);
          continue;
        }
        from[e][i] = cell.input(i == 0 ? (owns ? g : 0) : Cell::free(i - 1), n, u);
        x[0][e][i] = used ? widen(*from[e][i]) : 0;
        if (steps > 1) from[e][i] += stride;
        x[1][e][i] = used ? widen(*from[e][i]) : 0;
        if (steps > 2) from[e][i] += stride;
      }
    }

    for (int even = 0, phase = 0; even < last; even += 2, phase ^= 1)
#pragma unroll
      for (int now = 0; now < 2; now++) {
        const int t = even + now, next = 1 - now;
        if (t >= last) break;
        float sum[CHAINS][EACH][SUMS];
#pragma unroll
        for (int c = 0; c < CHAINS; c++)
#pragma unroll
          for (int e = 0; e < EACH; e++)
#pragma unroll
            for (int i = 0; i < SUMS; i++) sum[c][e][i] = FIRST && c + i == 0 ? bias : 0;

        auto fetch = [&] {
          float* const to = h + now * (BUFFER / 4);
          if constexpr (MARKED) return words.fetch(to, GATES == 1 ? 128 : 0);
          else return words.fetch(HIDDEN * SAMPLES, [&](int i, float v) { to[i] = v; });
        };
        if (!ALONE && !stuck && !(SPREAD ? t == 0 || fetch() : arrived(bar + 8 * now, phase))) {
          *status = STUCK;
          stuck = true;
        }
        if (!SENT) __syncthreads();
        clock.mark(WAIT);
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
          float in[STEP * SAMPLES], out[PER];
#pragma unroll
          for (int q = 0; q < STEP * SAMPLES; q += 4) load<4>(in + q, h + now * (BUFFER / 4) + (i * LANES + s) * STEP * SAMPLES + q);
          if (i >= RESIDENT)
#pragma unroll
            for (int q = 0; q < PER / 4; q++) load<4>(out + 4 * q, far + (((i - RESIDENT) * (PER / 4) + q) * THREADS + tid) * 4);
          const float* row = i < RESIDENT ? w[i < RESIDENT ? i : 0] : out;
#pragma unroll
          for (int k = 0; k < STEP; k++)
#pragma unroll
            for (int j = 0; j < TILE * GATES; j++)
#pragma unroll
              for (int n = 0; n < SAMPLES; n++) {
                const int slot = PERMUTE ? j : j / GATES * SLOTS + j % GATES;
                float& z = sum[k % CHAINS][n % EACH][slot * APART + n / EACH];
                z = fmaf(row[k * TILE * GATES + j], in[k * SAMPLES + n], z);
              }
        }

        clock.mark(PRODUCT, sum[0][0][0], sum[CHAINS - 1][EACH - 1][SUMS - 1]);
        float fresh[EACH];
        float saved[EACH][Cell::SAVED > 0 ? Cell::SAVED : 1];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          if (CHAINS == 2)
#pragma unroll
            for (int i = 0; i < SUMS; i++) sum[0][e][i] += sum[CHAINS - 1][e][i];
          spread<SUMS, PLAIN, LANES / 2>(sum[0][e], lane);
        }
        clock.mark(SUM, sum[0][0][0], sum[0][EACH - 1][0]);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          const float z = sum[0][e][0], in = x[now][e][0];
          const float did = Cell::early(g, FIRST ? z + in : LATE ? z + bias + in : z + (in + bias));
          float gate[GATES];
#pragma unroll
          for (int i = 0; i < GATES; i++) gate[i] = GATES == 1 ? did : __shfl_sync(0xffffffff, did, gate0 + i * APART * SAME);
          Cell::rest(gate, x[now][e] + 1, constants, state[e], saved[e]);
          fresh[e] = state[e][Cell::THROUGH];
        }
        clock.mark(CELL, fresh[0], fresh[EACH - 1]);
        if (SPREAD && t + 1 < steps) {
          words.next();
          if (live && copy == 0)
#pragma unroll
            for (int e = 0; e < EACH; e++) words.put(fresh[e], unit * SAMPLES + sample + e);
        }
        if (ALONE && live && copy == 0)
#pragma unroll
          for (int e = 0; e < EACH; e++) h[next * (BUFFER / 4) + unit * SAMPLES + sample + e] = fresh[e];
        const bool may = t + 1 < steps && live;  // nothing may be in flight to a block that has ended
        if (SENT && (!BRANCHES || may))
#pragma unroll
          for (int p = 0; p < SENDS; p++) {
            const bool mine = (p + 1) * COPIES <= CLUSTER || copy + p * COPIES < CLUSTER;
            if (!BRANCHES || mine) push<EACH>(may && mine, to[p] + 128 + next * BUFFER + (unit * SAMPLES + sample) * 4, fresh, to[p] + 8 * next);
          }
        clock.mark(SEND);

        // Nobody waits for what follows.
        if (SENT && tid == 0) bar_arrive(bar + 8 * now, BYTES);  // for h(t+2)
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          const int n = begin + sample + e;
#pragma unroll
          for (int r = 0; r < ROUNDS; r++) {
            const int i = copy + r * COPIES;
            if (live && n < batch && i < Cell::RESULTS) Cell::put(i, result[e][r], Cell::result(i, state[e], saved[e]));
            result[e][r] += apart[r];
          }
#pragma unroll
          for (int i = 0; i < INPUTS; i++) {
            if (flags(i)) {
              x[now][e][i] = *flag[e];
              if (t + 3 < steps) flag[e] += cell.kept_stride(batch);
              continue;
            }
            if (i > 0 || owns) {
              x[now][e][i] = widen(*from[e][i]);
              if (t + 10 < steps) prefetch(from[e][i] + 8 * stride);
            }
            if (t + 3 < steps) from[e][i] += stride;
          }
        }
        clock.mark(REST);
      }
  }
  if (SPREAD) words.finish((batch + together - 1) / together * (steps - 1), rank);
  else if (SENT) cluster_barrier();
  if (CLOCKS && blockIdx.x == 0 && (tid == 0 || tid == THREADS - 32)) clock.tell(cell, batch, tid == 0 ? 0 : PHASES, steps);
}
#ifdef SAMPLE_SIMT
#include "sample/simt_entry.cuh"
#endif
