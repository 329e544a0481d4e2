#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/update_rows.cuh"
#endif
// update_rows: SGD of those rows of a table that a column of n numbers names, each once. A block
// looks through the column for 32 rows.
extern "C" __global__ void __launch_bounds__(256)
update_rows(int rows, int cols, PARAM* param, int ldparam, const GRAD* grad, int ldgrad, int n, const INDEX* index, int ldindex, const RATES* rates, const SQUARES* squares, int parts) {
  __shared__ int named[32];
  begin_next();
  if (threadIdx.x < 32) named[threadIdx.x] = 0;
  wait_previous();
  const float scale = gradient_scale(rates, squares, parts), rate = widen(rates[0]);
  const int first = blockIdx.x * 32;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 256) {
    const int row = row_of(widen(index[(long long)i * ldindex]), rows) - first;
    if (row >= 0 && row < 32) named[row] = 1;
  }
  __syncthreads();
  if (scale == 0) return;
  for (int row = threadIdx.x / 32; row < 32; row += 8)
    if (named[row])
      for (int j = threadIdx.x % 32; j < cols; j += 32) {
        PARAM* p = param + (long long)(first + row) * ldparam + j;
        narrow(*p, widen(*p) - rate * (scale * widen(grad[(long long)(first + row) * ldgrad + j])));
      }
}
