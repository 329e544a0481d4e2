#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/muladds.cuh"
#endif
// muladds runs 16 chains of multiply-adds in each thread, count times.
extern "C" __global__ void __launch_bounds__(512) muladds(float* out, int count) {
  float a[16];
#pragma unroll
  for (int i = 0; i < 16; i++) a[i] = threadIdx.x + i;
  for (int k = 0; k < count; k++)
#pragma unroll
    for (int i = 0; i < 16; i++) a[i] = fmaf(a[i], 1.0001f, 0.5f);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 16; i++) sum += a[i];
  if (sum == 12345) *out = sum;
}
