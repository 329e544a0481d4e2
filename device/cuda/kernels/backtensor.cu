// The product of a block's gradients with its weights on tensor cores: a warp has
// GROUPS times 16 units of the layer, for all SAMPLES sequences; see tensor.cu
// for fragments. Parts lie as fragments do: four of a lane side by side, two
// units of two sequences each.
//
// Exact products of single precision are three: factors are cut into their ten
// leading bits of mantissa and the rest, gradients once by the cell, weights
// once for all sequences.
template <class Cell> struct Product {
  enum {
    THREADS = WARPS * 32, TILES = SAMPLES / 8, SIZE = sizeof(W), FEW = 16 / SIZE, PAIR = 4 / SIZE, // values of 16 bytes and of a word
    WIDTH = CHUNKS * 64, ROW = WIDTH + (WIDTH % 128 == 0 ? 64 : 0), BEHIND = SAMPLES * ROW,
    GRADS = (EXACT ? 2 : 1) * BEHIND, TOTAL = (CLUSTERS * CLUSTER * UNITS + 15) / 16, GROUPS = (TOTAL + WARPS - 1) / WARPS, PIECES = GROUPS * CHUNKS, SENT = 4,
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

  __device__ __forceinline__ Product(const Cell& cell, unsigned char* memory, int block) : far((quad*)memory) {
    lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, four = lane % 4;
    auto fill = [&](int piece, int half) {
      const int unit = (piece / CHUNKS * WARPS + warp) * 16 + 2 * row, column = (piece % CHUNKS * 4 + four) * FEW + half * FEW / 2;
      quad q;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        q.v[j] = 0;
#pragma unroll
        for (int p = 0; p < PAIR; p++) {
          const int k = column + j / 2 * PAIR + p, of = block * UNITS + k % UNITS, to = unit + j % 2;
          if (k < Cell::GATES * UNITS && of < Cell::hidden && to < Cell::hidden) q.v[j] |= bits_of(cell.weights[(long long)(k / UNITS * Cell::hidden + of) * Cell::hidden + to]) << 16 * p;
        }
      }
      return q;
    };
#pragma unroll
    for (int i = 0; i < RESIDENT; i++)
#pragma unroll
      for (int half = 0; half < 2; half++) w[i][half] = fill(i, half);
    for (int i = RESIDENT; i < PIECES; i++)
      for (int half = 0; half < 2; half++) far[((i - RESIDENT) * 2 + half) * THREADS + threadIdx.x] = fill(i, half);
  }

  static __device__ __forceinline__ unsigned leading(unsigned v) { return (v + 0x1000) & 0xffffe000; }
  static __device__ __forceinline__ unsigned rest(unsigned v) { return __float_as_uint(__uint_as_float(v) - __uint_as_float(leading(v))); }

  // set leaves a gradient in [1 or 2][SAMPLES][ROW].
  static __device__ __forceinline__ void set(unsigned char* grads, int g, int v, float value) {
    unsigned char* const at = grads + sample(v) * ROW + (g * UNITS + unit(v)) * SIZE;
    if constexpr (EXACT) {
      *(unsigned*)at = leading(__float_as_uint(value));
      *(unsigned*)(at + BEHIND) = rest(__float_as_uint(value));
    } else
      narrow(*(W*)at, value);
  }

  // add adds a piece of the product to two sums: of exact products that of the
  // leading bits to the first and the others to the second.
  __device__ __forceinline__ void add(const unsigned char* grads, int chunk, const quad* weights, float (*sum)[TILES][4]) const {
    quad high[2], low[2];
#pragma unroll
    for (int q = 0; q < 8; q++) {
      const unsigned v = EXACT ? fresh(weights[q / 4].v[q % 4]) : weights[q / 4].v[q % 4];  // or both parts of all weights would take registers
      high[q / 4].v[q % 4] = EXACT ? leading(v) : v;
      if (EXACT) low[q / 4].v[q % 4] = rest(v);
    }
#pragma unroll
    for (int n = 0; n < TILES; n++) {
      const quad* const at = (const quad*)(grads + (n * 8 + row) * ROW + (chunk * 4 + four) * 16);
      const quad in = *at;
      if (EXACT) {
        const quad rest = *(const quad*)((const unsigned char*)at + BEHIND);
#pragma unroll
        for (int half = 0; half < 2; half++) {
          mma_part(W(), sum[0][n], high[half].v, in.v[2 * half], in.v[2 * half + 1]);
          mma_part(W(), sum[1][n], low[half].v, in.v[2 * half], in.v[2 * half + 1]);
          mma_part(W(), sum[1][n], high[half].v, rest.v[2 * half], rest.v[2 * half + 1]);
        }
      } else
#pragma unroll
        for (int half = 0; half < 2; half++) mma<W, false>(sum[half][n], high[half].v, in.v[2 * half], in.v[2 * half + 1]);
    }
  }

  template <class Send> __device__ __forceinline__ void multiply(const unsigned char* grads, Send send) const {
#pragma unroll
    for (int j = 0; j < GROUPS; j++) {
      float sum[2][TILES][4];
#pragma unroll
      for (int q = 0; q < TILES * 8; q++) (&sum[0][0][0])[q] = 0;
#pragma unroll
      for (int c = 0; c < CHUNKS; c++)
        if (j * CHUNKS + c < RESIDENT) add(grads, c, w[j * CHUNKS + c < RESIDENT ? j * CHUNKS + c : 0], sum);
#pragma unroll 2
      for (int c = max(0, min(CHUNKS, RESIDENT - j * CHUNKS)); c < CHUNKS; c++) {
        const quad* const from = far + (j * CHUNKS + c - RESIDENT) * 2 * THREADS + threadIdx.x;
        const quad both[2] = {from[0], from[THREADS]};
        add(grads, c, both, sum);
      }
#pragma unroll
      for (int n = 0; n < TILES; n++) {
#pragma unroll
        for (int q = 0; q < 4; q++) sum[0][n][q] += sum[1][n][q];
        send((j * WARPS + warp) * 16 + 2 * row, n * 8 + 2 * four, sum[0][n]);
      }
    }
  }
};
