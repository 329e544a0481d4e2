#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/scatter.cuh"
#endif
// scatter: table[index[i]][j] += from[i][j], in the order of i: each block looks
// for the rows that go to one row of the table.
extern "C" __global__ void __launch_bounds__(256)
scatter(int rows, int cols, int tablerows, const INDEX* index, int ldindex, const FROM* from, int ldfrom, TABLE* table, int ldtable, unsigned* status) {
  __shared__ int hits[256], before[9];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const int at = blockIdx.x, col = blockIdx.y * 256 + tid;
  const bool mine = col < cols;
  TABLE* to = table + (long long)at * ldtable + (mine ? col : 0);
  float sum = mine ? widen(*to) : 0;
  bool any = false;
  for (int base = 0; base < rows; base += 256) {
    const int i = base + tid;
    int row = -2;
    if (i < rows) row = row_of(widen(index[(long long)i * ldindex]), tablerows);
    if (row == -1 && at == 0) *status = BAD_INDEX;
    // The hits of these 256 rows, in order.
    const unsigned vote = __ballot_sync(0xffffffff, row == at);
    if (lane == 0) before[warp + 1] = __popc(vote);
    __syncthreads();
    if (tid == 0) {
      before[0] = 0;
      for (int w = 1; w <= 8; w++) before[w] += before[w - 1];
    }
    __syncthreads();
    if (row == at) hits[before[warp] + __popc(vote & ((1u << lane) - 1))] = i;
    __syncthreads();
    const int n = before[8];
    any = any || n > 0;
    if (mine)
      for (int k = 0; k < n; k++) sum += widen(from[(long long)hits[k] * ldfrom + col]);
    __syncthreads();
  }
  if (mine && any) narrow(*to, sum);
}
