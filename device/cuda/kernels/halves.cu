// A product of single precision on tensor cores, whose left factor is split in halves as it
// is multiplied (scales.cu, split.go). A block forms ROWS × COLUMNS values at a time, DEEP terms
// after DEEP terms: one thread has the copy engine bring them, STAGES ahead; each four warps of
// the others take 64 rows of the left factor from shared memory into registers, split them, and
// multiply what the right factor's pieces are. Tensor cores cut off what they add, so sums of
// FOLD times as many terms are added to the total in single precision. Where there are few
// such parts of a product, its sums are in parts as well, which add_parts adds; copy_rows makes what
// the engine can copy.
//
// The order of terms within DEEP of them is the one in which a thread takes those of a row from
// shared memory, 16 bytes at a time where they lie ALONG a row; so are columns those that a
// thread writes 16 bytes of.
constexpr int DEEP = 32, FOLD = 4, ROWS = 64 * GROUPS, COLUMNS = 128, BLOCK = 128 * GROUPS + 128;
constexpr int LEFT = 4 * ROWS * DEEP, RIGHT = 4 * COLUMNS * DEEP, STAGE = LEFT + RIGHT; // bytes
constexpr int EIGHT = 16 * COLUMNS;                                                   // of eight terms of all columns

// term_at is which of DEEP terms is the j-th of eight: those of a step of sixteen, of which
// there are two, and of one half of it.
__device__ __forceinline__ int term_at(int step, int half, int j) { return ALONG ? j / 2 * 8 + step * 4 + half * 2 + j % 2 : step * 16 + half * 8 + j; }

// column_at is which of COLUMNS is the i-th that is multiplied.
__device__ __forceinline__ int column_at(int i) { return i / 16 * 16 + i % 8 / 2 * 4 + i / 8 % 2 * 2 + i % 2; }

