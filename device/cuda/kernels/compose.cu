// What the kernels for few channels compose steps with: the threads of a block that compute
// theirs (scanteam.cu, scancrew.cu), and a warp what tiles show each other.

enum {
  VALUES = LANES * N,  // of a chain: N of each lane
  ROWS = THREADS / 32, // warps that compute
  PITCH = VALUES + 1,  // of what they compose, for the banks' sake
  LOOKS = 16,          // at a time
};

// before turns what this thread's steps make into what all steps of the tile up to
// its last one make, and returns what those before its first one do. Rows are
// for this tile alone.
__device__ __forceinline__ several before(several& p, linear* rows) {
#pragma unroll
  for (int d = LANES; d < 32; d *= 2)
#pragma unroll
    for (int i = 0; i < N; i++) {
      linear up;
      up.factor = __shfl_up_sync(0xffffffff, p.of[i].factor, d), up.add = __shfl_up_sync(0xffffffff, p.of[i].add, d);
      if (threadIdx.x % 32 >= d) p.of[i] = then(up, p.of[i]);
    }
  const int row = threadIdx.x / 32, x = threadIdx.x % LANES * N;
  if (threadIdx.x % 32 >= 32 - LANES)
#pragma unroll
    for (int i = 0; i < N; i++) rows[row * PITCH + x + i] = p.of[i];
  meet_at(1, THREADS);
#pragma unroll 1
  for (int i = threadIdx.x; i / 32 * 32 < ROWS * VALUES; i += THREADS) {
    linear* const at = rows + i % ROWS * PITCH + i / ROWS;
    linear sum = {1, 0};
    if (i < ROWS * VALUES) sum = *at;
#pragma unroll
    for (int d = 1; d < ROWS; d *= 2) {
      linear up;
      up.factor = __shfl_up_sync(0xffffffff, sum.factor, d), up.add = __shfl_up_sync(0xffffffff, sum.add, d);
      if (i % ROWS >= d) sum = then(up, sum);
    }
    if (i < ROWS * VALUES) *at = sum;
  }
  meet_at(1, THREADS);
  several earlier = identity();
  if (row > 0)
#pragma unroll
    for (int i = 0; i < N; i++) earlier.of[i] = rows[(row - 1) * PITCH + x + i], p.of[i] = then(earlier.of[i], p.of[i]);
  if (LANES == 32) return earlier;
#pragma unroll
  for (int i = 0; i < N; i++) {
    linear up;
    up.factor = __shfl_up_sync(0xffffffff, p.of[i].factor, LANES), up.add = __shfl_up_sync(0xffffffff, p.of[i].add, LANES);
    if (threadIdx.x % 32 >= LANES) earlier.of[i] = up;
  }
  return earlier;
}

// gather composes one value of what so many tiles or groups show, in their order;
// it reports whether they did.
__device__ __forceinline__ bool gather(linear& all, const word* from, int count, unsigned run, unsigned* trouble) {
  all = {1, 0};
#pragma unroll 1
  for (; count > 0; count -= LOOKS, from += LOOKS * 2 * VALUES) {
    word a[LOOKS], b[LOOKS];
    unsigned missing = count < LOOKS ? (1u << count) - 1 : (1u << LOOKS) - 1;
    for (patience left; missing;) {
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if (missing >> i & 1) get_words(a[i], b[i], from + i * (2 * VALUES));
#pragma unroll
      for (int i = 0; i < LOOKS; i++)
        if ((missing >> i & 1) && of(a[i], run) && of(b[i], run)) missing &= ~(1u << i);
      if (missing && left.over(trouble)) return false;
    }
#pragma unroll
    for (int i = 0; i < LOOKS; i++)
      if (i < count) {
        linear one;
        one.factor = number(a[i]), one.add = number(b[i]);
        all = then(all, one);
      }
  }
  return true;
}
