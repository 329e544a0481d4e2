package lower

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// elementsOf returns how each matrix is stored. In bf16 and fp16, a matrix that a product
// multiplies has 16 bits. By the knob sums, so has one that holds products which only cells read.
// All else is in single precision.
func elementsOf(s *schedule.Schedule, sums int) []driver.Element {
	out := make([]driver.Element, len(s.Matrices))
	var narrow driver.Element
	switch s.Precision {
	case schedule.BF16:
		narrow = driver.Brain
	case schedule.FP16:
		narrow = driver.Half
	default:
		return out
	}
	for op := range s.Operations() {
		var multiplied []schedule.View
		if st, ok := stackOf(op); ok {
			multiplied = st.views()
		}
		switch op := op.(type) {
		case schedule.Gemm:
			multiplied = []schedule.View{op.A, op.B}
		case schedule.Pack:
			multiplied = []schedule.View{op.Dst}
		case schedule.Persistent:
			multiplied = append(multiplied, op.State[op.Cell.Through])
			multiplied = append(multiplied, op.R...)
		case schedule.PersistentBackward:
			multiplied = []schedule.View{op.Recurrent(0), op.R}
		}
		for _, v := range multiplied {
			out[v.M.ID] = narrow
		}
	}
	for i, n := range gemm.CellSums(s) {
		if gemm.Narrow(n, sums) {
			out[i] = narrow
		}
	}
	return out
}

// sides returns how many streams of s have persistent layers.
func sides(s *schedule.Schedule) int {
	on := map[int]bool{}
	for _, n := range s.Nodes {
		switch n.Op.(type) {
		case schedule.Persistent, schedule.PersistentBackward:
			on[n.Stream%launch.MaxStreams] = true
		}
	}
	return len(on)
}
