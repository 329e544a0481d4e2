#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_BLOCK
#include "sample/block.cuh"
#endif
// A small layer over all steps, in one block for each group of sequences. The block holds all
// weights in registers, in 16 bits, so blocks exchange nothing and a step has one barrier. A warp
// multiplies whole rows: all gates of eight units, two gates in each tile. So a lane's sums are
// complete and belong to one unit. Two buffers of h alternate, so no second barrier is needed: a
// warp writes to a buffer only after all warps have passed the barrier behind its readers.
//
// A tile of products has eight columns, one per sequence. With four sequences, the lanes of the
// other columns read nothing, and take sums from the lanes beside them.
//
// A lane's number is 4r + q. Its rows r and r + 8 are two gates of unit r. Its columns are 2q and
// 2q + 1.

template <class Cell> __device__ __forceinline__ void block_layer(const Cell& cell, int steps, int batch, unsigned*, unsigned* status) {
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, WARPS = (HIDDEN + 7) / 8, THREADS = WARPS * 32;
  constexpr int TILES = (GATES + 1) / 2, CHUNKS = (HIDDEN + 31) / 32;  // tiles of rows; 64-byte pieces of h
  constexpr int ROW = CHUNKS * 64 + (CHUNKS % 2 == 0 ? 64 : 0), BUFFER = 8 * ROW + 4 * 32;
  constexpr int EACH = SAMPLES / 4, INPUTS = GATES + Cell::FREE, AHEAD = 3;
  static_assert(sizeof(W) == 2 && (SAMPLES == 4 || SAMPLES == 8), "weights of 16 bits");

  DYNAMIC_SHARED(memory); // [2][SAMPLES][CHUNKS · 32] of h, and inputs in flight
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, r = lane / 4, q = lane % 4, unit = warp * 8 + r, some = min(unit, HIDDEN - 1);
  // Gaps between rows keep both reads of 16 bytes and writes free of bank conflicts.
  auto row_of = [](int n) { return n * ROW + n / 2 * 32; };

  quad w[TILES][CHUNKS][2];
#pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
    for (int g = 0; g < 2 * TILES; g++) {
      const int column = c * 32 + q * 8;
      const W* const from = cell.weights(min(g, GATES - 1));
      quad v = {};  // eight columns
      if (ORDERED && HIDDEN % 8 == 0) {
        if (g < GATES && unit < HIDDEN && column < HIDDEN) v = *(const quad*)(from + (long long)unit * HIDDEN + column);
      } else
#pragma unroll
        for (int k = 0; k < 8; k++)
          if (g < GATES && unit < HIDDEN && column + k < HIDDEN) v.v[k / 2] |= bits_of(from[ORDERED ? (long long)unit * HIDDEN + column + k : (long long)(column + k) * HIDDEN + unit]) << k % 2 * 16;
#pragma unroll
      for (int j = 0; j < 4; j++) w[g / 2][c][j / 2].v[j % 2 * 2 + g % 2] = v.v[j];
    }
#pragma unroll
    for (int i = 0; i < TILES; i++) settle(&w[i][c][0].v[0], 8);  // more in flight would take more registers
  }
  for (int i = tid; i < 2 * BUFFER / 4; i += THREADS) ((unsigned*)memory)[i] = 0;

  typedef typename Cell::Input Input;
  auto gate_of = [](int i) { return i < GATES ? i : Cell::free(i - GATES); };
  auto sequence_of = [&](int i) { return SAMPLES == 8 ? 2 * q + i : q % 2 * 2 + q / 2; };
  Stream<INPUTS * EACH, THREADS> stream(memory + 2 * BUFFER);
  float bias[GATES], constants[Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
#pragma unroll
  for (int g = 0; g < GATES; g++) bias[g] = cell.bias(g, some);
  cell.constants(some, constants);
  const long long stride = cell.stride(batch);
  const unsigned char* const reads = memory + row_of(r % SAMPLES) + q * 16;
  auto fetch = [&](int at) { return r < SAMPLES ? *(const quad*)(reads + at) : quad{}; };
  Clock<CLOCKS> clock;
  for (int begin = blockIdx.x * SAMPLES; begin < batch; begin += gridDim.x * SAMPLES) {
    __syncthreads();
    float state[EACH][Cell::STATES];
    const Input* from[EACH][INPUTS];
    const float* flag[EACH];
    char* result[EACH][Cell::RESULTS];
    unsigned char* writes[EACH];
    bool mine[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int n = min(begin + sequence_of(e), batch - 1);
      mine[e] = unit < HIDDEN && begin + sequence_of(e) < batch;
      writes[e] = memory + row_of(sequence_of(e)) + 2 * unit;
      cell.before(n, some, state[e]);
      flag[e] = cell.kept(1, batch, n);
      if (unit < HIDDEN) put_factor(*(W*)writes[e], state[e][Cell::THROUGH]);
#pragma unroll
      for (int i = 0; i < INPUTS; i++) from[e][i] = cell.input(gate_of(i), n, some);
#pragma unroll
      for (int i = 0; i < Cell::RESULTS; i++) result[e][i] = cell.place(i, batch, n, some);
    }
    auto read = [&](int t) {  // after the last step, that step again
#pragma unroll
      for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int i = 0; i < INPUTS; i++) {
          if (Cell::flag(gate_of(i))) {
            stream.read(e * INPUTS + i, t, flag[e]);
            if (t + 1 < steps) flag[e] += cell.kept_stride(batch);
            continue;
          }
          if (i >= GATES || Cell::owns(i)) stream.read(e * INPUTS + i, t, from[e][i]);
          if (t + 1 < steps) from[e][i] += stride;
        }
      stream.end();
    };
#pragma unroll
    for (int t = 0; t < AHEAD; t++) read(t);
    float saved[EACH][Cell::SAVED > 0 ? Cell::SAVED : 1];
    auto put = [&] {  // the results of a step
#pragma unroll
      for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int i = 0; i < Cell::RESULTS; i++) {
          if (mine[e]) Cell::put(i, result[e][i], Cell::result(i, state[e], saved[e]));
          result[e][i] += cell.apart(i, batch);
        }
    };

    for (int t = 0; t < steps; t++) {
      const int now = (t & 1) * BUFFER, next = BUFFER - now;
      float x[EACH][INPUTS], sum[TILES][2][4];
#pragma unroll
      for (int i = 0; i < TILES * 8; i++) sum[i / 8][i / 4 % 2][i % 4] = 0;
      __syncthreads();
      clock.mark(WAIT);
#pragma unroll
      for (int c = 0; c < CHUNKS; c++) {
        const quad b = fetch(now + c * 64);
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
          for (int i = 0; i < TILES; i++) mma_part(W(), sum[i][half], w[i][c][half].v, b.v[2 * half], b.v[2 * half + 1]);
      }
      // While the products are formed.
      if (t > 0) {
        put();
        read(t - 1 + AHEAD);
      }
      stream.wait();
#pragma unroll
      for (int e = 0; e < EACH; e++)
#pragma unroll
        for (int i = 0; i < INPUTS; i++) x[e][i] = (i >= GATES || Cell::owns(i) ? stream.get(e * INPUTS + i, t) : 0) + (i < GATES ? bias[i] : -0.f);
      clock.mark(PRODUCT, sum[0][0][0], sum[TILES - 1][1][3]);
      float gate[EACH][2 * TILES];
#pragma unroll
      for (int g = 0; g < GATES; g++) {
        const float* const z = sum[g / 2][0] + g % 2 * 2;
        const float* const rest = sum[g / 2][1] + g % 2 * 2;
        float both[2] = {z[0] + rest[0], z[1] + rest[1]};
        if (SAMPLES == 4) {
          const float other = __shfl_xor_sync(0xffffffff, both[1], 2);
          if (q >= 2) both[0] = other;
        }
#pragma unroll
        for (int e = 0; e < EACH; e++) gate[e][g] = both[e];
      }
      clock.mark(SUM, gate[0][0], gate[EACH - 1][GATES - 1]);
#pragma unroll
      for (int e = 0; e < EACH; e++) {
#pragma unroll
        for (int g = 0; g < GATES; g++) gate[e][g] = Cell::early(g, gate[e][g] + x[e][g]);
        Cell::rest(gate[e], x[e] + GATES, constants, state[e], saved[e]);
        if (unit < HIDDEN) put_factor(*(W*)(writes[e] + next), state[e][Cell::THROUGH]);
      }
      clock.mark(CELL, state[0][Cell::THROUGH]);
    }
    put();
    wait_async<0>();  // otherwise reads after the last step may arrive after inputs of the next pass
  }
  if (CLOCKS && blockIdx.x == 0 && (tid == 0 || tid == THREADS - 32)) clock.tell(cell, batch, tid == 0 ? 0 : PHASES, steps);
}
#ifdef SAMPLE_BLOCK
#include "sample/block_entry.cuh"
#endif
