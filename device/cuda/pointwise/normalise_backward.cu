#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/normalise_backward.cuh"
#endif
// normalise_backward: the gradient of normalise.cu, with one block per row. dx gets that of x, and
// share the row's part in that of gain. dx may be dout, and share may be x.
extern "C" __global__ void __launch_bounds__(256)
normalise_backward(int rows, int cols, const DOUT* dout, int lddout, const FROM* x, int ldx, const GAIN* gain, const float* stats, int ldstats, DX* dx, int lddx,
                   SHARE* share, int ldshare) {
  __shared__ float shared[8];
  auto add = [](float a, float b) { return a + b; };
  begin_next();
  wait_previous();
  for (int i = blockIdx.x; i < rows; i += gridDim.x) {
    const FROM* from = x + (long long)i * ldx;
    const DOUT* d = dout + (long long)i * lddout;
    const float mean = stats[(long long)i * ldstats], by = stats[(long long)i * ldstats + 1];
    float v[EACH > 0 ? EACH : 1], sum = 0, along = 0;
    every(cols, v, from, [&](int j, float& x) {
      if (EACH > 0) x = widen(from[j]);
      x = (x - mean) * by;
      const float g = widen(d[j]) * widen(gain[j]);
      sum += g, along += g * x;
    });
    sum = across(sum, shared, add) / cols;
    along = across(along, shared, add) / cols;
    every(cols, v, from, [&](int j, float& x) {
      const float normal = EACH > 0 ? x : (x - mean) * by, g = widen(d[j]);
      narrow(dx[(long long)i * lddx + j], by * (g * widen(gain[j]) - sum - normal * along));
      narrow(share[(long long)i * ldshare + j], g * normal);
    });
  }
}
