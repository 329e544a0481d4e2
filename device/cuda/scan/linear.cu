#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_LINEAR
#include "sample/linear.cuh"
#endif
// Linear recurrences: their steps composed to one, and what their kernels share.

// Activations in a few operations, off by a few units in the last place of 1.
__device__ __forceinline__ float quick_sigmoid(float v) { return reciprocal(1 + exp2_quick(-1.4426950409f * v)); }
__device__ __forceinline__ float quick_tanh(float v) { return 2 * quick_sigmoid(2 * v) - 1; }

// quick_pair puts two activations in the place of their arguments, tanh or sigmoid each, by one
// reciprocal: of reciprocals and exponentials a multiprocessor has the fewest. Beyond 2^60 an
// exponential is cut off, so that products of two are finite: a sigmoid is 2^-60 at least.
template <bool TANH_A, bool TANH_B> __device__ __forceinline__ void quick_pair(float& a, float& b) {
  const float x = 1 + exp2_quick(at_most(60, (TANH_A ? -2.8853900818f : -1.4426950409f) * a));
  const float y = 1 + exp2_quick(at_most(60, (TANH_B ? -2.8853900818f : -1.4426950409f) * b));
  const float r = reciprocal(x * y);
  a = TANH_A ? 2 * (y * r) - 1 : y * r, b = TANH_B ? 2 * (x * r) - 1 : x * r;
}

// Steps of the recurrence as one: they make factor·h + add of a state h.
struct linear { float factor, add; };

__device__ __forceinline__ linear then(linear first, linear second) {
  linear both;
  both.factor = first.factor * second.factor;
  both.add = second.factor * first.add + second.add;
  return both;
}

__device__ __forceinline__ float after(linear l, float state) { return l.factor * state + l.add; }

// Several are those of a thread, moved in pieces of 16 bytes.
struct __align__(N > 1 ? 16 : 8) several { linear of[N]; };

// identity composes nothing.
__device__ __forceinline__ several identity() {
  several p;
#pragma unroll
  for (int i = 0; i < N; i++) p.of[i].factor = 1, p.of[i].add = 0;
  return p;
}

__device__ __forceinline__ several then(const several& first, const several& second) {
  several both;
#pragma unroll
  for (int i = 0; i < N; i++) both.of[i] = then(first.of[i], second.of[i]);
  return both;
}

// A patience bounds a wait: it ends after a second, or once another block has
// given up.
struct patience {
  unsigned looks = 0;
  long long start = 0;
  __device__ __forceinline__ bool over(unsigned* status) {
    pause();
    if (++looks % 1024) return false;
    if (start == 0) start = clock64();
    if (get_acquire(status)) return true;
    if (clock64() - start < 2000000000ll) return false;
    *status = STUCK;
    return true;
  }
};

// A chain may have UNITS channels of each of SEQS sequences. dealt finds the sequence and the
// channel of one of its lanes, and reports whether there is one. A chain may have the OVER
// channels behind its own besides, which the next chain has, too (cut.go).
enum { PART = UNITS > 0 ? UNITS : 1 };
__device__ __forceinline__ bool dealt(int chain, int lane, int batch, int hidden, int& n, int& u) {
  const int sides = (hidden + PART - 1) / PART;
  const int which = OVER > 0 ? 0 : lane / PART;
  n = chain / sides * SEQS + which, u = chain % sides * PART + lane - which * PART;
  return lane < SEQS * PART + OVER && n < batch && u < hidden;
}

// owns reports whether a chain is to write what its lane has for to. It writes the pieces of
// SIZE elements, at multiples of their size in memory, that begin in its own channels. What
// begins ahead of a sequence's first channel is its first chain's.
template <int SIZE, class T> __device__ __forceinline__ bool owns(const T* to, int lane, int u) {
  const int begin = lane - (int)((size_t)to / sizeof(T) % SIZE);
  return begin < UNITS && (begin >= 0 || u == lane);
}

// write_rows has a warp write rows of count elements each.
template <class T> __device__ __forceinline__ void write_rows(T* to, long long stride, const unsigned char* from, int pitch, int rows, int count) {
#pragma unroll 4
  for (int i = 0; i < rows; i++)
    for (int k = threadIdx.x % 32; k < count; k += 32) to[i * stride + k] = ((const T*)(from + i * pitch))[k];
}

// A word holds a number and the run that it is of.
__device__ __forceinline__ word tagged(float v, unsigned run) { return (word)run << 32 | __float_as_uint(v); }
__device__ __forceinline__ bool of(word w, unsigned run) { return (unsigned)(w >> 32) == run; }
__device__ __forceinline__ float number(word w) { return __uint_as_float((unsigned)w); }

// take says that this thread has read what another is to write over, which wait_taken waits for.
__device__ __forceinline__ void take(word* taken, unsigned run) {
  __threadfence();
  put_staying(taken, tagged(0, run));
}
__device__ __forceinline__ void wait_taken(const word* taken, unsigned run, unsigned* status) {
  for (patience left; !of(get_staying(taken), run) && !left.over(status);) {}
}
#ifdef SAMPLE_LINEAR
#include "sample/linear_entry.cuh"
#endif
