#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#include "sample/tiles.cuh"
#endif
// tiles packs a right factor of length terms by GATES·hidden columns in the order of skinny.cu:
// tiles of 16 columns, pieces of 64 bytes along the sum, halves, lanes. A block's columns are the
// gates of its units, one gate after the other. Padding is zero.
extern "C" __global__ void __launch_bounds__(256) tiles(const FROM* from, long long term, long long column, quad* to, int count, int total, int length, int hidden) {
  constexpr int FEW = 16 / sizeof(W), PAIR = 4 / sizeof(W), UNITS = COLUMNS / GATES;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const int lane = i % 32, half = i / 32 % 2, chunk = i / 64 % total, tile = i / 64 / total;
    quad q;
    for (int j = 0; j < 4; j++) {
      q.v[j] = 0;
      const int at = tile * 16 + lane / 4 * 2 + j % 2, gate = at % COLUMNS / UNITS, unit = at / COLUMNS * UNITS + at % UNITS;
      for (int p = 0; p < PAIR; p++) {
        const int k = (chunk * 4 + lane % 4) * FEW + half * FEW / 2 + j / 2 * PAIR + p;
        if (k >= length || unit >= hidden) continue;
        W v;
        narrow(v, widen(from[k * term + (gate * hidden + unit) * column]));
        q.v[j] |= bits_of(v) << 16 * p;
      }
    }
    to[i] = q;
  }
}
