#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/scatter.cuh"
#endif
// scatter: table[index[i]][j] += from[i][j], in the order of i. Each block looks for the rows that
// go to its row of the table, 1024 at a time. There is a block for each row of the table. With
// ENTRIES, there is a block for each number of the index instead, and the first that names a row
// adds to it. With NOTED, the row of each number is noted.
extern "C" __global__ void __launch_bounds__(256)
scatter(int rows, int cols, int tablerows, const INDEX* index, int ldindex, const FROM* from, int ldfrom, TABLE* table, int ldtable, int* noted, unsigned* status) {
  constexpr int PER = 4, WARPS = 8; // rows per thread; a warp has 32 consecutive rows, PER times
  __shared__ int hits[PER * 256], counts[2][PER * WARPS];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
#if ENTRIES
  const int at = row_of(widen(index[(long long)blockIdx.x * ldindex]), tablerows);
#if NOTED
  if (blockIdx.y == 0 && tid == 0) noted[blockIdx.x] = at;
#endif
  if (at < 0) {
    *status = BAD_INDEX;
    return;
  }
#else
  const int at = blockIdx.x;
#endif
  const int col = blockIdx.y * 256 + tid;
  const bool mine = col < cols;
  TABLE* to = table + (long long)at * ldtable + (mine ? col : 0);
  float sum = mine ? widen(*to) : 0;
  bool any = false;
  for (int base = 0, round = 0; base < rows; base += PER * 256, round ^= 1) {
    unsigned vote[PER];
#pragma unroll
    for (int k = 0; k < PER; k++) {
      const int i = base + k * 256 + tid;
      int row = -2;
      if (i < rows) row = row_of(widen(index[(long long)i * ldindex]), tablerows);
      if (row == -1 && at == 0) *status = BAD_INDEX;
      vote[k] = __ballot_sync(0xffffffff, row == at);
      if (lane == 0) counts[round][k * WARPS + warp] = __popc(vote[k]);
    }
    // Counts have two sets, since those of the previous round may still be read. Hits are written
    // after the barrier, when all threads have read the previous ones.
    __syncthreads();
    int place[PER], n = 0;
#pragma unroll
    for (int k = 0; k < PER; k++)
#pragma unroll
      for (int w = 0; w < WARPS; w++) {
        if (w == warp) place[k] = n;
        n += counts[round][k * WARPS + w];
      }
    if (n == 0) continue;
#pragma unroll
    for (int k = 0; k < PER; k++)
      if (vote[k] >> lane & 1) hits[place[k] + __popc(vote[k] & ((1u << lane) - 1))] = base + k * 256 + tid;
    __syncthreads();
    if (ENTRIES && !any && hits[0] < blockIdx.x) return;
    any = true;
    if (mine)
      for (int k = 0; k < n;) { // in parts, since rounding errors of equal terms add up
        float part = 0;
        for (const int end = min(n, k + 256); k < end; k++) part += widen(from[(long long)hits[k] * ldfrom + col]);
        sum += part;
      }
  }
  if (mine && any) narrow(*to, sum);
}
