#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/sumrows.cuh"
#endif
// sumrows: out[part][j] = the sum of from[i][j] over the share rows from part·share on; accumulate:
// added to the old value. Each block sums 32·V columns with 8 rows of threads, always in the same
// order. If copy is not out, the sums also go to copy. With LARGEST, the largest values go to the
// factor's tail (scales.cu).
extern "C" __global__ void __launch_bounds__(256, RESIDENT) sumrows(int rows, int cols, int share, const FROM* from, int ldfrom, TO* out, int ldout, int accumulate, TO* copy, float* tail) {
  __shared__ pack<float, V> part[8][32];
  const int x = threadIdx.x, y = threadIdx.y, left = blockIdx.x * (32 * V), col = left + x * V;
  begin_next();
  wait_previous();
  const int first = blockIdx.y * share, last = min(rows, first + share);
  float sum[4][V] = {}, most = 0;
  auto take = [&](int i, int k) {
    float v[V];
    load<V>(v, from + (long long)i * ldfrom + col);
#pragma unroll
    for (int e = 0; e < V; e++) {
      sum[k][e] += v[e];
#if LARGEST
      most = larger(most, v[e]);
#endif
    }
  };
  if (col < cols) {
    int i = first + y;
    for (; i + 24 < last; i += 32)
#pragma unroll
      for (int k = 0; k < 4; k++) take(i + 8 * k, k);
    for (; i < last; i += 8) take(i, 0);
  }
#pragma unroll
  for (int e = 0; e < V; e++) sum[0][e] = (sum[0][e] + sum[1][e]) + (sum[2][e] + sum[3][e]);
  store<V>(part[y][x].v, sum[0]);
  __syncthreads();
  const int j = y * 32 + x;
  if (j < 32 * V && left + j < cols) {
    float all = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) all += part[k][j / V].v[j % V];
    TO* to = out + (long long)blockIdx.y * ldout + left + j;
    if (accumulate) all += widen(*to);
    narrow(*to, all);
    if (copy != out) narrow(copy[left + j], all);
  }
#if LARGEST
  tell_largest(tail, blockIdx.y * gridDim.x + blockIdx.x, gridDim.x * gridDim.y, most);
#endif
}
