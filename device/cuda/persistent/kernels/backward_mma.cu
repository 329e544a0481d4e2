#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_BACKWARD_MMA
#include "sample/backward_mma.cuh"
#endif
// The product of a block's gradients by its weights on tensor cores. A warp has GROUPS tiles of 16
// units of the layer, for all SAMPLES sequences; see mma.cu for fragments. Parts lie as fragments
// do: four adjacent ones per lane, of two units by two sequences.
//
// Exact fp32 products are three products of halves (recurrence.cu). The gradients of a sequence are
// scaled to the range of fp16 by a power of two, by the largest of the block's gradients.
template <class Cell> struct Product {
  enum {
    THREADS = WARPS * 32, TILES = SAMPLES / 8, SIZE = sizeof(W), FEW = 16 / SIZE, SIDE = EXACT ? 2 : 4 / SIZE, // values per 16 bytes, and columns per word of a fragment
    WIDTH = CHUNKS * 64, ROW = WIDTH + (WIDTH % 128 == 0 ? 64 : 0), SCALES = EXACT ? 2 * 4 * SAMPLES : 0,
    GRADS = SAMPLES * ROW + SCALES, SCALED = EXACT, TOTAL = (CLUSTERS * CLUSTER * UNITS + 15) / 16, GROUPS = (TOTAL + WARPS - 1) / WARPS, PIECES = GROUPS * CHUNKS, SENT = 4,
    ABREAST = 4 / TILES < 1 ? 1 : 4 / TILES < GROUPS ? 4 / TILES : GROUPS, // groups that are multiplied at the same time, each with a chain of sums
  };
  quad w[RESIDENT > 0 ? RESIDENT : 1][2];
  quad* far;
  int lane, warp, row, four;

  static __device__ __forceinline__ int place(int u, int n, int line) { return ((n / 8 * (line / 2) + u / 2) * 4 + n % 8 / 2) * 4 + u % 2 * 2 + n % 2; }
  static __device__ __forceinline__ int unit_of(int v, int line) { return v / 16 % (line / 2) * 2 + v / 2 % 2; }
  static __device__ __forceinline__ int sample_of(int v, int line) { return v / (8 * line) * 8 + v / 4 % 4 * 2 + v % 2; }
  static __device__ __forceinline__ int unit(int v) { return unit_of(v, UNITS); }
  static __device__ __forceinline__ int sample(int v) { return sample_of(v, UNITS); }
  static __device__ __forceinline__ int sent(int live) { return (live + 1) / 2 * 2; }

  __device__ __forceinline__ Product(const Cell& cell, unsigned char* memory, int block, unsigned* status) : far((quad*)memory) {
    lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, four = lane % 4;
    unsigned large = 0;  // reported once, since reads wait for earlier writes
    auto fill = [&](int piece, int half) {
      const int begin = piece / (ABREAST * CHUNKS) * ABREAST, abreast = min(ABREAST + 0, GROUPS - begin), within = piece - begin * CHUNKS;
      const int unit = ((begin + within % abreast) * WARPS + warp) * 16 + 2 * row, column = (within / abreast * 4 + four) * FEW + (EXACT ? 0 : half * FEW / 2);
      W v[4][SIDE];
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int p = 0; p < SIDE; p++) {
          const int k = column + j / 2 * SIDE + p, of = block * UNITS + k % UNITS, to = unit + j % 2;
          narrow(v[j][p], 0);
          if (k < Cell::GATES * UNITS && of < Cell::hidden && to < Cell::hidden) v[j][p] = cell.weights[(long long)(k / UNITS * Cell::hidden + of) * Cell::hidden + to];
        }
      quad q;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        q.v[j] = 0;
#pragma unroll
        for (int p = 0; p < SIDE; p++) q.v[j] |= (EXACT ? half_of(widen(v[j][p]), half, &large) : bits_of(v[j][p])) << 16 * p;
      }
      return q;
    };
