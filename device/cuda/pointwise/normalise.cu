#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/normalise.cuh"
#endif
// normalise: out[i] = gain · (x[i] - mean) / √(variance + epsilon), with one block per row. With KEPT,
// stats[i] gets the mean and one over the root.
extern "C" __global__ void __launch_bounds__(256)
normalise(int rows, int cols, const FROM* x, int ldx, const GAIN* gain, TO* out, int ldout, float* stats, int ldstats, float epsilon) {
  __shared__ float shared[8];
  auto add = [](float a, float b) { return a + b; };
  begin_next();
  wait_previous();
  for (int i = blockIdx.x; i < rows; i += gridDim.x) {
    const FROM* from = x + (long long)i * ldx;
    TO* to = out + (long long)i * ldout;
    float v[EACH > 0 ? EACH : 1], sum = 0, squares = 0;
    every(cols, v, from, [&](int j, float& x) { x = widen(from[j]), sum += x; });
    const float mean = across(sum, shared, add) / cols;
    every(cols, v, from, [&](int, float& x) { x -= mean, squares += x * x; });
    const float by = 1 / sqrtf(across(squares, shared, add) / cols + epsilon);
    every(cols, v, from, [&](int j, float& x) { narrow(to[j], (EACH > 0 ? x : x - mean) * by * widen(gain[j])); });
#if KEPT
    if (threadIdx.x == 0) {
      stats[(long long)i * ldstats] = mean;
      stats[(long long)i * ldstats + 1] = by;
    }
#endif
  }
}
