// split: pieces of from, rows × cols, or of its transpose where TRANS is set,
// gap apart: its ten leading bits of mantissa, high, and the rest, low, as low,
// high, high for a left factor of a product and high, low, high for a RIGHT one,
// with zeros in columns up to all. A transposed tile goes through shared memory,
// so that both sides are touched along rows.
__device__ __forceinline__ void pieces(float* to, int gap, const float* v) {
  float high[V], low[V];
#pragma unroll
  for (int i = 0; i < V; i++) {
    high[i] = leading(v[i]);
    low[i] = leading(v[i] - high[i]);
  }
  store<V>(to, RIGHT ? high : low);
  store<V>(to + gap, RIGHT ? low : high);
  store<V>(to + 2 * gap, high);
}

#if TRANS
extern "C" __global__ void __launch_bounds__(256) split(int rows, int cols, const float* from, int ldfrom, int all, float* to, int ldto) {
  __shared__ float tile[32][33];
  const int x = threadIdx.x, left = blockIdx.x * 32;
  for (int top = blockIdx.y * 32; top < all; top += gridDim.y * 32) {
    for (int y = threadIdx.y; y < 32; y += 8)
      tile[y][x] = top + y < rows && left + x < cols ? from[(long long)(top + y) * ldfrom + left + x] : 0;
    __syncthreads();
    for (int y = threadIdx.y; y < 32; y += 8)
      if (left + y < cols && top + x < all) pieces(to + (long long)(left + y) * ldto + top + x, all, &tile[x][y]);
    __syncthreads();
  }
}
#else
extern "C" __global__ void __launch_bounds__(256) split(int rows, int cols, const float* from, int ldfrom, int all, float* to, int ldto) {
  for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y)
    for (int col = (blockIdx.x * blockDim.x + threadIdx.x) * V; col < all; col += gridDim.x * blockDim.x * V) {
      float v[V] = {};
      if (col < cols) load<V>(v, from + (long long)row * ldfrom + col);
      pieces(to + (long long)row * ldto + col, all, v);
    }
}
#endif
