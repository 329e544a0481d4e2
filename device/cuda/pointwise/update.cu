#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/update.cuh"
#endif
// gradient_scale is what gradients are multiplied by, from the row of rates (schedule.Rates) and
// from parts of the sum of squares of all gradients; 0: that sum is not finite.
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
  if (!(sum <= 3.402823466e38f)) return 0;  // infinite, or no number
  const float norm = sqrtf(sum) * scale, limit = widen(rates[3]);
  return limit > 0 && norm > limit ? scale * (limit / (norm + 1e-6f)) : scale;
}

// update: Update.Step of package schedule for each element of param. There are MOMENTS of them;
// two make it Adam. With COPIES set, copy becomes what param is.
extern "C" __global__ void __launch_bounds__(256)
update(int rows, int cols, PARAM* param, int ldparam, COPY* copy, int ldcopy, const GRAD* grad, int ldgrad, FIRST* first, int ldfirst, SECOND* second,
       int ldsecond, const RATES* rates, const SQUARES* squares, int parts, float beta1, float beta2, float epsilon) {
  begin_next();
  wait_previous();
  const float scale = gradient_scale(rates, squares, parts), rate = widen(rates[0]), root = widen(rates[1]);
  for (int i = blockIdx.y; i < rows; i += gridDim.y)
    for (int j = blockIdx.x * 256 + threadIdx.x; j < cols; j += gridDim.x * 256) {
      PARAM* p = param + (long long)i * ldparam + j;
      float w = widen(*p);
      if (scale != 0) {
        const float g = scale * widen(grad[(long long)i * ldgrad + j]);
        float step = g;
#if MOMENTS > 0
        FIRST* m = first + (long long)i * ldfirst + j;
#endif
#if MOMENTS == 1
        step = beta1 * widen(*m) + g;
        narrow(*m, step);
#elif MOMENTS == 2
        SECOND* v = second + (long long)i * ldsecond + j;
        const float mean = beta1 * widen(*m) + (1 - beta1) * g, square = beta2 * widen(*v) + (1 - beta2) * g * g;
        narrow(*m, mean);
        narrow(*v, square);
        step = mean / (sqrtf(square) * root + epsilon);
#endif
        w -= rate * step;
        narrow(*p, w);
      }
#if COPIES
      narrow(copy[(long long)i * ldcopy + j], w);
#endif
    }
}
