// split: pieces of from, rows × cols, gap apart: its ten leading bits of
// mantissa, high, and the rest, low, as low, high, high for a left factor of a
// product and high, low, high for a RIGHT one, with zeros up to allrows ×
// allcols.
extern "C" __global__ void __launch_bounds__(256) split(int rows, int cols, const float* from, int ldfrom, int allrows, int allcols, float* to, int ldto, long long gap) {
  for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < allrows; row += gridDim.y * blockDim.y)
    for (int col = (blockIdx.x * blockDim.x + threadIdx.x) * V; col < allcols; col += gridDim.x * blockDim.x * V) {
      float high[V] = {}, low[V];
      if (row < rows && col < cols) load<V>(high, from + (long long)row * ldfrom + col);
#pragma unroll
      for (int i = 0; i < V; i++) {
        const float v = high[i];
        high[i] = leading(v);
        low[i] = leading(v - high[i]);
      }
      float* at = to + (long long)row * ldto + col;
      store<V>(at, RIGHT ? high : low);
      store<V>(at + gap, RIGHT ? low : high);
      store<V>(at + 2 * gap, high);
    }
}