#pragma unroll
    for (int i = 0; i < RESIDENT; i++)
#pragma unroll
      for (int half = 0; half < 2; half++) w[i][half] = fill(i, half);
    for (int i = RESIDENT; i < PIECES; i++)
      for (int half = 0; half < 2; half++) far[((i - RESIDENT) * 2 + half) * THREADS + threadIdx.x] = fill(i, half);
    if (large) *status = large;
  }

  static __device__ __forceinline__ float scale(unsigned bits, bool back) { return power_to_halves(bits, back); }

  // set leaves a gradient in [SAMPLES][ROW]. As halves, four high ones are followed by their low
  // ones.
  static __device__ __forceinline__ void set(unsigned char* grads, int g, int v, float value) {
    unsigned char* const row = grads + sample(v) * ROW;
    const int k = g * UNITS + unit(v);
    if constexpr (EXACT) {
      unsigned ignored;
      for (int low = 0; low < 2; low++) *(unsigned short*)(row + k / 4 * 16 + low * 8 + k % 4 * 2) = half_of(value, low, &ignored);
    } else
      narrow(*(W*)(row + k * SIZE), value);
  }

  // add adds a piece of the product to two sums. Of exact products, high by high goes to the first
  // and the others go to the second.
  static __device__ __forceinline__ void add(const quad* in, const quad* weights, float (*sum)[TILES][4]) {
#pragma unroll
    for (int part = 0; part < (EXACT ? 3 : 2); part++)
#pragma unroll
      for (int n = 0; n < TILES; n++)
        if (EXACT)  // high · high, high · low, low · high
          mma_part(fp16(), sum[min(part, 1)][n], weights[part / 2].v, in[n].v[part % 2 * 2], in[n].v[part % 2 * 2 + 1]);
        else
          mma<W, false>(sum[part % 2][n], weights[part % 2].v, in[n].v[part * 2 % 4], in[n].v[part * 2 % 4 + 1]);
  }

  template <class Send> __device__ __forceinline__ void multiply(const unsigned char* grads, const unsigned* largest, Send send) const {
#pragma unroll
    for (int begin = 0; begin < GROUPS; begin += ABREAST) {
      constexpr int ALL = GROUPS;
      const int abreast = begin + ABREAST < ALL ? ABREAST + 0 : ALL - begin;
      float sum[ABREAST][2][TILES][4];
#pragma unroll
      for (int q = 0; q < ABREAST * TILES * 8; q++) (&sum[0][0][0][0])[q] = 0;
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
        quad in[TILES];
#pragma unroll
        for (int n = 0; n < TILES; n++) in[n] = *(const quad*)(grads + (n * 8 + row) * ROW + (c * 4 + four) * 16);
#pragma unroll
        for (int j = 0; j < ABREAST; j++) {
          if (j >= abreast) break;
          const int i = begin * CHUNKS + c * abreast + j;
          if (i < RESIDENT) add(in, w[i < RESIDENT ? i : 0], sum[j]);
          else {
            const quad* const from = far + (i - RESIDENT) * 2 * THREADS + threadIdx.x;
            const quad both[2] = {from[0], from[THREADS]};
            add(in, both, sum[j]);
          }
        }
      }
#pragma unroll
      for (int j = 0; j < ABREAST; j++) {
        if (j >= abreast) break;
#pragma unroll
        for (int n = 0; n < TILES; n++) {
#pragma unroll
          for (int q = 0; q < 4; q++) {
            float& z = sum[j][0][n][q];
            z += EXACT ? sum[j][1][n][q] / LOW : sum[j][1][n][q];
            if (EXACT) z *= scale(largest[n * 8 + 2 * four + q % 2], true);
          }
          send(((begin + j) * WARPS + warp) * 16 + 2 * row, n * 8 + 2 * four, sum[j][0][n]);
        }
      }
    }
  }
};
#ifdef SAMPLE_BACKWARD_MMA
#include "sample/backward_mma_entry.cuh"
#endif
