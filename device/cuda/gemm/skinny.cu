#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_SKINNY
#include "sample/skinny.cuh"
#endif
// A product of few rows on tensor cores. The right factor is packed in the order in which warps
// multiply it (tiles.cu). So it goes from memory to registers in pieces of 16 bytes, each of which
// one warp reads once. A block forms COLUMNS columns for ROWS rows. Its warps share the columns and
// the terms of the sums, 64 bytes of terms at a time. Shared memory adds up the slices' sums,
// always in the same order; the struct Out consumes the results. Weights do not depend on earlier
// work of the stream, so reading them may begin before that has ended.
//
// In single precision, EXACT adds what rounding drops from either factor, small terms first:
// products are off by at most 2⁻²⁰. Tensor cores truncate their sums, so after every FOLD pieces of
// a long sum, what they have summed is added in single precision to the slice's sum in shared memory.
// FOLD is a multiple of STAGES; 0: never.
template <class Out> __device__ __forceinline__ void narrow_product(const Out& out, const W* a, int lda, int rows, const quad* weights, int length, int hidden, int chunks) {
  constexpr int FEW = 16 / sizeof(W); // values per 16 bytes
  constexpr int COLUMNS = 16 * TILES * BANDS, ROWS = 8 * EIGHTS, THREADS = 32 * BANDS * SLICES, APART = COLUMNS + 4;
  constexpr int UNITS = COLUMNS / Out::GATES, ALL = ROWS * UNITS, EACH = (ALL + THREADS - 1) / THREADS;
  DYNAMIC_SHARED(memory);
  float* const sums = (float*)memory; // [SLICES][ROWS][APART]
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, row = lane / 4, four = lane % 4, slice = warp % SLICES, band = warp / SLICES;
  const int block = blockIdx.x, top = blockIdx.y * ROWS;
  const int first = slice * chunks, total = chunks * SLICES; // the warp's first piece, and the pieces of all

  const quad* const from = weights + ((long long)(block * BANDS + band) * TILES * total + first) * 64 + lane;
  const W* in[EIGHTS];
#pragma unroll
  for (int n = 0; n < EIGHTS; n++) in[n] = a + (long long)min(top + n * 8 + row, rows - 1) * lda;
  begin_next();
  quad w[STAGES][TILES][2], h[STAGES][EIGHTS];
  auto fetch_weights = [&](int i, int s) {
#pragma unroll
    for (int c = 0; c < TILES; c++)
#pragma unroll
      for (int half = 0; half < 2; half++) w[s][c][half] = from[((long long)c * total + i) * 64 + half * 32];
  };
  auto fetch_rows = [&](int i, int s) {
    const int k = ((first + i) * 4 + four) * FEW;
#pragma unroll
    for (int n = 0; n < EIGHTS; n++) {
      quad q = {{0, 0, 0, 0}};
      if (ALIGNED) {
        if (k < length) q = *(const quad*)(in[n] + k);
      } else {
#pragma unroll
        for (int j = 0; j < FEW; j++)
          if (k + j < length) q.v[j * 4 / FEW] |= bits_of(in[n][k + j]) << j % (FEW / 4) * 16;
      }
      h[s][n] = q;
    }
  };

  float sum[TILES][EIGHTS][4];
#pragma unroll
  for (int i = 0; i < TILES * EIGHTS * 4; i++) (&sum[0][0][0])[i] = 0;
  auto high = [](unsigned v) { return sizeof(W) == 2 ? v : __float_as_uint(leading(__uint_as_float(v))); };
  auto low = [](unsigned v, unsigned high) { return __float_as_uint(__uint_as_float(v) - __uint_as_float(high)); };
  auto multiply = [&](int s) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      unsigned great[EIGHTS][2], small[EIGHTS][2];
#pragma unroll
      for (int n = 0; n < EIGHTS; n++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
          const unsigned v = h[s][n].v[2 * half + j];
          great[n][j] = high(v);
          if (EXACT) small[n][j] = low(v, great[n][j]);
        }
#pragma unroll
      for (int c = 0; c < TILES; c++) {
        unsigned most[4], rest[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const unsigned v = w[s][c][half].v[j];
          most[j] = high(v);
          if (EXACT) rest[j] = low(v, most[j]);
        }
        if (EXACT) {
#pragma unroll
          for (int n = 0; n < EIGHTS; n++) mma_part(W(), sum[c][n], rest, great[n][0], great[n][1]);
#pragma unroll
          for (int n = 0; n < EIGHTS; n++) mma_part(W(), sum[c][n], most, small[n][0], small[n][1]);
        }
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) mma_part(W(), sum[c][n], most, great[n][0], great[n][1]);
      }
    }
  };
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++)
    if (s < chunks) fetch_weights(s, s);
  wait_previous();
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++)
    if (s < chunks) fetch_rows(s, s);
  bool folded = false;
  auto fold = [&] {
#pragma unroll
    for (int c = 0; c < TILES; c++)
#pragma unroll
      for (int n = 0; n < EIGHTS; n++) {
        float* z = sum[c][n];
        float* at = sums + (slice * ROWS + n * 8 + 2 * four) * APART + (band * TILES + c) * 16 + 2 * row;
        float even[2] = {z[0], z[2]}, odd[2] = {z[1], z[3]};
        if (FOLD && folded) {
          float before[2];
          load<2>(before, at);
          even[0] += before[0], even[1] += before[1];
          load<2>(before, at + APART);
          odd[0] += before[0], odd[1] += before[1];
        }
        store<2>(at, even);
        store<2>(at + APART, odd);
        if (FOLD) z[0] = z[1] = z[2] = z[3] = 0;
      }
    folded = true;
  };
#pragma unroll 1
  for (int i = 0; i < chunks; i += STAGES) {
    if (FOLD && i > 0 && i % FOLD == 0) fold();
#pragma unroll
    for (int s = 0; s < STAGES; s++) {
      if (i + s >= chunks) break;
      if (i + s + STAGES - 1 < chunks) {
        fetch_weights(i + s + STAGES - 1, (s + STAGES - 1) % STAGES);
        fetch_rows(i + s + STAGES - 1, (s + STAGES - 1) % STAGES);
      }
      multiply(s);
    }
  }
  fold();
  float ahead[EACH][Out::READS > 0 ? Out::READS : 1];
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int i = tid + e * THREADS, r = top + i / UNITS, u = block * UNITS + i % UNITS;
    if (i < ALL && r < rows && u < hidden) out.read(r, u, ahead[e]);
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int i = tid + e * THREADS, r = top + i / UNITS, u = block * UNITS + i % UNITS;
    if (i >= ALL || r >= rows || u >= hidden) continue;
    float z[Out::GATES];
#pragma unroll
    for (int g = 0; g < Out::GATES; g++) {
      const int at = i / UNITS * APART + g * UNITS + i % UNITS;
      z[g] = 0;
#pragma unroll
      for (int q = 0; q < SLICES; q++) z[g] += sums[q * ROWS * APART + at];
    }
    out.write(r, u, ahead[e], z);
  }
}
#ifdef SAMPLE_SKINNY
#include "sample/skinny_entry.cuh"
#endif
