#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_SPLIT_K
#include "sample/split_k.cuh"
#endif
// add_parts: to = the sum, in order, of the parts of a product or of a factor's rows. add: to +=
// it.
template <int V>
__device__ __forceinline__ void add_parts(int rows, int cols, int parts, const float* from, float* to, int ldto, int add) {
  const long long all = (long long)rows * cols;
  for (long long i = (blockIdx.x * 256ll + threadIdx.x) * V; i < all; i += gridDim.x * 256ll * V) {
    float* const at = to + i / cols * ldto + i % cols;
    float sum[V] = {}, v[V];
    if (add) load<V>(sum, at);
#pragma unroll 4
    for (int p = 0; p < parts; p++) {
      load<V>(v, from + p * all + i);
#pragma unroll
      for (int e = 0; e < V; e++) sum[e] += v[e];
    }
    store<V>(at, sum);
  }
}
#ifdef SAMPLE_SPLIT_K
#include "sample/split_k_entry.cuh"
#endif
