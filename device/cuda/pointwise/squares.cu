#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/squares.cuh"
#endif
// A summand is a matrix whose squares are summed in bands, one element of out per band. Blocks from
// first on do so, one per band. If named > 0, index has that many row numbers. All other rows are
// zero and are not read.
struct summand {
  const FROM* from;
  OUT* out;
  const INDEX* index;
  int rows, cols, ld, bands, named, ldindex;
  long long first;
};
struct summands { summand of[SEGMENTS]; };

// add_squares adds the squares of count contiguous values: of every stride-th group of V, from
// group at on.
__device__ __forceinline__ float add_squares(float sum, const FROM* from, long long count, int at, int stride) {
#pragma unroll 8
  for (long long j = V * at; j + V <= count; j += V * stride) {
    float v[V];
    load<V>(v, from + j);
#pragma unroll
    for (int k = 0; k < V; k++) sum += v[k] * v[k];
  }
  for (long long j = count / V * V + at; j < count; j += stride) {
    const float v = widen(from[j]);
    sum += v * v;
  }
  return sum;
}

// add_named adds the squares of named rows among rows first … first + rows - 1. A warp reads a row.
__device__ __forceinline__ float add_named(const summand& s, int first, int rows) {
  __shared__ int named[256];
  float sum = 0;
  for (int base = 0; base < rows; base += 256) {
    const int n = min(256, rows - base), top = first + base;
    named[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < s.named; i += 256) {
      const int row = row_of(widen(s.index[(long long)i * s.ldindex]), s.rows) - top;
      if (row >= 0 && row < n) named[row] = 1;
    }
    __syncthreads();
    for (int row = threadIdx.x / 32; row < n; row += 8)
      if (named[row]) sum = add_squares(sum, s.from + (long long)(top + row) * s.ld, s.cols, threadIdx.x % 32, 32);
    __syncthreads();
  }
  return sum;
}

// squares: out[i] = the sum of squares of the rows from rows·i/bands up to rows·(i+1)/bands, always
// added in the same order.
extern "C" __global__ void __launch_bounds__(256) squares(int n, const __grid_constant__ summands all) {
  __shared__ float part[8];
  begin_next();
  wait_previous();
  int at = 0;
  for (int after = n; after - at > 1;) {
    const int middle = (at + after) / 2;
    if (all.of[middle].first <= blockIdx.x) at = middle; else after = middle;
  }
  const summand& s = all.of[at];
  const long long band = blockIdx.x - s.first;
  const long long first = s.rows * band / s.bands, rows = s.rows * (band + 1) / s.bands - first;
  const FROM* const from = s.from + first * s.ld;
  float sum = 0;
  if (s.named > 0)
    sum = add_named(s, first, rows);
  else if (s.ld == s.cols)  // contiguous: as one row
    sum = add_squares(0, from, rows * s.cols, threadIdx.x, 256);
  else
    for (long long i = 0; i < rows; i++) sum = add_squares(sum, from + i * s.ld, s.cols, threadIdx.x, 256);
#pragma unroll
  for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(0xffffffff, sum, i);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 8; i++) sum += part[i];
    narrow(s.out[band], sum);
  }
}
