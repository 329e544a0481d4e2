#ifndef CONFIGURED // opened by itself, with a sample of what is put ahead of it
#define SAMPLE_FRAGMENTS
#include "sample/fragments.cuh"
#endif
// What kernels of layers on tensor cores share: see mma.cu. In a fragment of a product, a lane has
// columns that are not neighbours. But any order of columns gives the same sums, so a lane uses 16
// bytes side by side: one load for the fragments of two products.
//
// With EXACT, weights and h are fp32 numbers as two halves (recurrence.cu): of two adjacent
// columns, first a word of the high halves, then one of the low halves. Three products of halves
// form one of fp32. Products with a low half are summed apart.
constexpr int SIZE = sizeof(W), FEW = 16 / SIZE, PAIR = 4 / SIZE; // values per 16 bytes and per word
constexpr int SIDE = EXACT ? 2 : PAIR;                            // columns in a word of a fragment
constexpr int GAP = 20;                                           // from a sequence's sums to the next: 16 rows and a gap
constexpr int ACROSS = 32 / BAND;                                 // sequences that a warp's lanes have side by side

// The rows of a warp are its BAND units, gate after gate, in tiles of 16.
__device__ constexpr int tiles_of(int gates) { return (gates * BAND + 15) / 16; }

// chains returns the number of independent sums per value, which hide the latency of products.
__device__ constexpr int chains(int values) { return EXACT ? values == 1 ? 3 : 2 : values >= 3 ? 1 : 4 / values; }

// fragment returns a lane's part of a 64-byte piece of the columns, in one of two halves, of two
// units. column is the lane's first column.
template <class Weight> __device__ __forceinline__ quad fragment(Weight weight, int unit, int column, int half, unsigned* status) {
  float v[4][SIDE];  // reads after a write to status would wait for it
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int p = 0; p < SIDE; p++) v[j][p] = weight(column + (EXACT ? 0 : half * FEW / 2) + j / 2 * SIDE + p, unit + j % 2);
  quad q;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    q.v[j] = 0;
#pragma unroll
    for (int p = 0; p < SIDE; p++) {
      W w;
      put_factor(w, v[j][p]);
      q.v[j] |= (EXACT ? half_of(v[j][p], half, status) : bits_of(w)) << 16 * p;
    }
  }
  return q;
}

// weights_of returns the weights of gate g, where pack_fragments.cu left them if weights are
// ORDERED.
template <class Cell> __device__ __forceinline__ quad weights_of(const Cell& cell, int g, int unit, int column, int half, unsigned* status) {
  constexpr int HIDDEN = Cell::hidden, WIDE = (HIDDEN * SIZE + 63) / 64;
  const W* const all = cell.weights(g);
  if (!ORDERED) return fragment([&](int k, int u) { return k < HIDDEN && u < HIDDEN ? widen(all[(long long)k * HIDDEN + u]) : 0.f; }, unit, column, half, status);
  const int lane = unit % 16 / 2 * 4 + column / FEW % 4, piece = column / (4 * FEW);
  if (piece < WIDE && unit / 16 * 16 < HIDDEN) return ((const quad*)all)[((unit / 16 * WIDE + piece) * 2 + half) * 32 + lane];
  return quad{};
}

// Beneath has the weights of TAKES gates for the h of the layer beneath.
template <class Cell, int TAKES> struct Beneath {
  enum { hidden = Cell::hidden, GATES = TAKES };
  const W* at;
  __device__ const W* weights(int g) const { return at + (long long)g * ((hidden + 15) / 16 * ((hidden * SIZE + 63) / 64) * 64 * FEW); }
};

// tile_of returns a lane's part of a tile of its warp, whose units begin with first: the two
// adjacent rows of the lane.
template <class Cell> __device__ __forceinline__ quad tile_of(const Cell& cell, int tile, int first, int column, int half, unsigned* status) {
  const int row = tile * 16 + threadIdx.x % 32 / 4 * 2;
  return row < Cell::GATES * BAND ? weights_of(cell, row / BAND, first + row % BAND, column, half, status) : quad{};
}

// take_weights loads a warp's weights, of its units from first on and of its slice of the columns:
// the first RESIDENT of CHUNKS pieces into registers, the others into far,
// [piece][tile][half][thread].
template <int CHUNKS, int RESIDENT, int SPLIT, int THREADS, class Cell, int TILES>
__device__ __forceinline__ void take_weights(const Cell& cell, int first, int slice, quad (*w)[TILES][2], quad* far, unsigned* status) {
  const int tid = threadIdx.x, four = tid % 32 % 4;
  auto fill = [&](int i, int g, int half) {
    return tile_of(cell, g, first, ((i * SPLIT + slice) * 4 + four) * FEW, half, status);
  };
#pragma unroll
  for (int i = 0; i < RESIDENT; i++)
#pragma unroll
    for (int g = 0; g < TILES; g++)
#pragma unroll
      for (int half = 0; half < 2; half++) w[i][g][half] = fill(i, g, half);
  for (int i = RESIDENT; i < CHUNKS; i++)
    for (int g = 0; g < TILES; g++)
      for (int half = 0; half < 2; half++) far[(((i - RESIDENT) * TILES + g) * 2 + half) * THREADS + tid] = fill(i, g, half);
}

