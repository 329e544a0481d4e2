#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/split.cuh"
#endif
// Splits factors of products into halves. Each value, scaled (scales.cu), becomes high, the nearest
// half, and low, the half nearest to the remainder.

// pieces writes V split values, the three pieces gap apart: low, high, high for a left factor and
// high, low, high for a RIGHT one. The kernel split packs from, rows × cols, or with TRANS its
// transpose. Columns up to all are zeros. A transposed tile goes through shared memory, so that
// both sides are accessed along rows.
__device__ __forceinline__ void pieces(fp16* to, int gap, const float* v, float scale) {
  float high[V], low[V];
#pragma unroll
  for (int i = 0; i < V; i++) {
    fp16 half;
    narrow(half, v[i] * scale);
    high[i] = widen(half);
    low[i] = v[i] * scale - high[i];
  }
  store<V>(to, RIGHT ? high : low);
  store<V>(to + gap, RIGHT ? low : high);
  store<V>(to + 2 * gap, high);
}

// tell writes what a product with a right factor is multiplied by, and behind the largest values what one
// that is added to its result is. The largest values of a right factor are in the tail right, those of a left
// one in its own tail.
__device__ __forceinline__ void tell(float* tail, float scale, const float* right, int add) {
  if (RIGHT || blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y > 0) return;
  tail[1] = tail[HEAD + PARTS] = power(127 - (int)(__float_as_uint(scale) >> 23) - (int)right[0]);
  tail[2] = add, tail[HEAD + PARTS + 1] = 1;
}

#if TRANS
extern "C" __global__ void __launch_bounds__(256) split(int rows, int cols, const float* from, int ldfrom, int all, fp16* to, float* tail, const float* right, int add) {
  __shared__ float tile[32][33];
  const float scale = RIGHT ? scale_of(right, tail, MOST_EXPONENT) : scale_of(tail, tail, left_most(right));
  tell(tail, scale, right, add);
  const int x = threadIdx.x, left = blockIdx.x * 32;
  for (int top = blockIdx.y * 32; top < all; top += gridDim.y * 32) {
    for (int y = threadIdx.y; y < 32; y += 8)
      tile[y][x] = top + y < rows && left + x < cols ? from[(long long)(top + y) * ldfrom + left + x] : 0;
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8)
      if (left + y < cols && top + x < all) pieces(to + (long long)(left + y) * 3 * all + top + x, all, &tile[x][y], scale);
    __syncthreads();
  }
}
#else
extern "C" __global__ void __launch_bounds__(256) split(int rows, int cols, const float* from, int ldfrom, int all, fp16* to, float* tail, const float* right, int add) {
  const float scale = RIGHT ? scale_of(right, tail, MOST_EXPONENT) : scale_of(tail, tail, left_most(right));
  tell(tail, scale, right, add);
  for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y)
    for (int col = (blockIdx.x * blockDim.x + threadIdx.x) * V; col < all; col += gridDim.x * blockDim.x * V) {
      float v[V] = {};
      if (col < cols) load<V>(v, from + (long long)row * ldfrom + col);
      pieces(to + (long long)row * 3 * all + col, all, v, scale);
    }
}
#endif
