#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_SCALES
#include "sample/scales.cuh"
#endif
// Scales of factors that are split into halves (split.cu, split_fp16.cu): powers of two that bring
// the largest value to about 2¹⁴. A factor's tail, the absmax cache, has the scale's exponent; for
// a left factor, two multipliers, of the product and of the old result; then the largest value of
// each of PARTS parts of the factor.
constexpr int PARTS = 1024, HEAD = 4;

__device__ __forceinline__ float larger(float m, float v) { return fabsf(v) > m && v - v == 0 ? fabsf(v) : m; }

// power returns 2ⁿ, capped at single precision's largest exponent.
__device__ __forceinline__ float power(int n) { return __uint_as_float((min(n, 127) + 127) << 23); }

// largest_of returns the largest absolute value of 256 threads.
__device__ __forceinline__ float largest_of(float m) {
  __shared__ float of[8];
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int i = 16; i > 0; i /= 2) m = larger(m, __shfl_xor_sync(0xffffffff, m, i));
  if (tid % 32 == 0) of[tid / 32] = m;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 8; i++) m = larger(m, of[i]);
  return m;
}

// tell_largest finds the largest value of 256 threads and writes it as that of part part of parts,
// PARTS at most. It copies it to every parts-th of PARTS entries.
__device__ __forceinline__ void tell_largest(float* tail, int part, int parts, float m) {
  m = largest_of(m);
  for (int i = part + (threadIdx.y * blockDim.x + threadIdx.x) * parts; i < PARTS; i += 256 * parts) tail[HEAD + i] = m;
}

// largest_part finds the largest value of this block's part of a matrix.
__device__ __forceinline__ void largest_part(int rows, int cols, const float* from, int ldfrom, float* tail) {
  float m = 0;
#pragma unroll 4
  for (int row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += gridDim.x * blockDim.y)
    for (int col = threadIdx.x * V; col < cols; col += blockDim.x * V) {
      float v[V];
      load<V>(v, from + (long long)row * ldfrom + col);
#pragma unroll
      for (int i = 0; i < V; i++) m = larger(m, v[i]);
    }
  tell_largest(tail, blockIdx.x, gridDim.x, m);
}

// largest_flat finds the largest value of this block's part of n contiguous values.
__device__ __forceinline__ void largest_flat(int n, const float* from, float* tail) {
  float m = 0;
  const int stride = gridDim.x * 256 * V;
#pragma unroll 4
  for (int i = (blockIdx.x * 256 + threadIdx.x) * V; i < n; i += stride) {
    float v[V];
    load<V>(v, from + i);
#pragma unroll
    for (int e = 0; e < V; e++) m = larger(m, v[e]);
  }
  tell_largest(tail, blockIdx.x, gridDim.x, m);
}

// MOST_EXPONENT is the largest exponent of a right factor's scale. A left factor's is at most
// left_most, so that what scales their product back is a normal number. So products of largest
// values below 2⁻⁹⁸ lose bits.
constexpr int MOST_EXPONENT = 100;
__device__ __forceinline__ int left_most(const float* right) { return min(MOST_EXPONENT, 126 - (int)right[0]); }

// exponent_of returns the exponent of the scale of a factor with largest value m; it is at most most.
__device__ __forceinline__ int exponent_of(float m, int most) { return min(14 + 127 - (int)(__float_as_uint(m) >> 23), most); }

// scale_of returns a factor's scale from its tail and writes its exponent, at most most, to to[0].
// Blocks have 256 threads.
__device__ __forceinline__ float scale_of(const float* tail, float* to, int most) {
  float m[PARTS / 256];
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
  load<PARTS / 256>(m, tail + HEAD + tid * (PARTS / 256));
#pragma unroll
  for (int i = 1; i < PARTS / 256; i++) m[0] = larger(m[0], m[i]);
  const int exponent = exponent_of(largest_of(m[0]), most);
  if (blockIdx.x == 0 && blockIdx.y == 0 && tid == 0) to[0] = exponent;
  return power(exponent);
}
#ifdef SAMPLE_SCALES
#include "sample/scales_entry.cuh"
#endif
