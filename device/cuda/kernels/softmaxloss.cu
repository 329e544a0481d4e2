// across combines one value of each of the block's 256 threads, always in the
// same order.
template <class F> __device__ float across(float v, float* shared, F f) {
  shared[threadIdx.x] = v;
  __syncthreads();
  for (int n = 128; n > 0; n /= 2) {
    if (threadIdx.x < n) shared[threadIdx.x] = f(shared[threadIdx.x], shared[threadIdx.x + n]);
    __syncthreads();
  }
  v = shared[0];
  __syncthreads();
  return v;
}

// softmaxloss: loss[i] = -log softmax(logits[i])[target[i]]; prob[i] is the
// softmax, or with grad set the gradient of scale·loss. One block per row.
extern "C" __global__ void __launch_bounds__(256)
softmaxloss(int rows, int cols, const LOGITS* logits, int ldlogits, const TARGET* target, int ldtarget, LOSS* loss, int ldloss, PROB* prob, int ldprob,
            int grad, float scale, unsigned* trouble) {
  __shared__ float shared[256];
  for (int i = blockIdx.x; i < rows; i += gridDim.x) {
    const LOGITS* from = logits + (long long)i * ldlogits;
    PROB* to = prob + (long long)i * ldprob;
    const int class_ = row_of(widen(target[(long long)i * ldtarget]), cols);
    if (class_ < 0) {
      if (threadIdx.x == 0) *trouble = BAD_INDEX;
      continue;
    }
    float top = widen(from[0]);
    for (int j = threadIdx.x; j < cols; j += 256) top = fmaxf(top, widen(from[j]));
    top = across(top, shared, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0;
    for (int j = threadIdx.x; j < cols; j += 256) sum += expf(widen(from[j]) - top);
    sum = across(sum, shared, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0) narrow(loss[(long long)i * ldloss], logf(sum) + top - widen(from[class_]));
    __syncthreads();
    const float by = (grad ? scale : 1) / sum;
    for (int j = threadIdx.x; j < cols; j += 256) {
      float p = expf(widen(from[j]) - top) * by;
      if (grad && j == class_) p -= scale;
      narrow(to[j], p);
    }
    __syncthreads();
  }
}
