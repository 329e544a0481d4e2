#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/softmaxloss.cuh"
#endif
// softmaxloss: loss[i] = -log softmax(logits[i])[target[i]]. prob[i] is the softmax or, with grad,
// the gradient of scale·loss. Each of groups parts of the columns has a softmax of its own. With
// WEIGHTED, the loss of row i counts weight[i] times. There is one block per row and part. Each
// thread keeps EACH values in registers; EACH = 0: values are read again.
extern "C" __global__ void __launch_bounds__(256)
softmaxloss(int rows, int groups, int cols, const LOGITS* logits, int ldlogits, const TARGET* target, int ldtarget, LOSS* loss, int ldloss, PROB* prob,
            int ldprob, const WEIGHT* weight, int ldweight, int grad, float all, unsigned* status) {
  __shared__ float shared[8];
  begin_next();
  wait_previous();
  for (int i = blockIdx.x; i < rows * groups; i += gridDim.x) {
    const int row = i / groups, first = i % groups * cols;
    const LOGITS* from = logits + (long long)row * ldlogits + first;
    PROB* to = prob + (long long)row * ldprob + first;
#if WEIGHTED
    const float scale = all * widen(weight[(long long)row * ldweight]);
#else
    const float scale = all;
#endif
    int class_ = -1;
    if (!WEIGHTED || scale != 0) {
      const int right = row_of(widen(target[(long long)row * ldtarget]), cols * groups);
      if (right < 0) {
        if (threadIdx.x == 0) *status = BAD_INDEX;
        continue;
      }
      if (right >= first && right < first + cols) class_ = right - first;
    } else if (first == 0 && threadIdx.x == 0)
      narrow(loss[(long long)row * ldloss], 0.0f);
    if (grad && class_ < 0) {
      for (int j = threadIdx.x; j < cols; j += 256) narrow(to[j], 0.0f);
      continue;
    }
    float v[EACH > 0 ? EACH : 1];
    float top = widen(from[0]);
    const float right = widen(from[max(class_, 0)]);
    every(cols, v, from, [&](int j, float& x) { x = widen(from[j]), top = fmaxf(top, x); });
    top = across(top, shared, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    every(cols, v, from, [&](int, float& x) { x = expf(x - top), sum += x; });
    sum = across(sum, shared, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0 && class_ >= 0) narrow(loss[(long long)row * ldloss], logf(sum) + top - right);
    const float by = (grad ? scale : 1) / sum;
    every(cols, v, from, [&](int j, float& x) {
      float p = (EACH > 0 ? x : expf(x - top)) * by;
      if (grad && j == class_) p -= scale;
      narrow(to[j], p);
    });
    __syncthreads();
  }
}
