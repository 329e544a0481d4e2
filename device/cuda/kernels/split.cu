// Factors of products split in halves. The values of a factor are scaled by a
// power of two, so that the largest is of the order of 2¹⁴, and become pieces: the
// nearest half, high, and that of the rest, low. Behind the pieces is their tail:
// the scale's exponent, behind those of a left factor what a product of both is to
// be scaled by and whether it is added to what is there, then the largest values
// of each of PARTS parts of the factor.
constexpr int PARTS = 1024, HEAD = 4;

__device__ __forceinline__ float larger(float m, float v) { return fabsf(v) > m && v - v == 0 ? fabsf(v) : m; }

// power is 2ⁿ, of what single precision has.
__device__ __forceinline__ float power(int n) { return __uint_as_float((min(n, 127) + 127) << 23); }

// largest_of is what is largest of 256 threads' values.
__device__ __forceinline__ float largest_of(float m) {
  __shared__ float of[8];
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int i = 16; i > 0; i /= 2) m = larger(m, __shfl_xor_sync(0xffffffff, m, i));
  if (tid % 32 == 0) of[tid / 32] = m;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 8; i++) m = larger(m, of[i]);
  return m;
}

// largest leaves those of each part, of which each block has one, or in the same
// way several that are alike.
extern "C" __global__ void __launch_bounds__(256) largest(int rows, int cols, const float* from, int ldfrom, float* tail) {
  float m = 0;
#pragma unroll 4
  for (int row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += gridDim.x * blockDim.y)
    for (int col = threadIdx.x * V; col < cols; col += blockDim.x * V) {
      float v[V];
      load<V>(v, from + (long long)row * ldfrom + col);
#pragma unroll
      for (int i = 0; i < V; i++) m = larger(m, v[i]);
    }
  m = largest_of(m);
  for (int i = blockIdx.x + (threadIdx.y * blockDim.x + threadIdx.x) * gridDim.x; i < PARTS; i += 256 * gridDim.x) tail[HEAD + i] = m;
}

// scale_of is a factor's scale, which its tail then has; of a left factor with
// what a product with the right one needs.
__device__ __forceinline__ float scale_of(float* tail, const float* right, int add) {
  float m[PARTS / 256];
  load<PARTS / 256>(m, tail + HEAD + (threadIdx.y * blockDim.x + threadIdx.x) * (PARTS / 256));
#pragma unroll
  for (int i = 1; i < PARTS / 256; i++) m[0] = larger(m[0], m[i]);
  const int e = 14 + 127 - (__float_as_uint(largest_of(m[0])) >> 23), exponent = min(e, 60);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
    tail[0] = exponent;
    if (!RIGHT) {
      tail[1] = power(-exponent - (int)right[0]);
      tail[2] = add;
    }
  }
  return power(exponent);
}

// split: pieces of from, rows × cols, or of its transpose where TRANS is set, gap
// apart: low, high, high for a left factor of a product and high, low, high for a
// RIGHT one, with zeros in columns up to all. A transposed tile goes through
// shared memory, so that both sides are touched along rows.
__device__ __forceinline__ void pieces(fp16* to, int gap, const float* v, float scale) {
  float high[V], low[V];
#pragma unroll
  for (int i = 0; i < V; i++) {
    fp16 half;
    narrow(half, v[i] * scale);
    high[i] = widen(half);
    low[i] = v[i] * scale - high[i];
  }
  store<V>(to, RIGHT ? high : low);
  store<V>(to + gap, RIGHT ? low : high);
  store<V>(to + 2 * gap, high);
}

#if TRANS
extern "C" __global__ void __launch_bounds__(256) split(int rows, int cols, const float* from, int ldfrom, int all, fp16* to, float* tail, const float* right, int add) {
  __shared__ float tile[32][33];
  const float scale = scale_of(tail, right, add);
  const int x = threadIdx.x, left = blockIdx.x * 32;
  for (int top = blockIdx.y * 32; top < all; top += gridDim.y * 32) {
    for (int y = threadIdx.y; y < 32; y += 8)
      tile[y][x] = top + y < rows && left + x < cols ? from[(long long)(top + y) * ldfrom + left + x] : 0;
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8)
      if (left + y < cols && top + x < all) pieces(to + (long long)(left + y) * 3 * all + top + x, all, &tile[x][y], scale);
    __syncthreads();
  }
}
#else
extern "C" __global__ void __launch_bounds__(256) split(int rows, int cols, const float* from, int ldfrom, int all, fp16* to, float* tail, const float* right, int add) {
  const float scale = scale_of(tail, right, add);
  for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y)
    for (int col = (blockIdx.x * blockDim.x + threadIdx.x) * V; col < all; col += gridDim.x * blockDim.x * V) {
      float v[V] = {};
      if (col < cols) load<V>(v, from + (long long)row * ldfrom + col);
      pieces(to + (long long)row * 3 * all + col, all, v, scale);
    }
}
#endif
