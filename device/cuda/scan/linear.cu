#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_LINEAR
#include "sample/linear.cuh"
#endif
// Linear recurrences: how steps are composed, and what the kernels of scans share.

// Activations in few operations. A tangent near 0 keeps digits that twice a sigmoid, less 1,
// would lose.
__device__ __forceinline__ float quick_sigmoid(float v) { return reciprocal(1 + exp2_quick(-1.4426950409f * v)); }
__device__ __forceinline__ float quick_tanh(float v) {
  const float e = exp2_quick(at_most(60, -2.8853900818f * v)); // finite
  return (1 - e) * reciprocal(1 + e);
}

// quick_pair replaces two arguments by their activations, tanh or sigmoid each, with one
// reciprocal: reciprocals and exponentials are a multiprocessor's slowest operations. Exponents are
// capped at 60, so that a product of two exponentials is finite. So a sigmoid is at least 2^-60.
template <bool TANH_A, bool TANH_B> __device__ __forceinline__ void quick_pair(float& a, float& b) {
  const float e = exp2_quick(at_most(60, (TANH_A ? -2.8853900818f : -1.4426950409f) * a));
  const float f = exp2_quick(at_most(60, (TANH_B ? -2.8853900818f : -1.4426950409f) * b));
  const float r = reciprocal((1 + e) * (1 + f));
  a = (TANH_A ? 1 - e : 1) * ((1 + f) * r), b = (TANH_B ? 1 - f : 1) * ((1 + e) * r);
}

// Composed steps of the recurrence: they turn state h into factor·h + add.
struct linear { float factor, add; };

__device__ __forceinline__ linear then(linear first, linear second) {
  linear both;
  both.factor = first.factor * second.factor;
  both.add = second.factor * first.add + second.add;
  return both;
}

__device__ __forceinline__ float after(linear l, float state) { return l.factor * state + l.add; }

// several are a thread's values, moved 16 bytes at a time.
struct __align__(N > 1 ? 16 : 8) several { linear of[N]; };

// identity is the composition of no steps.
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

// A patience bounds a wait: it ends after about a second, or once another block has given up.
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
// channel of a lane, and reports whether the lane has one. A chain may also have the next chain's
// first OVER channels (cut.go).
enum { PART = UNITS > 0 ? UNITS : 1 };
__device__ __forceinline__ bool dealt(int chain, int lane, int batch, int hidden, int& n, int& u) {
  const int sides = (hidden + PART - 1) / PART;
  const int which = OVER > 0 ? 0 : lane / PART;
  n = chain / sides * SEQS + which, u = chain % sides * PART + lane - which * PART;
  return lane < SEQS * PART + OVER && n < batch && u < hidden;
}

// owns reports whether a chain writes what its lane has for to. It writes the pieces of SIZE
// elements, at multiples of their size in memory, that begin in its own channels. A piece that
// begins before a sequence's first channel belongs to the sequence's first chain.
template <int SIZE, class T> __device__ __forceinline__ bool owns(const T* to, int lane, int u) {
  const int begin = lane - (int)((size_t)to / sizeof(T) % SIZE);
  return begin < UNITS && (begin >= 0 || u == lane);
}

// write_rows writes rows of count elements each, by a warp.
template <class T> __device__ __forceinline__ void write_rows(T* to, long long stride, const unsigned char* from, int pitch, int rows, int count) {
#pragma unroll 4
  for (int i = 0; i < rows; i++)
    for (int k = threadIdx.x % 32; k < count; k += 32) to[i * stride + k] = ((const T*)(from + i * pitch))[k];
}

// A word holds a number and the tag of its run.
__device__ __forceinline__ word tagged(float v, unsigned run) { return (word)run << 32 | __float_as_uint(v); }
__device__ __forceinline__ bool of(word w, unsigned run) { return (unsigned)(w >> 32) == run; }
__device__ __forceinline__ float number(word w) { return __uint_as_float((unsigned)w); }

// take says that this thread has read what another will overwrite; wait_taken waits for that.
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
