#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/zero_rows.cuh"
#endif
// zero_rows zeroes the noted rows of a table, a block each, V elements at once. The notes are those
// of the previous run's scatter; before the first run they may be anything.
extern "C" __global__ void __launch_bounds__(256) zero_rows(int rows, int cols, float* table, int ldtable, const int* noted) {
  begin_next();
  wait_previous();
  const int at = noted[blockIdx.x];
  if (at < 0 || at >= rows) return;
  float* const to = table + (long long)at * ldtable;
  const float zeros[V] = {};
  for (int j = V * threadIdx.x; j + V <= cols; j += V * 256) store<V>(to + j, zeros);
  for (int j = cols / V * V + threadIdx.x; j < cols; j += 256) to[j] = 0;
}
