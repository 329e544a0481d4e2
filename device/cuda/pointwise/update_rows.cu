#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/update_rows.cuh"
#endif
// update_rows: SGD for those rows of a table that a column of numbers names. The block of the first
// number that names a row changes it, once. V elements are changed at once.
extern "C" __global__ void __launch_bounds__(256)
update_rows(int rows, int cols, PARAM* param, int ldparam, const GRAD* grad, int ldgrad, const INDEX* index, int ldindex, const RATES* rates, const SQUARES* squares, int parts) {
  __shared__ int before;
  begin_next();
  if (threadIdx.x == 0) before = 0;
  wait_previous();
  const float scale = gradient_scale(rates, squares, parts), rate = widen(rates[0]);
  const int row = row_of(widen(index[(long long)blockIdx.x * ldindex]), rows);
  __syncthreads();
  for (int i = threadIdx.x; i < blockIdx.x; i += 256)
    if (row_of(widen(index[(long long)i * ldindex]), rows) == row) before = 1;
  __syncthreads();
  if (before || row < 0 || scale == 0) return;
  PARAM* const to = param + (long long)row * ldparam;
  const GRAD* const from = grad + (long long)row * ldgrad;
  for (int j = V * threadIdx.x; j + V <= cols; j += V * 256) {
    float w[V], step[V];
    load<V>(w, to + j);
    load<V>(step, from + j);
#pragma unroll
    for (int k = 0; k < V; k++) w[k] -= rate * (scale * step[k]);
    store<V>(to + j, w);
  }
  for (int j = cols / V * V + threadIdx.x; j < cols; j += 256) narrow(to[j], widen(to[j]) - rate * (scale * widen(from[j])));
}
