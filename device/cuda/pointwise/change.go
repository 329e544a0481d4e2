package pointwise

import (
	"fmt"

	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// changeBlocks is the most blocks of a Change, each of which ends with two atomic operations per warp.
const changeBlocks = 256

// Change keeps the largest difference of two matrices. Numbers that are not negative are in the order of their
// bits, and NaN is above all of them, so blocks may meet in any order.
func Change(t *launch.Target, op schedule.Change) launch.Command {
	n := op.A.Rows * op.A.Cols
	a, b := t.Element(op.A), t.Element(op.B)
	var all launch.Batch
	all.Add("change", n, op.A.Cols, t.At(op.A), op.A.M.Cols, t.At(op.B), op.B.M.Cols, t.At(op.Out))
	all.Grid, all.Block = [3]int{min(ints.CeilDiv(n, 4*launch.BlockSize), changeBlocks), 1, 1}, [3]int{launch.BlockSize, 1, 1}
	return t.Batch("largest_change", fmt.Sprintf("int, int, const %v*, int, const %v*, int, unsigned*", a, b), fmt.Sprintf(`__device__ __forceinline__ void change(int n, int cols, const %v* a, int lda, const %v* b, int ldb, unsigned* out) {
  unsigned apart = 0, size = 0;
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const long long row = i / cols, col = i %% cols;
    const float v = widen(a[row * lda + col]), d = v - widen(b[row * ldb + col]);
    apart = max(apart, __float_as_uint(d) & 0x7fffffff);
    size = max(size, __float_as_uint(v) & 0x7fffffff);
  }
#pragma unroll
  for (int i = 16; i > 0; i /= 2) {
    apart = max(apart, __float_as_uint(__shfl_xor_sync(0xffffffff, __uint_as_float(apart), i)));
    size = max(size, __float_as_uint(__shfl_xor_sync(0xffffffff, __uint_as_float(size), i)));
  }
  if (threadIdx.x %% 32 == 0) {
    atomicMax(out, apart);
    atomicMax(out + 1, size);
  }
}
`, a, b), all)
}
