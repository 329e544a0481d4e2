#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/split_fp16.cuh"
#endif
// A single-precision product on tensor cores that splits its left factor into halves as it
// multiplies (scales.cu, split.go). A block forms ROWS × COLUMNS values at a time, in stages of
// DEEP terms. One thread makes the copy engine load them, STAGES ahead. Each of the other
// warpgroups reads 64 rows of the left factor from shared memory into registers and splits them. It
// multiplies them by the right factor's pieces (pack_operand.cu). Tensor cores truncate their sums,
// so after every FOLD stages the sums are added to the total in single precision. If a product has
// few tiles, its sums are in parts as well, which split_k.cu adds up. copyrows.cu makes copies that
// the engine can read.
constexpr int FOLD = 4, ROWS = 64 * GROUPS, BLOCK = 128 * GROUPS + 128;
constexpr int LEFT = 4 * ROWS * DEEP, STAGE = LEFT + RIGHT; // bytes
constexpr int EIGHT = 16 * COLUMNS;                       // bytes of eight terms of all columns

// Place of an item: its first row and column, its first unit of DEEP terms, and how many of these.
struct Place {
  int part, row, column, first, count;
  __device__ Place(int item, int m, int n, int deep, int share) {
    const int across = (n + COLUMNS - 1) / COLUMNS, tiles = across * ((m + ROWS - 1) / ROWS), tile = item % tiles;
    part = item / tiles, row = tile / across * ROWS, column = tile % across * COLUMNS, first = part * share, count = min(share, deep - first);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK) split_fp16(int m, int n, int k, int items, int share, const float* tail, const quad* b, const float* right, float* c, int ldc, long long apart, int add, const float* bias, const __grid_constant__ tensor_map a) {
  DYNAMIC_SHARED(memory);
  unsigned char* const stages = memory + (1024 - shared_address(memory) % 1024) % 1024; // the engine's swizzle of 128-byte rows needs this alignment
  const shared_t full = shared_address(stages + STAGES * STAGE), empty = full + 8 * STAGES;
  float* const rows = (float*)(stages + STAGES * (STAGE + 16)); // bias rows, one per warpgroup, [GROUPS][COLUMNS]
  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32, deep = (k + DEEP - 1) / DEEP;
  begin_next();
  if (tid == 0) {
    for (int i = 0; i < STAGES; i++) bar_init(full + 8 * i, 1), bar_init(empty + 8 * i, 4 * GROUPS);
    bar_publish();
  }
  __syncthreads();
  wait_previous();
  int stage = 0, phase = 0;
  auto next = [&] {
    if (++stage == STAGES) stage = 0, phase ^= 1;
  };
  if (warp >= 4 * GROUPS) {
    fewer_registers<24>();
    for (int item = blockIdx.x; item < items && tid == 128 * GROUPS; item += gridDim.x) {
      const Place p(item, m, n, deep, share);
      const quad* from = b + ((long long)(p.column / COLUMNS) * deep + p.first) * (RIGHT / 16);
      for (int i = p.first; i < p.first + p.count; i++, from += RIGHT / 16) {
        const shared_t to = shared_address(stages + stage * STAGE), bar = full + 8 * stage;
        while (!bar_try(empty + 8 * stage, phase ^ 1)) {}
        bar_arrive(bar, STAGE);
        if (ALONG) tensor_load(to, a, i * DEEP, p.row, 0, bar);
        else
#pragma unroll
          for (int q = 0; q < ROWS / 32; q++) tensor_load(to + q * (128 * DEEP), a, p.row + q * 32, i * DEEP, 0, bar);
        read_bulk(to + LEFT, from, RIGHT, bar);
        next();
      }
    }
    return;
  }
  more_registers<GROUPS == 3 ? 160 : 208>(); // of the registers that all threads got at launch
  float parts[PARTS / 32], largest = 0; // all loads are in flight together
#pragma unroll
  for (int i = 0; i < PARTS / 32; i += 4) load<4>(parts + i, tail + HEAD + i * 32 + lane * 4);
#pragma unroll
  for (int i = 0; i < PARTS / 32; i++) largest = larger(largest, parts[i]);
#pragma unroll
  for (int i = 16; i > 0; i /= 2) largest = larger(largest, __shfl_xor_sync(0xffffffff, largest, i));
  const int exponent = exponent_of(largest, left_most(right));
  const float scale = power(exponent), back = power(-exponent - (int)right[0]);
  // Each warpgroup starts a little after the previous one. Otherwise all would write at the same
  // time, and none would multiply then.
  for (const long long from = clock64(); clock64() - from < warp / 4 * 1200;) {}
  const int row = lane / 4, four = lane % 4;
  int place[2]; // where a thread's values lie in a stage: per step, or per term
#pragma unroll
  for (int e = 0; e < 2; e++) {
    const int term = four * 2 + e;
    place[e] = ALONG ? (warp * 16 + row) * 128 + (term ^ row) * 16 : warp / 2 * (128 * DEEP) + term * 128 + ((warp % 2 * 4 + row / 2) ^ term) * 16 + row % 2 * 8;
  }
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    const Place p(item, m, n, deep, share);
    float sum[64], total[64] = {}, added = 0;
    if (BIAS && p.column + tid % COLUMNS < n) added = bias[p.column + tid % COLUMNS];
    bool fresh = true; // sum is empty
    for (int i = 0; i < p.count; i++) {
      const unsigned char* const here = stages + stage * STAGE;
      while (!bar_try(full + 8 * stage, phase)) {}
      unsigned high[2][4], low[2][4];
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          float x[4];
          if (ALONG) { // of one row, two terms of each half of the step
            load<4>(x, (const float*)(here + place[s] + half * (8 * 128)));
#pragma unroll
            for (int h = 0; h < 2; h++) split_pair(high[s][2 * h + half], low[s][2 * h + half], x[2 * h] * scale, x[2 * h + 1] * scale);
          } else { // of two rows, two terms of this half
#pragma unroll
            for (int e = 0; e < 2; e++) load<2>(x + 2 * e, (const float*)(here + place[e] + (s * 16 + half * 8) * 128));
#pragma unroll
            for (int r = 0; r < 2; r++) split_pair(high[s][2 * half + r], low[s][2 * half + r], x[r] * scale, x[2 + r] * scale);
          }
        }
      const matrix of = matrix_at(shared_address(here + LEFT), EIGHT);
      mma_begin();
#pragma unroll
      for (int s = 0; s < 2; s++) {
        mma_wide<COLUMNS>(fp16(), sum, low[s], of, 2 * s * EIGHT, !fresh || s > 0);
        mma_wide<COLUMNS>(fp16(), sum, high[s], of, RIGHT / 2 + 2 * s * EIGHT, true);
        mma_wide<COLUMNS>(fp16(), sum, high[s], of, 2 * s * EIGHT, true);
      }
      mma_end();
      if (lane == 0) bar_arrive(empty + 8 * stage);
      next();
      if (fresh = (i + 1) % FOLD == 0 || i + 1 == p.count) {
        settled(sum);
#pragma unroll
        for (int e = 0; e < 64; e++) total[e] += sum[e];
      }
    }
    float* const group = rows + warp / 4 * COLUMNS;
    if (BIAS) {
      meet_at(1 + warp / 4, 128); // all have read the previous bias
      group[tid % COLUMNS] = added;
      meet_at(1 + warp / 4, 128);
    }
#pragma unroll
    for (int j = 0; j < COLUMNS / 16; j++) {
      const int col = p.column + j * 16 + four * 4;
      float base[4] = {};
      if (BIAS) load<4>(base, group + j * 16 + four * 4);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int r = p.row + warp * 16 + (ALONG ? row + 8 * half : 2 * row + half);
        const float* const q = total + 8 * j + 2 * half;
        float v[4] = {q[0] * back, q[1] * back, q[4] * back, q[5] * back};
        float* const to = c + p.part * apart + (long long)r * ldc + col;
#pragma unroll
        for (int e = 0; e < 4; e += V)
          if (r < m && col + e < n) {
            float old[V] = {};
            if (add) load<V>(old, to + e);
#pragma unroll
            for (int x = 0; x < V; x++) v[e + x] = v[e + x] + old[x] + base[e + x];
            store<V>(to + e, v + e);
          }
      }
    }
  }
}
