// sumrows: out[part][j] = the sum of rows part·share … of from[·][j]; with
// accumulate set the sum is added to what is there. Each block sums 32 columns
// with 8 rows of threads, always in the same order. A factor of products has a tail
// (scales.cu), in which its LARGEST values are left as well.
extern "C" __global__ void __launch_bounds__(256) sumrows(int rows, int cols, int share, const FROM* from, int ldfrom, TO* out, int ldout, int accumulate, float* tail) {
  __shared__ float part[8][33];
  const int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 32 + x;
  begin_next();
  wait_previous();
  const int first = blockIdx.y * share, last = min(rows, first + share);
  float sum[4] = {0, 0, 0, 0}, most = 0;
  auto take = [&](int i, int k) {
    const float v = widen(from[(long long)i * ldfrom + col]);
    sum[k] += v;
#if LARGEST
    most = larger(most, v);
#endif
  };
  if (col < cols) {
    int i = first + y;
    for (; i + 24 < last; i += 32)
#pragma unroll
      for (int k = 0; k < 4; k++) take(i + 8 * k, k);
    for (; i < last; i += 8) take(i, 0);
  }
  part[y][x] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  __syncthreads();
  if (y == 0 && col < cols) {
    float all = 0;
    for (int k = 0; k < 8; k++) all += part[k][x];
    TO* to = out + (long long)blockIdx.y * ldout + col;
    narrow(*to, accumulate ? widen(*to) + all : all);
  }
#if LARGEST
  tell_largest(tail, blockIdx.y * gridDim.x + blockIdx.x, gridDim.x * gridDim.y, most);
#endif
}
