package pointwise

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
)

// Carry copies n words of 32 bits from host memory that the GPU can reach, or with out, to it. It
// writes the GPU's time in nanoseconds to clock: after copying the first words in, or before
// copying out.
func Carry(t *launch.Target, n int, from, to, clock driver.Pointer, out bool) launch.Command {
	var all launch.Batch
	all.Add("carry", n, from, to, clock, ints.FromBool(out))
	all.Grid, all.Block = [3]int{ints.CeilDiv(n, launch.BlockSize), 1, 1}, [3]int{launch.BlockSize, 1, 1}
	return t.Batch("copy_timed", "int, const float*, float*, unsigned long long*, int", `__device__ __forceinline__ unsigned long long nanoseconds() {
#ifdef __CUDA_ARCH__
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now) :: "memory");
  return now;
#else
  return clock64();
#endif
}
__device__ __forceinline__ void carry(int n, const float* from, float* to, unsigned long long* clock, int out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (out && i == 0) *clock = nanoseconds();
  if (i < n) to[i] = from[i];
  __syncthreads();
  if (!out && i == 0) *clock = nanoseconds();
}
`, all)
}
