#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_RECURRENCE
#include "sample/recurrence.cuh"
#endif
// What kernels with recurrent weights on chip share. A cell is a struct Cell, generated from its
// program; see recurrence.go.

// Quick has activations of a few instructions, off by at most 1e-7. Adding -0 changes nothing, so
// it costs no instruction where a gate is known.
struct Quick {
  static __device__ __forceinline__ float squash(float z, bool tangent) {
    const float s = reciprocal(1 + exp2_quick(z * (tangent ? -2.8853900818f : -1.4426950409f)));
    return (tangent ? 2.f : 1.f) * s + (tangent ? -1.f : -0.f);
  }
  static __device__ __forceinline__ float sigmoid(float z) { return squash(z, false); }
  static __device__ __forceinline__ float tanhf(float z) { return squash(z, true); }
};

// Coarse has activations by the GPU's tangent, off by 2⁻¹¹ in a tangent and by 2⁻¹² in a sigmoid.
// They take one instruction where Quick has two that wait for each other.
struct Coarse {
  static __device__ __forceinline__ float squash(float z, bool tangent) {
    return (tangent ? 1.f : 0.5f) * tangent_coarse(z * (tangent ? 1.f : 0.5f)) + (tangent ? -0.f : 0.5f);
  }
  static __device__ __forceinline__ float sigmoid(float z) { return squash(z, false); }
  static __device__ __forceinline__ float tanhf(float z) { return squash(z, true); }
};

// spread sums N values over 2·M neighbouring lanes, and halves their number at each exchange. A
// lane ends with value v in a[0]; v is its place among the lanes, divided by the lanes per value.
// Value i of a lane is value i ^ v, except that the last bits of v, below PLAIN, count as they are.
// Only these bits need selections.
template <int N, int PLAIN, int M> __device__ __forceinline__ void spread(float* a, int lane) {
  if constexpr (M > 0) {
    if constexpr (N == 1) {
      a[0] += __shfl_xor_sync(0xffffffff, a[0], M);
      spread<1, 1, M / 2>(a, lane);
    } else {
      const bool upper = N <= PLAIN && (lane & M);
#pragma unroll
      for (int i = 0; i < N / 2; i++) {
        const float give = upper ? a[i] : a[i + N / 2], keep = upper ? a[i + N / 2] : a[i];
        a[i] = keep + __shfl_xor_sync(0xffffffff, give, M);
      }
      spread<N / 2, PLAIN, M / 2>(a, lane);
    }
  }
}

// Single precision in two halves: the nearest fp16 number, and LOW times the remainder, which fp16
// can hold. Three products, high by high and each high by the other's low, are off by 2⁻²² of the
// result. Values beyond fp16's range are reported to the host.
constexpr int LOW = 2048;
__device__ __forceinline__ unsigned half_of(float v, bool low, unsigned* status) {
  fp16 high, rest;
  narrow(high, v);
  if ((high.bits & 0x7fff) == 0x7c00 && v - v == 0) *status = TOO_LARGE;
  narrow(rest, (v - widen(high)) * LOW);
  return low ? rest.bits : high.bits;
}

// power_to_halves returns the power of two that scales values with at most these bits to the range
// of fp16, or back.
__device__ __forceinline__ float power_to_halves(unsigned bits, bool back) {
  const unsigned to = max(1u, min(253u, 268 - (bits >> 23)));
  return __uint_as_float((back ? 254 - to : to) << 23);
}

// put_factor rounds v to a factor of a product: for fp32, to ten bits of mantissa.
template <class W> __device__ __forceinline__ void put_factor(W& to, float v) {
  if (sizeof(W) == 4) v = __uint_as_float((__float_as_uint(v) + 0x1000) & 0xffffe000);
  narrow(to, v);
}