// right_pieces makes those of a right factor, the value of term k and column j at
// from[k·term + j·column]: [columns / COLUMNS][terms / DEEP][high, low][step][half][COLUMNS] of eight
// terms, of some of them in each block.
__device__ __forceinline__ void right_pieces(int terms, int columns, const float* from, long long term, long long column, quad* to, float* tail) {
  const float scale = scale_of(tail);
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

#if KERNEL == 0
extern "C" __global__ void __launch_bounds__(256) pieces(int terms, int columns, const float* from, long long term, long long column, quad* to, float* tail) {
  begin_next();
  wait_previous();
  right_pieces(terms, columns, from, term, column, to, tail);
}
#elif KERNEL == 1
// add_parts: to = the sum of parts of a product, in order; with add, added to what is there.
extern "C" __global__ void __launch_bounds__(256) add_parts(int rows, int cols, int parts, const float* from, float* to, int ldto, int add) {
  const long long all = (long long)rows * cols;
  begin_next();
  wait_previous();
  for (long long i = (blockIdx.x * 256ll + threadIdx.x) * V; i < all; i += gridDim.x * 256ll * V) {
    float* const at = to + i / cols * ldto + i % cols;
    float sum[V] = {}, v[V];
    if (add) load<V>(sum, at);
#pragma unroll 4
    for (int p = 0; p < parts; p++) {
      load<V>(v, from + p * all + i);
#pragma unroll
      for (int e = 0; e < V; e++) sum[e] += v[e];
    }
    store<V>(at, sum);
  }
}
#elif KERNEL == 3
// copy_rows copies a matrix to rows of another length, and looks for its largest value.
extern "C" __global__ void __launch_bounds__(256) copy_rows(int rows, int cols, const float* from, int ldfrom, float* to, int ldto, float* tail) {
  float m = 0;
  begin_next();
  wait_previous();
#pragma unroll 4
  for (int row = blockIdx.x * 8 + threadIdx.y; row < rows; row += gridDim.x * 8)
    for (int col = threadIdx.x; col < cols; col += 32) {
      const float v = from[(long long)row * ldfrom + col];
      to[(long long)row * ldto + col] = v;
      m = larger(m, v);
    }
  tell_largest(tail, blockIdx.x, gridDim.x, m);
}
#elif KERNEL == 2
// Where a part of the product is: its first row, column and DEEP terms, and how many of these.
struct Place {
  int part, row, column, first, count;
  __device__ Place(int item, int m, int n, int deep, int share) {
    const int across = (n + COLUMNS - 1) / COLUMNS, tiles = across * ((m + ROWS - 1) / ROWS), tile = item % tiles;
    part = item / tiles, row = tile / across * ROWS, column = tile % across * COLUMNS, first = part * share, count = min(share, deep - first);
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK) halves(int m, int n, int k, int items, int share, const float* tail, const quad* b, const float* right, float* c, int ldc, long long apart, int add, const float* bias, const __grid_constant__ tensor_map a) {
  DYNAMIC_SHARED(memory);
  unsigned char* const stages = memory + (1024 - shared_address(memory) % 1024) % 1024; // as the engine turns rows of 128 bytes
  const shared_t full = shared_address(stages + STAGES * STAGE), empty = full + 8 * STAGES;
  float* const rows = (float*)(stages + STAGES * (STAGE + 16)); // that are added, of each four warps, [GROUPS][COLUMNS]
  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32, deep = (k + DEEP - 1) / DEEP;
  begin_next();
  if (tid == 0) {
    for (int i = 0; i < STAGES; i++) bar_init(full + 8 * i, 1), bar_init(empty + 8 * i, 4 * GROUPS);
    bar_publish();
  }
  __syncthreads();
  wait_previous();
  int stage = 0, phase = 0;
  auto next = [&] {
    if (++stage == STAGES) stage = 0, phase ^= 1;
  };
  if (warp >= 4 * GROUPS) {
    fewer_registers<24>();
    for (int item = blockIdx.x; item < items && tid == 128 * GROUPS; item += gridDim.x) {
      const Place p(item, m, n, deep, share);
      const quad* from = b + ((long long)(p.column / COLUMNS) * deep + p.first) * (RIGHT / 16);
      for (int i = p.first; i < p.first + p.count; i++, from += RIGHT / 16) {
        const shared_t to = shared_address(stages + stage * STAGE), bar = full + 8 * stage;
        while (!bar_try(empty + 8 * stage, phase ^ 1)) {}
        bar_arrive(bar, STAGE);
        if (ALONG) tensor_load(to, a, i * DEEP, p.row, 0, bar);
        else
#pragma unroll
          for (int q = 0; q < ROWS / 32; q++) tensor_load(to + q * (128 * DEEP), a, p.row + q * 32, i * DEEP, 0, bar);
        read_bulk(to + LEFT, from, RIGHT, bar);
        next();
      }
    }
    return;
  }
  more_registers<GROUPS == 3 ? 160 : 208>(); // of those that all threads have at first
  float parts[PARTS / 32], largest = 0; // all of them are on the way at a time
#pragma unroll
  for (int i = 0; i < PARTS / 32; i += 4) load<4>(parts + i, tail + HEAD + i * 32 + lane * 4);
#pragma unroll
  for (int i = 0; i < PARTS / 32; i++) largest = larger(largest, parts[i]);
#pragma unroll
  for (int i = 16; i > 0; i /= 2) largest = larger(largest, __shfl_xor_sync(0xffffffff, largest, i));
  const int exponent = exponent_of(largest);
  const float scale = power(exponent), back = power(-exponent - (int)right[0]);
  // Each four warps begin a little behind the others, so that they do not all write, and none
  // multiplies, at the same time.
  for (const long long from = clock64(); clock64() - from < warp / 4 * 1200;) {}
  const int row = lane / 4, four = lane % 4;
  int place[2]; // of a thread's values in a stage: of either step, or of either of two terms
#pragma unroll
  for (int e = 0; e < 2; e++) {
    const int term = four * 2 + e;
    place[e] = ALONG ? (warp * 16 + row) * 128 + (term ^ row) * 16 : warp / 2 * (128 * DEEP) + term * 128 + ((warp % 2 * 4 + row / 2) ^ term) * 16 + row % 2 * 8;
  }
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    const Place p(item, m, n, deep, share);
    float sum[64], total[64] = {}, added = 0;
    if (BIAS && p.column + tid % COLUMNS < n) added = bias[p.column + tid % COLUMNS];
    bool fresh = true; // nothing is in sum
    for (int i = 0; i < p.count; i++) {
      const unsigned char* const here = stages + stage * STAGE;
      while (!bar_try(full + 8 * stage, phase)) {}
      unsigned high[2][4], low[2][4];
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          float x[4];
          if (ALONG) { // of one row, the first two terms of either half of the step
            load<4>(x, (const float*)(here + place[s] + half * (8 * 128)));
#pragma unroll
            for (int h = 0; h < 2; h++) split_pair(high[s][2 * h + half], low[s][2 * h + half], x[2 * h] * scale, x[2 * h + 1] * scale);
          } else { // of two rows, two terms of that half
#pragma unroll
            for (int e = 0; e < 2; e++) load<2>(x + 2 * e, (const float*)(here + place[e] + (s * 16 + half * 8) * 128));
#pragma unroll
            for (int r = 0; r < 2; r++) split_pair(high[s][2 * half + r], low[s][2 * half + r], x[r] * scale, x[2 + r] * scale);
          }
        }
      const matrix of = matrix_at(shared_address(here + LEFT), EIGHT);
      mma_begin();
#pragma unroll
      for (int s = 0; s < 2; s++) {
        mma_wide<COLUMNS>(fp16(), sum, low[s], of, 2 * s * EIGHT, !fresh || s > 0);
        mma_wide<COLUMNS>(fp16(), sum, high[s], of, RIGHT / 2 + 2 * s * EIGHT, true);
        mma_wide<COLUMNS>(fp16(), sum, high[s], of, 2 * s * EIGHT, true);
      }
      mma_end();
      if (lane == 0) bar_arrive(empty + 8 * stage);
      next();
      if (fresh = (i + 1) % FOLD == 0 || i + 1 == p.count) {
        settled(sum);
#pragma unroll
        for (int e = 0; e < 64; e++) total[e] += sum[e];
      }
    }
    float* const group = rows + warp / 4 * COLUMNS;
    if (BIAS) {
      meet_at(1 + warp / 4, 128); // all have read what was added before
      group[tid % COLUMNS] = added;
      meet_at(1 + warp / 4, 128);
    }
#pragma unroll
    for (int j = 0; j < COLUMNS / 16; j++) {
      const int col = p.column + j * 16 + four * 4;
      float base[4] = {};
      if (BIAS) load<4>(base, group + j * 16 + four * 4);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int r = p.row + warp * 16 + (ALONG ? row + 8 * half : 2 * row + half);
        const float* const q = total + 8 * j + 2 * half;
        float v[4] = {q[0] * back, q[1] * back, q[4] * back, q[5] * back};
        float* const to = c + p.part * apart + (long long)r * ldc + col;
#pragma unroll
        for (int e = 0; e < 4; e += V)
          if (r < m && col + e < n) {
            float old[V] = {};
            if (add) load<V>(old, to + e);
#pragma unroll
            for (int x = 0; x < V; x++) v[e + x] = v[e + x] + old[x] + base[e + x];
            store<V>(to + e, v + e);
          }
      }
    }
  }
}
#endif
