#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/squares.cuh"
#endif
// squares: out[i] = the sum of squares of rows rows·i/bands … of from, always added in the same
// order. A block sums a band.
extern "C" __global__ void __launch_bounds__(256) squares(int rows, int cols, const FROM* from, int ldfrom, OUT* out, int bands) {
  __shared__ float part[8];
  begin_next();
  wait_previous();
  for (int band = blockIdx.x; band < bands; band += gridDim.x) {
    const int first = (int)((long long)rows * band / bands), last = (int)((long long)rows * (band + 1) / bands);
    float sum = 0;
    for (int i = first + threadIdx.x / 32; i < last; i += 8) {
      const FROM* row = from + (long long)i * ldfrom;
      for (int j = threadIdx.x % 32; j < cols; j += 32) {
        const float v = widen(row[j]);
        sum += v * v;
      }
    }
#pragma unroll
    for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(0xffffffff, sum, i);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 1; i < 8; i++) sum += part[i];
      narrow(out[band], sum);
    }
    __syncthreads();
  }
}
