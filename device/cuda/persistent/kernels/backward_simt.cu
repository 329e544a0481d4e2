#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_BACKWARD_SIMT
#include "sample/backward_simt.cuh"
#endif
// The product of a block's gradients by its weights, without tensor cores. A thread has ACROSS
// units of the layer and every LANES-th piece of the block's columns, which are its gates'
// gradients. The sums over LANES threads are halved from lane to lane. A lane has its units in an
// order of its own, so that it always keeps the first half and ends with adjacent units.
template <class Cell> struct Product {
  enum {
    THREADS = WARPS * 32, COLUMNS = Cell::GATES * UNITS, STEP = SAMPLES >= 4 ? 1 : 4 / SAMPLES, PER = STEP * OUT,
    ROUNDS = ((CLUSTERS * CLUSTER * UNITS + OUT - 1) / OUT * LANES + THREADS - 1) / THREADS, PIECES = ROUNDS * CHUNKS,
    FEW = OUT / LANES, SENT = FEW * SAMPLES, SCALED = 0, SCALES = 0, GRADS = CHUNKS * LANES * STEP * SAMPLES * 4,
  };
  float w[RESIDENT > 0 ? RESIDENT : 1][PER];
  float* far;
  int first, s;

  // The values of a line of units, and the place of one of them.
  static __device__ __forceinline__ int place(int u, int n, int) { return u * SAMPLES + n; }
  static __device__ __forceinline__ int unit_of(int v, int) { return v / SAMPLES; }
  static __device__ __forceinline__ int sample_of(int v, int) { return v % SAMPLES; }
  static __device__ __forceinline__ int unit(int v) { return v / SAMPLES; }
  static __device__ __forceinline__ int sample(int v) { return v % SAMPLES; }
  static __device__ __forceinline__ int sent(int) { return SAMPLES; }

  __device__ __forceinline__ Product(const Cell& cell, unsigned char* memory, int block, unsigned*) : far((float*)memory) {
    s = threadIdx.x % LANES, first = threadIdx.x / LANES * OUT;
    auto fill = [&](int i, float* to) {
#pragma unroll
      for (int k = 0; k < STEP; k++)
#pragma unroll
        for (int j = 0; j < OUT; j++) {
          const int column = (i % CHUNKS * LANES + s) * STEP + k, of = block * UNITS + column % UNITS;
          const int unit = i / CHUNKS * (THREADS / LANES * OUT) + first + (j ^ (s * FEW));
          to[k * OUT + j] = column < COLUMNS && of < Cell::hidden && unit < Cell::hidden ? widen(cell.weights[(long long)(column / UNITS * Cell::hidden + of) * Cell::hidden + unit]) : 0;
        }
    };
#pragma unroll
    for (int i = 0; i < RESIDENT; i++) fill(i, w[i]);
    for (int i = RESIDENT; i < PIECES; i++) {
      float some[PER];
      fill(i, some);
#pragma unroll
      for (int q = 0; q < PER; q++) far[(((i - RESIDENT) * (PER / 4) + q / 4) * THREADS + threadIdx.x) * 4 + q % 4] = some[q];
    }
  }

  static __device__ __forceinline__ float scale(unsigned, bool) { return 1; }
  static __device__ __forceinline__ void set(unsigned char* grads, int g, int v, float value) { ((float*)grads)[g * UNITS * SAMPLES + v] = value; }

  template <class Send> __device__ __forceinline__ void multiply(const unsigned char* grads, const unsigned*, Send send) const {
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
      float sum[OUT][SAMPLES];
#pragma unroll
      for (int q = 0; q < OUT * SAMPLES; q++) sum[q / SAMPLES][q % SAMPLES] = 0;
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
        const int i = r * CHUNKS + c;
        float in[STEP * SAMPLES], out[PER];
#pragma unroll
        for (int q = 0; q < STEP * SAMPLES; q += 4) load<4>(in + q, (const float*)grads + (c * LANES + s) * STEP * SAMPLES + q);
        if (i >= RESIDENT)
#pragma unroll
          for (int q = 0; q < PER / 4; q++) load<4>(out + 4 * q, far + (((i - RESIDENT) * (PER / 4) + q) * THREADS + threadIdx.x) * 4);
        const float* row = i < RESIDENT ? w[i < RESIDENT ? i : 0] : out;
#pragma unroll
        for (int k = 0; k < STEP; k++)
#pragma unroll
          for (int j = 0; j < OUT; j++)
#pragma unroll
            for (int n = 0; n < SAMPLES; n++) sum[j][n] = fmaf(row[k * OUT + j], in[k * SAMPLES + n], sum[j][n]);
      }
      halve<OUT, LANES / 2>(sum);
      send(r * (THREADS / LANES * OUT) + first + s * FEW, 0, sum[0]);
    }
  }

  template <int KEEP, int M> static __device__ __forceinline__ void halve(float (*sum)[SAMPLES]) {
    if constexpr (M > 0) {
#pragma unroll
      for (int j = 0; j < KEEP / 2; j++)
#pragma unroll
        for (int n = 0; n < SAMPLES; n++) sum[j][n] += __shfl_xor_sync(0xffffffff, sum[j + KEEP / 2][n], M);
      halve<KEEP / 2, M / 2>(sum);
    }
  }
};
#ifdef SAMPLE_BACKWARD_SIMT
#include "sample/backward_simt_entry.cuh"
#endif