// mma adds a product of fragments; see mma_part. For fp32, EXACT adds what rounding drops from
// either factor: products are off by at most 2⁻²¹.
template <class W, bool EXACT> __device__ __forceinline__ void mma(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  if constexpr (sizeof(W) == 2) {
    mma_part(W(), c, a, b0, b1);
  } else {
    auto round = [](unsigned v) { return (v + 0x1000) & 0xffffe000; };  // to ten bits of mantissa
    auto rest = [&](unsigned v) { return round(__float_as_uint(__uint_as_float(v) - __uint_as_float(round(v)))); };
    const unsigned w[4] = {fresh(a[0]), fresh(a[1]), fresh(a[2]), fresh(a[3])};  // otherwise both parts of all weights would occupy registers
    const unsigned high[4] = {round(w[0]), round(w[1]), round(w[2]), round(w[3])};
    if (EXACT) {
      const unsigned low[4] = {rest(w[0]), rest(w[1]), rest(w[2]), rest(w[3])};
      mma_part(W(), c, low, round(b0), round(b1));
      mma_part(W(), c, high, rest(b0), rest(b1));
    }
    mma_part(W(), c, high, round(b0), round(b1));
  }
}

// PATIENCE is how many cycles, about a second, a block waits for others before it reports that to
// the host and goes on without them.
enum { PATIENCE = 2000000000 };

// A whole warp waits, and its lanes leave together, by a vote. When lanes left one by one, some
// later read from wrong addresses, as if the first lane had changed a register that its warp
// shares. See docs/notebook/persistent.md, "Safe".

// arrived waits for a phase of a barrier and reports whether it has ended.
__device__ __forceinline__ bool arrived(shared_t bar, int parity) {
  for (const long long start = clock64(); !__all_sync(0xffffffff, bar_try(bar, parity));)
    if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) return false;
  return true;
}

// expect prepares the barriers of a block's two buffers: the first step's data is there, and so
// many bytes will come for the second step. When the kernel goes on to other sequences (again), the
// barriers already expect more, but no data is in flight.
__device__ __forceinline__ void expect(shared_t bar, int bytes, bool again) {
#pragma unroll
  for (int i = 0; i < 16; i += 8) {
    if (again) bar_end(bar + i);
    bar_init(bar + i, 1);
  }
  bar_publish();
  bar_arrive(bar, 0);
  bar_arrive(bar + 8, bytes);
}

// keep passes v, the same in all threads of a block, through shared memory. Otherwise compilers
// read a kernel argument from constant memory at each use, to save a register, which costs some 400
// cycles here.
template <class T> __device__ __forceinline__ T keep(T v, void* shared) {
  volatile T* const by = (volatile T*)shared;
  if (threadIdx.x == 0) *by = v;
  __syncthreads();
  v = *by;
  __syncthreads();
  return v;
}

// A Clock counts the cycles of a step's phases if ON. mark takes values that must be there by then.
enum Phase { WAIT, PRODUCT, SUM, CELL, SEND, REST, PHASES };
template <bool ON> struct Clock {
  unsigned spent[PHASES] = {}, latest = ON ? (unsigned)clock64() : 0;
  template <class... V> __device__ __forceinline__ void mark(Phase phase, V... values) {
    if (!ON) return;
    (fresh(__float_as_uint(values)), ...);
    const unsigned now = (unsigned)clock64();
    spent[phase] += now - latest;
    latest = now;
  }
  // tell writes the cycles of a step in place of the first results of the first step, for units
  // from first on.
  template <class Cell> __device__ __forceinline__ void tell(const Cell& cell, int batch, int first, int steps) const {
    for (int r = 0; r < Cell::RESULTS; r++)
      for (int i = 0; i < PHASES; i++) Cell::put(r, cell.place(r, batch, 0, first + i), (float)spent[i] / steps);
  }
};

