#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/copyrows.cuh"
#endif
// copyrows copies a matrix to rows of another length, and finds its largest value.
extern "C" __global__ void __launch_bounds__(256) copyrows(int rows, int cols, const float* from, int ldfrom, float* to, int ldto, float* tail) {
  float m = 0;
  begin_next();
  wait_previous();
#pragma unroll 4
  for (int row = blockIdx.x * 8 + threadIdx.y; row < rows; row += gridDim.x * 8)
    for (int col = threadIdx.x; col < cols; col += 32) {
      const float v = from[(long long)row * ldfrom + col];
      to[(long long)row * ldto + col] = v;
      m = larger(m, v);
    }
  tell_largest(tail, blockIdx.x, gridDim.x, m);
}
