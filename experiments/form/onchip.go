package form

import (
	"slices"

	"rnnbench/experiments/study"
	"rnnbench/record"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/grid"
)

// chipBytes is what the registers and shared memory of an H200 hold.
const chipBytes = 132 * (256 + 227) << 10

// OnChip leaves out the vendor's form that is compiled for each layer where its weights do not fit
// on chip. On an H200, it took most of a minute to compile with 256 MiB of weights. From 75 MiB on
// it was slower than every other form.
func OnChip(points []record.Point, specs []grid.Spec) []study.Part {
	fits := func(p record.Point) bool {
		size := 4
		if p.Precision == "fp16" || p.Precision == "bf16" {
			size = 2
		}
		return size*cell.Lookup(p.Cell).Recurrent*p.Hidden*p.Hidden <= chipBytes
	}
	small := study.Part{Specs: specs}
	large := study.Part{Specs: slices.DeleteFunc(slices.Clone(specs), func(s grid.Spec) bool { return s.Name == "cudnn" && s.Knobs["algorithm"] == dynamic })}
	for _, p := range points {
		if fits(p) {
			small.Points = append(small.Points, p)
		} else {
			large.Points = append(large.Points, p)
		}
	}
	return slices.DeleteFunc([]study.Part{small, large}, func(p study.Part) bool { return p.Points == nil })
}
