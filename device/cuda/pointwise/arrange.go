package pointwise

import (
	"fmt"

	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// An Arrangement copies a matrix, or its transpose, to another matrix.
type Arrangement struct {
	From, To schedule.View // To has the columns of its matrix
	Turned   bool          // transpose
}

// Arrange makes all copies in one launch. All sources have one element type, and so do all results.
func Arrange(t *launch.Target, all []Arrangement) launch.Command {
	var calls launch.Batch
	from, to := t.Element(all[0].From), t.Element(all[0].To)
	for _, a := range all {
		cols, row, column := a.From.Cols, a.From.M.Cols, 1
		n := a.From.Rows * a.From.Cols
		if a.Turned {
			cols, row, column = a.From.Rows, 1, a.From.M.Cols
		}
		calls.Add("arrange", n, cols, t.At(a.From), row, column, t.At(a.To))
		calls.Grid[0] = max(calls.Grid[0], ints.CeilDiv(n, 4*launch.BlockSize))
	}
	calls.Grid[1], calls.Grid[2], calls.Block = 1, len(calls.Calls), [3]int{launch.BlockSize, 1, 1}
	return t.Batch("arrange", fmt.Sprintf("int, int, const %v*, int, int, %v*", from, to), fmt.Sprintf(`__device__ __forceinline__ void arrange(int n, int cols, const %v* from, int row, int column, %v* to) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) narrow(to[i], widen(from[(long long)(i / cols) * row + (long long)(i %% cols) * column]));
}
`, from, to), calls)
}
