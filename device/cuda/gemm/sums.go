package gemm

import (
	"slices"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// SumsKnob is the knob of how products are stored that only cells read.
func SumsKnob() knob.Knob {
	return knob.Knob{Name: "sums", Doc: "products that only cells read, in bf16 and fp16: in 16 bits (1), which halves what cells read and rounds each product once more, or in single precision (2); 0: in 16 bits where a step has 2¹⁹ of them", Values: []int{0, 1, 2}}
}

// manySums is how many values a cell must read at once for its time to depend on their bytes.
const manySums = 1 << 19

// CellSums returns, per matrix of s, the most values of it that a cell reads at once. It is 0
// unless only products write the matrix, never by accumulation, and only cells read it, as
// products. The precision must have 16 bits.
func CellSums(s *schedule.Schedule) []int {
	many := make([]int, len(s.Matrices))
	if s.Precision != schedule.BF16 && s.Precision != schedule.FP16 {
		return many
	}
	written, other := make([]bool, len(many)), make([]bool, len(many))
	for op := range s.Operations() {
		var sum schedule.View      // the product that op writes
		var taken [2]schedule.View // products that op reads
		switch op := op.(type) {
		case schedule.Gemm:
			if !op.Accumulate {
				sum, written[op.C.M.ID] = op.C, true
			}
		case schedule.Cell:
			taken = [2]schedule.View{op.X, op.R}
		}
		for _, v := range op.Writes() {
			other[v.M.ID] = other[v.M.ID] || v != sum
		}
		for _, v := range op.Reads() {
			if slices.Contains(taken[:], v) {
				many[v.M.ID] = max(many[v.M.ID], v.Rows*v.Cols)
			} else {
				other[v.M.ID] = true
			}
		}
	}
	for i := range many {
		if !written[i] || other[i] {
			many[i] = 0
		}
	}
	return many
}

// Narrow reports whether the knob setting stores a matrix in 16 bits if a cell reads so many sums
// of it at once.
func Narrow(sums, setting int) bool {
	return sums >= manySums && setting == 0 || sums > 0 && setting == 1
}
