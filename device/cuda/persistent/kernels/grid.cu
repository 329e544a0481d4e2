#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_GRID
#include "sample/grid.cuh"
#endif
// barrier waits until all blocks of the grid have come, for the nth time, and reports whether they
// have. What blocks wrote before it, all can read after it. A block that has waited for a second
// reports that to the host and gives up. word is four bytes of shared memory.
__device__ __forceinline__ bool barrier(unsigned* counter, unsigned n, int* word, unsigned* status) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    add_release(counter);
    const unsigned want = n * gridDim.x;
    const long long start = clock64();
    int all = 1;
    while ((int)(get_acquire(counter) - want) < 0) {
      pause();
      if (clock64() - start > 2000000000ll) {
        *status = STUCK;
        all = 0;
        break;
      }
    }
    *word = all;
    __threadfence();
  }
  __syncthreads();
  return *word;
}

// finish resets the counter to 0 after a kernel of n barriers.
__device__ __forceinline__ void finish(unsigned* counter, unsigned n) {
  if (threadIdx.x == 0 && atomicAdd(counter, 1) == (n + 1) * gridDim.x - 1) *counter = 0;
}

// halve sums v[0 … N) over the warp. Lane l ends with the sum of value l·N/32 in v[0]. N is a power
// of two up to 32.
template <int N> __device__ __forceinline__ void halve(float* v, int lane) {
  int width = 16;
#pragma unroll
  for (int n = N; n > 1; n /= 2) {
    const bool upper = lane & width;
#pragma unroll
    for (int i = 0; i < n / 2; i++) {
      const float give = upper ? v[i] : v[i + n / 2], keep = upper ? v[i + n / 2] : v[i];
      v[i] = keep + __shfl_xor_sync(0xffffffff, give, width);
    }
    width /= 2;
  }
  for (; width > 0; width /= 2) v[0] += __shfl_xor_sync(0xffffffff, v[0], width);
}

// products: sums[row·chunk + n] = Σₖ weights[row·length + k] · from[n·ld + k] for row < rows, a
// multiple of ROWS, and n < count. A warp handles ROWS rows and SAMPLES of the n at a time, its
// lanes side by side in k.
template <int ROWS, int SAMPLES, class W, class F>
__device__ __forceinline__ void products(const W* weights, int rows, int length, const F* from, int ld, int count, float* sums, int chunk) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int tiles = rows / ROWS, items = tiles * ((count + SAMPLES - 1) / SAMPLES);
  for (int item = warp; item < items; item += warps) {
    const int row = item % tiles * ROWS, first = item / tiles * SAMPLES;
    float sum[ROWS * SAMPLES];
#pragma unroll
    for (int i = 0; i < ROWS * SAMPLES; i++) sum[i] = 0;
    const F* h[SAMPLES];
#pragma unroll
    for (int n = 0; n < SAMPLES; n++) h[n] = from + (long long)min(first + n, count - 1) * ld;
#pragma unroll 4
    for (int k = lane; k < length; k += 32) {
      float v[SAMPLES];
#pragma unroll
      for (int n = 0; n < SAMPLES; n++) v[n] = widen(h[n][k]);
#pragma unroll
      for (int i = 0; i < ROWS; i++) {
        const float w = widen(weights[(long long)(row + i) * length + k]);
#pragma unroll
        for (int n = 0; n < SAMPLES; n++) sum[i * SAMPLES + n] += w * v[n];
      }
    }
    halve<ROWS * SAMPLES>(sum, lane);
    const int each = 32 / (ROWS * SAMPLES), value = lane / each;
    if (lane % each == 0 && first + value % SAMPLES < count) sums[(row + value / SAMPLES) * chunk + first + value % SAMPLES] = sum[0];
  }
}
#ifdef SAMPLE_GRID
#include "sample/grid_entry.cuh"
#endif
