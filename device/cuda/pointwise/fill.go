package pointwise

import (
	"fmt"

	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Fill zeroes matrices, or copies matrices in 32-bit words, in one launch.
func Fill(t *launch.Target, ops []schedule.Op) launch.Command {
	var all launch.Batch
	name, body := "zero", "0"
	for _, op := range ops {
		op := op.(schedule.Map)
		n, from := op.Out.Rows*op.Out.Cols, t.At(op.Out) // unread
		if op.Op == cell.Copy {
			name, body, from = "copy", "from[i]", t.At(op.A)
			n = n * t.Element(op.Out).Bytes() / 4
		}
		all.Add("fill", n, from, t.At(op.Out))
		all.Grid[0] = max(all.Grid[0], ints.CeilDiv(n, 4*launch.BlockSize))
	}
	all.Grid[1], all.Grid[2], all.Block = 1, len(ops), [3]int{launch.BlockSize, 1, 1}
	return t.Batch(name, "int, const float*, float*", fmt.Sprintf(`__device__ __forceinline__ void fill(int n, const float* from, float* to) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = %s;
}
`, body), all)
}
