package gemm

import (
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// SumsKnob is the knob of how products are stored that only cells read.
func SumsKnob() knob.Knob {
	return knob.Knob{Name: "sums", Doc: "products that only cells read, in bf16 and fp16: in single precision (0) or in 16 bits (1), which halves what cells read and rounds each product once more", Values: []int{0, 1}}
}

// CellSums reports of each matrix of s whether products alone write it, whole sums each, and only cells
// read it, as products. The precision must have 16 bits; else it is nil.
func CellSums(s *schedule.Schedule) []bool {
	if s.Precision != schedule.BF16 && s.Precision != schedule.FP16 {
		return nil
	}
	n := len(s.Matrices)
	written, read, other := make([]bool, n), make([]bool, n), make([]bool, n)
	for op := range s.Operations() {
		var sum schedule.View      // that op writes
		var taken [2]schedule.View // sums that it reads
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
			cells := v == taken[0] || v == taken[1]
			read[v.M.ID], other[v.M.ID] = read[v.M.ID] || cells, other[v.M.ID] || !cells
		}
	}
	any := false
	for i := range written {
		written[i] = written[i] && read[i] && !other[i]
		any = any || written[i]
	}
	if !any {
		return nil
	}
	return written
}
