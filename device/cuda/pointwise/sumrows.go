package pointwise

import (
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// sumWidth returns how many adjacent columns a thread sums: four if that occupies every lane of a
// warp, else one.
func sumWidth(v schedule.View) int {
	if v.Cols >= 4*32 && (v.Cols|v.M.Cols|v.Col)%4 == 0 {
		return 4
	}
	return 1
}

// SumBlocks returns the number of blocks across the columns of v, at 32 threads each.
func SumBlocks(v schedule.View) int { return ints.CeilDiv(v.Cols, 32*sumWidth(v)) }

// sumsTogether is how many blocks, by sumWidth, should run on a multiprocessor at the same time.
var sumsTogether = map[int]int{1: 7, 4: 4}

// SumParts returns the number of parts that the rows of op are divided into: enough for all
// multiprocessors, but with at least 128 rows each.
func SumParts(op schedule.SumRows, p driver.Properties) int {
	return max(1, min(sumsTogether[sumWidth(op.A)]*p.SMs/SumBlocks(op.A), op.A.Rows/128))
}

// SumRows adds up rows, if it pays in parts, whose sums go through scratch memory. Unless copy is
// 0, it also writes the sums there.
func SumRows(t *launch.Target, op schedule.SumRows, scratch, copy driver.Pointer) []launch.Command {
	if SumParts(op, t.Properties) == 1 {
		return []launch.Command{sum{
			from: t.At(op.A), fromElement: t.Element(op.A), fromStride: op.A.M.Cols,
			to: t.At(op.Out), toElement: t.Element(op.Out), toStride: op.Out.M.Cols,
			width: sumWidth(op.A), rows: op.A.Rows, cols: op.A.Cols, parts: 1, accumulate: op.Accumulate, copy: copy,
		}.command(t)}
	}
	return []launch.Command{PartSums(t, op, scratch, 0, ""), SumOfParts(t, op, scratch, copy)}
}

// PartSums writes the sums of parts of the rows to memory; SumOfParts adds those up. If scales, the
// kernel text for absmax caches, is not empty, it also writes the largest values to absmax.
func PartSums(t *launch.Target, op schedule.SumRows, to, absmax driver.Pointer, scales string) launch.Command {
	return sum{
		from: t.At(op.A), fromElement: t.Element(op.A), fromStride: op.A.M.Cols,
		to: to, toElement: driver.Single, toStride: op.A.Cols,
		width: sumWidth(op.A), rows: op.A.Rows, cols: op.A.Cols, parts: SumParts(op, t.Properties), absmax: absmax, scales: scales,
	}.command(t)
}

// SumOfParts adds up the sums that PartSums wrote. Unless copy is 0, it also writes the result
// there.
func SumOfParts(t *launch.Target, op schedule.SumRows, from, copy driver.Pointer) launch.Command {
	return sum{
		from: from, fromElement: driver.Single, fromStride: op.A.Cols,
		to: t.At(op.Out), toElement: t.Element(op.Out), toStride: op.Out.M.Cols,
		width: sumWidth(op.A), rows: SumParts(op, t.Properties), cols: op.A.Cols, parts: 1, accumulate: op.Accumulate, copy: copy,
	}.command(t)
}

// A sum is one launch of sumrows.cu.
type sum struct {
	from, to                 driver.Pointer
	fromElement, toElement   driver.Element
	fromStride, toStride     int
	width, rows, cols, parts int
	accumulate               bool
	copy                     driver.Pointer // where the sums are also written; 0: nowhere
	absmax                   driver.Pointer // for the largest values, if scales is not empty
	scales                   string
}

func (s sum) command(t *launch.Target) launch.Command {
	largest := ints.FromBool(s.scales != "")
	if largest == 0 {
		s.absmax = s.to // unread
	}
	if s.copy == 0 {
		s.copy = s.to
	}
	text := t.Source(func() codegen.Source {
		defines := codegen.Defines("V", s.width, "FROM", s.fromElement, "TO", s.toElement, "LARGEST", largest, "RESIDENT", sumsTogether[s.width])
		return codegen.Source{Name: "sumrows", Text: defines + s.scales + file("sumrows").Text}
	}, "sumrows ", s.width, " ", s.fromElement, " ", s.toElement, " ", largest)
	l := launch.New(text, [3]int{ints.CeilDiv(s.cols, 32*s.width), s.parts, 1}, [3]int{32, 8, 1},
		uint64(s.rows), uint64(s.cols), uint64(ints.CeilDiv(s.rows, s.parts)), uint64(s.from), uint64(s.fromStride),
		uint64(s.to), uint64(s.toStride), uint64(ints.FromBool(s.accumulate)), uint64(s.copy), uint64(s.absmax))
	l.Early = t.Properties.Capability >= 90
	return l
}
