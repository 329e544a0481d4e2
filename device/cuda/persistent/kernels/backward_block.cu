#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_BACKWARD_BLOCK
#include "sample/backward_block.cuh"
#endif
// The gradient of a small layer over all steps, from the last step to the first, in one block for
// each group of sequences. The block holds all weights in registers, in 16 bits, so blocks exchange
// nothing and a step has one barrier:
//
//   cell      a thread adds the sums of its units to the gradients of their states, runs
//             the cell, and leaves the gradients of gates in shared memory
//   barrier   two buffers of gradients alternate, so no second barrier is needed: a warp
//             writes to a buffer only after all warps have passed the barrier behind its readers
//   product   a warp multiplies whole rows, of 16 units, by the gradients of all gates. So
//             its sums are complete, and are in the lanes that need them
//
// A tile of products has eight columns, one per sequence. With fewer sequences, the lanes of the
// other columns read nothing, and their sums are meaningless. They take some sums from the lanes
// beside them, so that all lanes have equally many cells.
//
// A lane's number is 4r + q. Its rows r and r + 8 are the adjacent units 2r and 2r + 1. Its columns
// are 2q and 2q + 1.

template <class Cell> __device__ __forceinline__ void back_layer(const Cell& cell, int steps, int batch, unsigned*, unsigned*) {
  constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, WARPS = (HIDDEN + 15) / 16, THREADS = WARPS * 32;
  constexpr int LINE = WARPS * 16, CHUNKS = (GATES * LINE + 31) / 32; // units with padding, and 64-byte pieces of all gates
  constexpr int ROW = CHUNKS * 64 + (CHUNKS % 2 == 0 ? 64 : 0), BUFFER = 8 * ROW + 4 * 32;
  constexpr int EACH = SAMPLES / 2, UNITS_EACH = EACH > 1 ? 2 : 1;    // values per thread, and units
  constexpr int CHAINS = 2 * CHUNKS < 4 ? 2 : 4;                      // independent sums, which hide the latency of products
  constexpr int EARLY = CHUNKS < 4 ? CHUNKS : 4;                      // pieces read ahead of other work
  static_assert(sizeof(W) == 2 && (SAMPLES == 2 || SAMPLES == 4 || SAMPLES == 8), "weights of 16 bits");

  DYNAMIC_SHARED(grads); // [2][SAMPLES][CHUNKS · 32]
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, r = lane / 4, q = lane % 4, first = warp * 16 + 2 * r;
  // Gaps between rows keep both reads of 16 bytes and writes of words free of bank conflicts.
  auto row_of = [](int n) { return n * ROW + n / 2 * 32; };

  quad w[CHUNKS][2];
#pragma unroll
  for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int j = 0; j < 2; j++) { // two columns of either unit
        unsigned v[2][2];
#pragma unroll
        for (int p = 0; p < 2; p++) {
          const int k = c * 32 + q * 8 + half * 4 + j * 2 + p, g = k / LINE, of = k % LINE;
          const W* const from = cell.weights + (long long)(min(g, GATES - 1) * HIDDEN + min(of, HIDDEN - 1)) * HIDDEN;
#pragma unroll
          for (int u = 0; u < 2; u++) v[u][p] = g < GATES && of < HIDDEN && first + u < HIDDEN ? bits_of(from[first + u]) : 0;
        }
#pragma unroll
        for (int u = 0; u < 2; u++) w[c][half].v[j * 2 + u] = v[u][0] | v[u][1] << 16;
      }
    if (c % 2 || c == CHUNKS - 1) settle(&w[c / 2 * 2][0].v[0], c % 2 ? 16 : 8);  // more in flight would take more registers
  }
  for (int i = tid; i < 2 * BUFFER / 4; i += THREADS) ((unsigned*)grads)[i] = 0;

  // Value i of a lane belongs to the first or second unit, and to one sequence.
  const int one = SAMPLES == 2 ? q / 2 : 0;
  auto unit_of = [&](int i) { return EACH == 1 ? one : i % 2; };
  auto sequence_of = [&](int i) { return SAMPLES == 8 ? 2 * q + i / 2 : SAMPLES == 4 ? q % 2 * 2 + q / 2 : q % 2; };
  const unsigned char* const reads = grads + row_of(r % SAMPLES) + q * 16;
  auto read = [&](int at) { return r < SAMPLES ? *(const quad*)(reads + at) : quad{}; };
  // share gives each lane the sums of its values, from those of two units by two columns.
  auto share = [&](const float* sum, float* z) {
    if constexpr (SAMPLES == 8) z[0] = sum[0], z[1] = sum[2], z[2] = sum[1], z[3] = sum[3];
    else if constexpr (SAMPLES == 4) {
      const float first = __shfl_xor_sync(0xffffffff, sum[1], 2), second = __shfl_xor_sync(0xffffffff, sum[3], 2);
      z[0] = q < 2 ? sum[0] : first, z[1] = q < 2 ? sum[2] : second;
    } else {
      const float second = __shfl_xor_sync(0xffffffff, sum[1], 1), third = __shfl_xor_sync(0xffffffff, sum[2], 2), fourth = __shfl_xor_sync(0xffffffff, sum[3], 3);
      z[0] = q < 2 ? q == 0 ? sum[0] : second : q == 2 ? third : fourth;
    }
  };
  for (int begin = blockIdx.x * SAMPLES; begin < batch; begin += gridDim.x * SAMPLES) {
    __syncthreads();
    float state[EACH][Cell::STATES], ready[EACH][Cell::READY], x[AHEAD][EACH][Cell::INPUTS], sum[4] = {0, 0, 0, 0};
    int at[EACH], unit[EACH];
    bool some[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      at[i] = begin + sequence_of(i), unit[i] = first + unit_of(i);
      some[i] = unit[i] < HIDDEN && at[i] < batch;
      at[i] = min(at[i], batch - 1), unit[i] = min(unit[i], HIDDEN - 1);
      cell.before(at[i], unit[i], state[i]);
      cell.input(steps - 1, batch, at[i], unit[i], x[0][i]);
      Cell::early(x[0][i], ready[i]);
#pragma unroll
      for (int k = 0; k < AHEAD; k++) cell.input(max(0, steps - 2 - k), batch, at[i], unit[i], x[k][i]);
    }
    auto add = [&] {
      float z[EACH];
      share(sum, z);
#pragma unroll
      for (int i = 0; i < EACH; i++) state[i][Cell::THROUGH] += z[i];
    };

    unsigned char* const writes = grads + row_of(sequence_of(0)) + 2 * (first + one);
    for (int latest = steps - 1; latest >= 0; latest -= AHEAD)
#pragma unroll
      for (int now = 0; now < AHEAD; now++) {
        const int t = latest - now;
        if (t < 0) break;
        const int buffer = (t & 1) * BUFFER;
        add();
        float kept[EACH][Cell::RESULTS], sent[EACH][GATES];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          Cell::rest(ready[i], state[i], sent[i], kept[i]);
#pragma unroll
          for (int g = 0; g < GATES; g++) sent[i][g] = some[i] ? sent[i][g] : 0;
        }
#pragma unroll
        for (int i = 0; i < EACH; i += UNITS_EACH)
#pragma unroll
          for (int g = 0; g < GATES; g++) {
            float both[UNITS_EACH];
#pragma unroll
            for (int u = 0; u < UNITS_EACH; u++) both[u] = sent[i + u][g];
            store<UNITS_EACH>((W*)(writes + buffer + i / 2 * ROW) + g * LINE, both);
          }
        __syncthreads();

        quad in[EARLY];
#pragma unroll
        for (int c = 0; c < EARLY; c++) in[c] = read(buffer + c * 64);
        // Nobody waits for what follows.
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          if (some[i]) cell.store(t, batch, at[i], unit[i], kept[i]);
          Cell::early(x[now][i], ready[i]);
          if (t > AHEAD) cell.input(t - 1 - AHEAD, batch, at[i], unit[i], x[now][i]);
        }
        float part[CHAINS][4];
#pragma unroll
        for (int i = 0; i < CHAINS * 4; i++) part[i / 4][i % 4] = 0;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
          const quad b = c < EARLY ? in[c < EARLY ? c : 0] : read(buffer + c * 64);
#pragma unroll
          for (int half = 0; half < 2; half++) mma_part(W(), part[(2 * c + half) % CHAINS], w[c][half].v, b.v[2 * half], b.v[2 * half + 1]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] = CHAINS == 4 ? (part[0][i] + part[1][i]) + (part[2 % CHAINS][i] + part[3 % CHAINS][i]) : part[0][i] + part[1][i];
      }
    add();
#pragma unroll
    for (int i = 0; i < EACH; i++)
      if (some[i]) cell.after(at[i], unit[i], state[i]);
  }
}
#ifdef SAMPLE_BACKWARD_BLOCK
#include "sample/backward_block_entry.cuh"
#endif
