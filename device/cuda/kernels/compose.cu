// What the kernel for few channels (scanteam.cu) composes steps with: the threads of a block that
// compute theirs, and a warp what tiles show each other.

enum {
  VALUES = LANES * N,  // of a chain: N of each lane
  ROWS = THREADS / 32, // warps that compute
  LOOKS = 12,          // at a time
};

// await waits until a phase of a barrier in shared memory has ended.
__device__ __forceinline__ void await(shared_t bar, int phase) {
  while (!bar_try(bar, phase & 1)) pause();
}

// before turns what this thread's steps make into what all steps of the tile up to
// its last one make, and returns what those before its first one do. Rows are
// for this tile alone.
__device__ __forceinline__ several before(several& p, several* rows) {
#pragma unroll
  for (int d = LANES; d < 32; d *= 2)
#pragma unroll
    for (int i = 0; i < N; i++) {
      linear up;
      up.factor = __shfl_up_sync(0xffffffff, p.of[i].factor, d), up.add = __shfl_up_sync(0xffffffff, p.of[i].add, d);
      if (threadIdx.x % 32 >= d) p.of[i] = then(up, p.of[i]);
    }
  const int row = threadIdx.x / 32;
  rows += threadIdx.x % LANES;
  if (threadIdx.x % 32 >= 32 - LANES) rows[row * LANES] = p;
  meet_at(1, THREADS);
  several earlier = identity();
#pragma unroll
  for (int i = 0; i < ROWS - 1; i++)
    if (i < row) earlier = then(earlier, rows[i * LANES]);
  p = then(earlier, p);
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
