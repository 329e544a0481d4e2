#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/softmaxloss.cuh"
#endif
// across combines one value of each of the block's 256 threads, always in the
// same order.
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

// every calls f for each of this thread's columns of a row, with its place in v.
template <class F> __device__ __forceinline__ void every(int cols, float* v, const LOGITS* from, F f) {
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

// softmaxloss: loss[i] = -log softmax(logits[i])[target[i]]; prob[i] is the
// softmax, or with grad set the gradient of scale·loss. One block per row, whose values it
// has in registers if there are EACH for each thread at most; 0: they are read again.
extern "C" __global__ void __launch_bounds__(256)
softmaxloss(int rows, int cols, const LOGITS* logits, int ldlogits, const TARGET* target, int ldtarget, LOSS* loss, int ldloss, PROB* prob, int ldprob,
            int grad, float scale, unsigned* status) {
  __shared__ float shared[8];
  begin_next();
  wait_previous();
  for (int i = blockIdx.x; i < rows; i += gridDim.x) {
    const LOGITS* from = logits + (long long)i * ldlogits;
    PROB* to = prob + (long long)i * ldprob;
    const int class_ = row_of(widen(target[(long long)i * ldtarget]), cols);
    if (class_ < 0) {
      if (threadIdx.x == 0) *status = BAD_INDEX;
      continue;
    }
    float v[EACH > 0 ? EACH : 1];
    float top = widen(from[0]);
    const float right = widen(from[class_]);
    every(cols, v, from, [&](int j, float& x) { x = widen(from[j]), top = fmaxf(top, x); });
    top = across(top, shared, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    every(cols, v, from, [&](int, float& x) { x = expf(x - top), sum += x; });
    sum = across(sum, shared, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0) narrow(loss[(long long)i * ldloss], logf(sum) + top - right);
    const float by = (grad ? scale : 1) / sum;
    every(cols, v, from, [&](int j, float& x) {
      float p = (EACH > 0 ? x : expf(x - top)) * by;
      if (grad && j == class_) p -= scale;
      narrow(to[j], p);
    });
    __syncthreads();
  }
}
