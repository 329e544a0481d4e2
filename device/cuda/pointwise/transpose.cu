#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/transpose.cuh"
#endif
// transpose: to[j][i] = from[i][j] for i < rows, j < cols. A tile goes through shared memory, so
// that both sides are accessed along rows.
extern "C" __global__ void __launch_bounds__(256) transpose(int rows, int cols, const FROM* from, int ldfrom, TO* to, int ldto) {
  __shared__ float tile[32][33];
  const int x = threadIdx.x, left = blockIdx.x * 32;
  for (int top = blockIdx.y * 32; top < rows; top += gridDim.y * 32) {
    for (int y = threadIdx.y; y < 32; y += 8)
      if (top + y < rows && left + x < cols) tile[y][x] = widen(from[(long long)(top + y) * ldfrom + left + x]);
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8)
      if (left + y < cols && top + x < rows) narrow(to[(long long)(left + y) * ldto + top + x], tile[x][y]);
    __syncthreads();
  }
}
