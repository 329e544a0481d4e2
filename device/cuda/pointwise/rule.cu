#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_RULE
#include "sample/rule.cuh"
#endif
// gradient_scale returns the factor of all gradients. It comes from the row of rates
// (schedule.Rates) and from parts partial sums of the squares of all gradients. 0: that sum is not
// finite.
__device__ float gradient_scale(const RATES* rates, const SQUARES* squares, int parts) {
  __shared__ float part[8];
  float scale = widen(rates[2]);
  if (parts == 0) return scale;
  float sum = 0;
  for (int i = threadIdx.x; i < parts; i += 256) sum += widen(squares[i]);
#pragma unroll
  for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(0xffffffff, sum, i);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = part[0];
  for (int i = 1; i < 8; i++) sum += part[i];
  if (!(sum <= 3.402823466e38f)) return 0;  // infinite or NaN
  const float norm = sqrtf(sum) * scale, limit = widen(rates[3]);
  return limit > 0 && norm > limit ? scale * (limit / (norm + 1e-6f)) : scale;
}
#ifdef SAMPLE_RULE
#include "sample/rule_entry.cuh"
#endif
