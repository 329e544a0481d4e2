#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_ROW
#include "sample/row.cuh"
#endif
// A block of 256 threads works on a row.

// across combines one value of each of the block's threads, always in the same order.
template <class F> __device__ float across(float v, float* shared, F f) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) v = f(v, __shfl_xor_sync(0xffffffff, v, i));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = shared[0];
#pragma unroll
  for (int i = 1; i < 8; i++) v = f(v, shared[i]);
  __syncthreads();
  return v;
}

// every calls f for each of this thread's columns of a row, with a reference to its value. The thread
// keeps EACH values in registers; EACH = 0: values are read again.
template <class T, class F> __device__ __forceinline__ void every(int cols, float* v, const T* from, F f) {
  if (EACH > 0) {
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (threadIdx.x + k * 256 < cols) f(threadIdx.x + k * 256, v[k]);
  } else
    for (int j = threadIdx.x; j < cols; j += 256) {
      v[0] = widen(from[j]);
      f(j, v[0]);
    }
}
#ifdef SAMPLE_ROW
#include "sample/row_entry.cuh"
#endif
