#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/gather.cuh"
#endif
// gather: out[i][j] = table[index[i]][j].
extern "C" __global__ void __launch_bounds__(256)
gather(int rows, int cols, int tablerows, const INDEX* index, int ldindex, const TABLE* table, int ldtable, TO* out, int ldout, unsigned* status) {
  for (int i = blockIdx.y * blockDim.y + threadIdx.y; i < rows; i += gridDim.y * blockDim.y) {
    const int at = row_of(widen(index[(long long)i * ldindex]), tablerows);
    if (at < 0) {
      *status = BAD_INDEX;
      continue;
    }
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < cols; j += gridDim.x * blockDim.x)
      narrow(out[(long long)i * ldout + j], widen(table[(long long)at * ldtable + j]));
  }
}
