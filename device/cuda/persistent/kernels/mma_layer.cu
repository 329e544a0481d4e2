#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_MMA_LAYER
#include "sample/mma_layer.cuh"
#endif
// What mma.cu, mma_poll.cu and mma_bulk.cu share: weights, products, sums and cells of a layer.
// Each of these files adds its exchange, by which the blocks of a group receive the state h of a
// step, and the loop over steps.
//
// A block has UNITS units. A warp multiplies BAND of them, all their gates, with one of SPLIT
// slices of the columns, 64 bytes at a time, for SAMPLES sequences. Shared memory adds up the
// slices. Then a thread runs the cell of one unit for EACH sequences.
constexpr int GATES = Cell::GATES, HIDDEN = Cell::hidden, STATES = Cell::STATES, INPUTS = GATES + Cell::FREE;
constexpr int TILES = tiles_of(GATES), EIGHTS = SAMPLES / 8, CHAINS = chains(TILES * EIGHTS);
constexpr int WARPS = UNITS / BAND * SPLIT, THREADS = WARPS * 32;
constexpr int APART = ACROSS * SPLIT;                           // from one sequence of a thread to its next
constexpr int EACH = SAMPLES >= APART ? SAMPLES / APART : 1;    // sequences per thread
constexpr int PART = TILES * SAMPLES * GAP;                     // values of a warp's sums
constexpr int FAR = (CHUNKS - RESIDENT) * TILES * 2 * THREADS;  // quads of weights in shared memory
constexpr int WORDS = (HIDDEN + SIDE - 1) / SIDE * SIDE / PAIR; // of a sequence's h
constexpr int WIDTH = CHUNKS * SPLIT * 64;                      // bytes of HIDDEN columns, rounded up
constexpr int ROW = WIDTH + (WIDTH % 128 == 0 ? 64 : 0);        // bytes of a sequence's h in shared memory, so that neighbours are in different banks
constexpr int BUFFER = SAMPLES * ROW;

// A Thread says where this thread is in its group.
struct Thread {
  int tid = threadIdx.x, lane = tid % 32, warp = tid / 32, row = lane / 4, four = lane % 4, slice = warp % SPLIT;
  int rank = blockIdx.x % CLUSTER, group = blockIdx.x / CLUSTER;
};

typedef float Sums[CHAINS][EIGHTS][TILES][4]; // a lane's part of a warp's sums

// The weights of a warp: RESIDENT of CHUNKS pieces are in registers, the others in far.
struct Weights {
  quad near[RESIDENT > 0 ? RESIDENT : 1][TILES][2];
  quad* const far; // [CHUNKS - RESIDENT][TILES][2][THREADS]
  __device__ __forceinline__ Weights(const Cell& cell, const Thread& my, quad* far, unsigned* status) : far(far) {
    take_weights<CHUNKS, RESIDENT, SPLIT, THREADS>(cell, my.rank * UNITS + my.warp / SPLIT * BAND, my.slice, near, far, status);
  }
  // multiply_piece multiplies piece i of the columns with in.
  __device__ __forceinline__ void multiply_piece(Sums& sum, int i, const quad* in, int tid) const {
    if (i < RESIDENT) {
      multiply<CHAINS>(sum, 2 * i, near[i], in);
    } else {
      quad some[TILES][2];
#pragma unroll
      for (int q = 0; q < TILES * 2; q++) some[q / 2][q % 2] = far[((i - RESIDENT) * TILES * 2 + q) * THREADS + tid];
      multiply<CHAINS>(sum, 2 * i, some, in);
    }
  }
  // multiply_all multiplies all pieces by what is in shared memory at h + behind.
  // It spells out places instead of moving one pointer, so that compilers find them before the
  // loop over steps.
  __device__ __forceinline__ void multiply_all(Sums& sum, const unsigned char* h, int behind, const Thread& my) const {
    auto piece = [&](int i, int chain, const quad (*weights)[2]) {
      quad in[EIGHTS];
#pragma unroll
      for (int n = 0; n < EIGHTS; n++) in[n] = *(const quad*)(h + behind + (n * 8 + my.row) * ROW + ((i * SPLIT + my.slice) * 4 + my.four) * 16);
      multiply<CHAINS>(sum, chain, weights, in);
    };
#pragma unroll
    for (int i = 0; i < RESIDENT; i++) piece(i, 2 * i, near[i]);
#pragma unroll 2
    for (int i = RESIDENT; i < CHUNKS; i++) {
      quad some[TILES][2];
#pragma unroll
      for (int q = 0; q < TILES * 2; q++) some[q / 2][q % 2] = far[((i - RESIDENT) * TILES * 2 + q) * THREADS + my.tid];
      piece(i, 0, some);
    }
  }
};

__device__ __forceinline__ void clear(Sums& sum) {
#pragma unroll
  for (int i = 0; i < CHAINS * EIGHTS * TILES * 4; i++) (&sum[0][0][0][0])[i] = 0;
}

// The values of a unit's cell that are the same at all steps.
struct Fixed {
  float bias[GATES], constants[Cell::CONSTANTS > 0 ? Cell::CONSTANTS : 1];
  __device__ __forceinline__ Fixed(const Cell& cell, int u) {
#pragma unroll
    for (int g = 0; g < GATES; g++) bias[g] = cell.bias(g, u);
    cell.constants(u, constants);
  }
  // run adds the sums of all slices to the inputs x, for one of a warp's units and sequence n,
  // and runs the cell.
  // mma_bulk.cu repeats these lines, since a call took 5 % more instructions there.
  __device__ __forceinline__ void run(const float* x, const float* sums, int unit, int n, float* state, float* saved) const {
    float gate[GATES];
#pragma unroll
    for (int g = 0; g < GATES; g++) {
      const float z = sum_of<SPLIT, SAMPLES, PART>(x[g] + bias[g], sums, g, unit, n);
      gate[g] = Cell::early(g, z);
    }
    Cell::rest(gate, x + GATES, constants, state, saved);
  }
};
#ifdef SAMPLE_MMA_LAYER
#include "sample/mma_layer_entry.cuh"
#endif
