#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/squares.cuh"
#endif
// A summand is a matrix whose squares are summed, in so many bands, to as many elements of out.
// Blocks from first on do it, each a band.
struct summand {
  const FROM* from;
  OUT* out;
  long long rows, cols, ld, bands, first;
};
struct summands { summand of[SEGMENTS]; };

// squares: out[i] = the sum of squares of rows rows·i/bands … of a matrix, always added in the same
// order.
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
  const long long first = s.rows * band / s.bands;
  long long rows = s.rows * (band + 1) / s.bands - first, cols = s.cols;
  const FROM* from = s.from + first * s.ld;
  if (s.ld == cols) cols *= rows, rows = 1;  // as one row
  float sum = 0;
  for (long long i = 0; i < rows; i++, from += s.ld)
#pragma unroll 4
    for (long long j = threadIdx.x; j < cols; j += 256) {
      const float v = widen(from[j]);
      sum += v * v;
    }
#pragma unroll
  for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(0xffffffff, sum, i);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 8; i++) sum += part[i];
    narrow(s.out[band], sum);
  }
}