// An Exchange passes N values from step to step within a group of blocks, through memory. It has
// two buffers of words, each with a value and the number of the exchange. Numbers increase from run
// to run. So words of earlier runs, which nobody clears, are never mistaken for new ones.
template <int N, int THREADS> struct Exchange {
  enum { PAIRS = (N + 1) / 2 };
  unsigned *control, *words;
  unsigned number, before;  // numbers of the latest exchange, and of the latest before this run
  __device__ __forceinline__ Exchange(unsigned* control, int group) : control(control), words(control + 64 + group * (PAIRS * 8ll)) {
    before = number = SPREAD ? *(volatile unsigned*)control : 0;
  }
  // next begins an exchange. Threads then put values.
  __device__ __forceinline__ void next() { number++; }
  __device__ __forceinline__ void put(float v, int at) { put_word(words + 2 * (number % 2 * (PAIRS * 2) + at), v, number); }
  // put_pair puts two adjacent values, the first of them at an even place.
  __device__ __forceinline__ void put_pair(float v, float w, int at) {
    const word high = (word)number << 32;
    put_words((word*)words + number % 2 * (PAIRS * 2) + at, high | __float_as_uint(v), high | __float_as_uint(w));
  }
  // await waits for every THREADS-th of pairs of values, MANY of them at most.
  template <int MANY> __device__ __forceinline__ bool await(pair_of_words* p, int first, int pairs) const {
    const unsigned* const from = words + 2 * (number % 2 * (PAIRS * 2));
    const long long start = clock64();
    for (;;) {
      bool all = true;
#pragma unroll
      for (int i = 0; i < MANY; i++) p[i] = first + i * THREADS < pairs ? get_words(from + 4 * (first + i * THREADS)) : pair_of_words{{0, 0}, {number, number}};
#pragma unroll
      for (int i = 0; i < MANY; i++) all = all && p[i].number[0] == number && p[i].number[1] == number;
      if (__all_sync(0xffffffff, all)) return true;
      pause();
      if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) return false;
    }
  }
  // fetch waits for n values of the exchange that this block began, an even number (after) after
  // the first, and calls place for each.
  template <class Place> __device__ __forceinline__ bool fetch(int n, Place place, int after = 0) {
    constexpr int MINE = (PAIRS + THREADS - 1) / THREADS, MOST = MINE < 8 ? MINE : 8;
    const unsigned* from = words + 2 * (number % 2 * (PAIRS * 2) + after);
    const long long start = clock64();
    const int pairs = (n + 1) / 2;
    for (int first = threadIdx.x; first - (int)threadIdx.x % 32 < pairs; first += MOST * THREADS) {
      pair_of_words p[MOST];
      for (;;) {
        bool all = true;
#pragma unroll
        for (int i = 0; i < MOST; i++)  // many threads that poll one word would delay each other
          p[i] = first + i * THREADS < pairs ? get_words(from + 4 * (first + i * THREADS)) : pair_of_words{{0, 0}, {number, number}};
#pragma unroll
        for (int i = 0; i < MOST; i++)
          all = all && p[i].number[0] == number && (p[i].number[1] == number || n % 2 && first + i * THREADS >= pairs - 1);
        if (__all_sync(0xffffffff, all)) break;
        pause();
        if (__any_sync(0xffffffff, clock64() - start > PATIENCE)) return false;
      }
#pragma unroll
      for (int i = 0; i < MOST; i++) {
        const int at = 2 * (first + i * THREADS);
        if (at < n) place(at, p[i].value[0]);
        if (at + 1 < n) place(at + 1, p[i].value[1]);
      }
    }
    return true;
  }
  // finish, called after the exchanges of the busiest group, sets the number from which the next
  // run counts on. The last block to end does so.
  __device__ __forceinline__ void finish(int exchanges, int = 0) {
    if (threadIdx.x != 0 || atomicAdd(control + 1, 1) != gridDim.x - 1) return;
    control[1] = 0;
    control[0] = before + exchanges;
  }
};
#ifdef SAMPLE_RECURRENCE
#include "sample/recurrence_entry.cuh"
#endif
