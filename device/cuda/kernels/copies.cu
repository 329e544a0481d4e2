#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/copies.cuh"
#endif
// copies: to[i] = from[i] for i < n, in units of 16 bytes.
extern "C" __global__ void __launch_bounds__(256) copies(const float* from, float* to, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    reinterpret_cast<pack<float, 4>*>(to)[i] = reinterpret_cast<const pack<float, 4>*>(from)[i];
}
