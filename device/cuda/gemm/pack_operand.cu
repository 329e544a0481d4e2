#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_PACK_OPERAND
#include "sample/pack_operand.cuh"
#endif
// Packs right factors into pieces, as split_fp16.cu multiplies them.
//
// DEEP terms are stored in the order in which a thread reads terms of a left factor's row from
// shared memory: 16 bytes at a time if terms lie ALONG a row. Columns are in the order in which a
// thread writes 16 bytes of them.
constexpr int DEEP = 32, COLUMNS = 128, RIGHT = 4 * COLUMNS * DEEP; // bytes of a piece

// term_at returns which of DEEP terms is the j-th of eight, in one half of one of two steps of
// sixteen terms.
__device__ __forceinline__ int term_at(int step, int half, int j) { return ALONG ? j / 2 * 8 + step * 4 + half * 2 + j % 2 : step * 16 + half * 8 + j; }

// column_at returns which of COLUMNS is the i-th that is multiplied.
__device__ __forceinline__ int column_at(int i) { return i / 16 * 16 + i % 8 / 2 * 4 + i / 8 % 2 * 2 + i % 2; }

// right_pieces packs a right factor. The value of term k and column j is at from[k·term +
// j·column]. The result is [columns / COLUMNS][terms / DEEP][high, low][step][half][COLUMNS] of
// eight terms; each block makes some of the pieces. tail has the factor's largest values. own
// receives its exponent, and may be the same tail.
__device__ __forceinline__ void right_pieces(int terms, int columns, const float* from, long long term, long long column, quad* to, const float* tail, float* own) {
  const float scale = scale_of(tail, own, MOST_EXPONENT);
  const int deep = (terms + DEEP - 1) / DEEP, at = threadIdx.x % COLUMNS, j = blockIdx.y * COLUMNS + column_at(at);
  if (blockIdx.y * COLUMNS >= columns) return;
  for (int piece = blockIdx.x * 2 + threadIdx.x / COLUMNS; piece < deep; piece += gridDim.x * 2) {
    quad* const here = to + ((long long)blockIdx.y * deep + piece) * (RIGHT / 16) + at;
    float v[DEEP];
    const float* const first = from + piece * DEEP * term + j * column;
    if (term == 1 && column % 4 == 0 && (unsigned long long)from % 16 == 0 && j < columns && (piece + 1) * DEEP <= terms) {
#pragma unroll
      for (int k = 0; k < DEEP; k += 4) load<4>(v + k, first + k);
    } else {
#pragma unroll
      for (int k = 0; k < DEEP; k++) v[k] = j < columns && piece * DEEP + k < terms ? first[k * term] : 0;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      quad high, low;
#pragma unroll
      for (int e = 0; e < 4; e++) split_pair(high.v[e], low.v[e], v[term_at(i / 2, i % 2, 2 * e)] * scale, v[term_at(i / 2, i % 2, 2 * e + 1)] * scale);
      here[i * COLUMNS] = high, here[(4 + i) * COLUMNS] = low;
    }
  }
}
#ifdef SAMPLE_PACK_OPERAND
#include "sample/pack_operand_entry.cuh"
#endif