// multiply adds the products of a piece of the columns, for EIGHTS tiles of eight sequences, with
// the weights of all of a warp's tiles.
template <int CHAINS, int EIGHTS, int TILES>
__device__ __forceinline__ void multiply(float (*sum)[EIGHTS][TILES][4], int chain, const quad (*weights)[2], const quad* in) {
#pragma unroll
  for (int part = 0; part < (EXACT ? 3 : 2); part++)
#pragma unroll
    for (int g = 0; g < TILES; g++)
#pragma unroll
      for (int n = 0; n < EIGHTS; n++)
        if (EXACT)  // high · high, high · low, low · high
          mma_part(fp16(), sum[min(part, CHAINS - 1)][n][g], weights[g][part / 2].v, in[n].v[part % 2], in[n].v[part % 2 + 2]);
        else
          mma_part(W(), sum[(chain + part) % CHAINS][n][g], weights[g][part % 2].v, in[n].v[part * 2 % 4], in[n].v[part * 2 % 4 + 1]);
}

// A Stream reads inputs ahead to shared memory: N of each of THREADS threads, each thread its own.
// In registers, the inputs of all steps ahead would have to arrive before a thread could use any.
template <int N, int THREADS> struct Stream {
  enum { DEPTH = 4 };
  float* const ring;  // [DEPTH][N][THREADS]
  __device__ __forceinline__ Stream(void* memory) : ring((float*)memory + threadIdx.x) {}
  // read starts to read input i of step t, at most DEPTH − 1 steps ahead. end says that these are
  // all of the step's inputs.
  template <class Input> __device__ __forceinline__ void read(int i, int t, const Input* from) { copy_async<sizeof(Input)>(ring + (t % DEPTH * N + i) * THREADS, from); }
  __device__ __forceinline__ void end() { end_async(); }
  // wait waits for the inputs of the earliest step in flight, which get returns.
  __device__ __forceinline__ void wait() { wait_async<DEPTH - 2>(); }
  __device__ __forceinline__ float get(int i, int t) const { return ring[(t % DEPTH * N + i) * THREADS]; }
};

// put_sums leaves a warp's sums of EIGHTS tiles of eight sequences in shared memory:
// [tile][sequence][GAP].
template <int CHAINS, int SAMPLES, int EIGHTS, int TILES> __device__ __forceinline__ void put_sums(float (*sum)[EIGHTS][TILES][4], float* to, int lane) {
#pragma unroll
  for (int n = 0; n < EIGHTS; n++)
#pragma unroll
    for (int g = 0; g < TILES; g++) {
      float* z = sum[0][n][g];
#pragma unroll
      for (int i = 0; i < 4 && CHAINS > 1; i++) {
        float more = sum[CHAINS - 1][n][g][i];
#pragma unroll
        for (int c = 1; c < CHAINS - 1; c++) more += sum[c][n][g][i];
        z[i] += EXACT ? more / LOW : more;
      }
      float* at = to + (g * SAMPLES + n * 8 + lane % 4 * 2) * GAP + lane / 4 * 2;
      const float even_sample[2] = {z[0], z[2]}, odd_sample[2] = {z[1], z[3]};
      store<2>(at, even_sample);
      store<2>(at + GAP, odd_sample);
    }
}

// sum_of adds the sums of SLICES warps, of gate g of a warp's unit, to z.
template <int SLICES, int SAMPLES, int PART> __device__ __forceinline__ float sum_of(float z, const float* sums, int g, int unit, int n) {
  const int row = g * BAND + unit;
#pragma unroll
  for (int q = 0; q < SLICES; q++) z += sums[q * PART + (row / 16 * SAMPLES + n) * GAP + row % 16];
  return z;
}

// any_beyond reports whether a first h of these sequences, from begin on, exceeds ±1, among those
// that this thread reads, many at a time.
template <class Cell> __device__ __forceinline__ bool any_beyond(const Cell& cell, int begin, int sequences) {
  constexpr int MANY = 16;
  bool any = false;
#pragma unroll 1
  for (int first = threadIdx.x; first < Cell::hidden * sequences; first += MANY * blockDim.x) {
    float v[MANY];
#pragma unroll
    for (int m = 0; m < MANY; m++) {
      const int i = min(first + m * (int)blockDim.x, Cell::hidden * sequences - 1);
      float state[Cell::STATES];
      cell.before(begin + i / Cell::hidden, i % Cell::hidden, state);
      v[m] = state[Cell::THROUGH];
    }
#pragma unroll
    for (int m = 0; m < MANY; m++) any |= !(v[m] >= -1 && v[m] <= 1);
  }
  return any;
}

// put_state writes h of unit k into a row of h.
__device__ __forceinline__ void put_state(unsigned char* row, int k, float v, unsigned* status) {
  if (EXACT)
    for (int low = 0; low < 2; low++) *(unsigned short*)(row + k / 2 * 8 + low * 4 + k % 2 * 2) = half_of(v, low, status);
  else
    put_factor(*(W*)(row + k * SIZE), v);
}

// word_of returns the word of a row of h at the place of unit k, from its h and that of unit k ^ 1.
// In 16 bits both are in the even unit's word.
__device__ __forceinline__ unsigned word_of(float fresh, float other, bool odd, unsigned* status) {
  if (EXACT) return half_of(odd ? other : fresh, odd, status) | half_of(odd ? fresh : other, odd, status) << 16;
  W low, high;
  put_factor(low, fresh);
  put_factor(high, other);
  return PAIR == 1 ? bits_of(low) : bits_of(low) | bits_of(high) << 16;
}
#ifdef SAMPLE_FRAGMENTS
#include "sample/fragments_entry.cuh"
#endif
