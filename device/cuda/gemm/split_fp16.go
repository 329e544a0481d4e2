package gemm

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// The terms of a stage and the columns of a block, as in split_fp16.cu.
const (
	StageTerms   = 32
	blockColumns = 128
)

// A Division says how a product is divided among blocks.
type Division struct {
	groups int // of 64 rows, per block
	share  int // terms of a part, in units of StageTerms
	Parts  int // of each sum
	items  int // tiles times parts
}

func (w Division) rows() int { return 64 * w.groups }

func (w Division) threads() int { return 128 * (w.groups + 1) }

func (w Division) stages() int { return 8 - w.groups } // 192 or 200 KB

func (w Division) shared() int {
	return 1024 + w.stages()*(4*StageTerms*(w.rows()+blockColumns)+16) + w.groups*4*blockColumns
}

// PackedBytes returns the bytes of a packed right factor of k terms and n columns, and the offset
// of its absmax cache.
func PackedBytes(n, k int) (all, absmax int64) {
	absmax = 4 * int64(ints.RoundUp(n, blockColumns)) * int64(ints.RoundUp(k, StageTerms))
	return (absmax + AbsmaxBytes + launch.Alignment - 1) / launch.Alignment * launch.Alignment, absmax
}

// EngineCopies reports whether the copy engine can read v: its rows must begin at multiples of 16
// bytes. Other matrices are copied first.
func EngineCopies(v schedule.View) bool { return v.M.Cols%4 == 0 && v.Col%4 == 0 }

// CopyBytes returns the bytes of a copy of v that the engine can read.
func CopyBytes(v schedule.View) int64 {
	return int64(ints.RoundUp(4*v.Rows*ints.RoundUp(v.Cols, 4), launch.Alignment))
}

// Divide returns the best division of op on sms multiprocessors, and the seconds that it is
// predicted to take.
func Divide(op schedule.Gemm, sms int) (best Division, least float64) {
	m, n, k := op.Sizes()
	deep := ints.CeilDiv(k, StageTerms)
	least = math.Inf(1)
	for _, g := range splitStages {
		w := Division{groups: g.groups}
		tiles := ints.CeilDiv(m, w.rows()) * ints.CeilDiv(n, blockColumns)
		for parts := 1; parts == 1 || parts <= min(256, deep/8); parts++ {
			w.share = ints.CeilDiv(deep, parts)
			w.Parts = ints.CeilDiv(deep, w.share)
			w.items = tiles * w.Parts
			t := splitStart + float64(ints.CeilDiv(w.items, sms))*(float64(w.share)*g.stage+g.item)
			if w.Parts > 1 {
				t += 8*float64(w.Parts)*float64(m)*float64(n)/rateCopy + timeLaunch
			}
			if t < least {
				best, least = w, t
			}
		}
	}
	return best, least
}

// CutTerms cuts op into shares of the sum's terms, so that its packed right factor fits into room
// bytes. With kept, the right factor is packed already and op stays whole.
func CutTerms(op schedule.Gemm, kept bool, room int64) []schedule.Gemm {
	_, n, k := op.Sizes()
	bytes, _ := PackedBytes(n, k)
	if kept || bytes <= room {
		return []schedule.Gemm{op}
	}
	share := ints.RoundUp(ints.CeilDiv(k, int((bytes+room-1)/room)), StageTerms)
	var out []schedule.Gemm
	for from := 0; from < k; from += share {
		size, p := min(share, k-from), op
		p.A, p.B = part(op.A, !op.TransA, from, size), part(op.B, op.TransB, from, size)
		p.Accumulate = op.Accumulate || from > 0
		out = append(out, p)
	}
	return out
}

// kernelScratch returns the scratch memory of op by SplitKernel: that of the largest portion. It
// may be the last one, since a shorter sum may have more parts.
func (s SplitPlan) kernelScratch(op schedule.Gemm, kept bool) (most int64) {
	copied := int64(0)
	if !EngineCopies(op.A) {
		copied = CopyBytes(op.A)
	}
	for _, op := range CutTerms(op, kept, SplitRoom) {
		m, n, k := op.Sizes()
		bytes := int64(0)
		if !kept {
			bytes, _ = PackedBytes(n, k)
		}
		if w, _ := Divide(op, s.SMs); w.Parts > 1 {
			bytes += 4 * int64(w.Parts) * int64(m) * int64(n)
		}
		most = max(most, bytes)
	}
	return copied + most
}

// A LeftFactor is a product's left factor, or a copy of it that the copy engine can read, with its
// absmax cache.
type LeftFactor struct {
	View   schedule.View
	At     driver.Pointer
	Stride int // elements from row to row
	Absmax driver.Pointer
}

// CopyLeft copies a left factor to left.At, and finds its largest value.
func CopyLeft(t *launch.Target, left LeftFactor) launch.Command {
	v := left.View
	l := launch.New(scaled(t, "copyrows", nil, "V", 1), [3]int{min(ints.CeilDiv(v.Rows, 8), AbsmaxParts), 1, 1}, [3]int{32, 8, 1},
		uint64(v.Rows), uint64(v.Cols), uint64(t.At(v)), uint64(v.M.Cols), uint64(left.At), uint64(left.Stride), uint64(left.Absmax))
	l.Early = true
	return l
}

// SplitFP16 launches the kernel that forms op and adds bias to each row, unless bias is empty.
func SplitFP16(t *launch.Target, op schedule.Gemm, w Division, left LeftFactor, right Operand, bias schedule.View) launch.Command {
	m, n, k := op.Sizes()
	c, ld, add := t.At(op.C), op.C.M.Cols, op.Accumulate
	row := c // unread
	if !bias.Empty() {
		row = t.At(bias)
	}
	if w.Parts > 1 {
		c, ld, add = right.Parts, n, false
	}
	width := 1
	if n%4 == 0 && ld%4 == 0 && c%16 == 0 {
		width = 4
	}
	box := &driver.Tensor{
		At:      left.At + driver.Pointer(4*((op.A.Row-left.View.Row)*left.Stride+op.A.Col-left.View.Col)),
		Sizes:   [3]int{op.A.Cols, op.A.Rows, 1},
		Strides: [2]int{4 * left.Stride, 4 * left.Stride * op.A.Rows},
		Box:     [3]int{StageTerms, w.rows(), 1},
		Turned:  true,
	}
	if op.TransA {
		box.Box[1] = StageTerms
	}
	l := launch.New(scaled(t, "split_fp16", []string{"pack_operand"}, "V", width, "ALONG", ints.FromBool(!op.TransA), "GROUPS", w.groups, "STAGES", w.stages(), "BIAS", ints.FromBool(!bias.Empty())),
		[3]int{min(w.items, t.Properties.SMs), 1, 1}, [3]int{w.threads(), 1, 1},
		uint64(m), uint64(n), uint64(k), uint64(w.items), uint64(w.share), uint64(left.Absmax), uint64(right.At), uint64(right.Absmax),
		uint64(c), uint64(ld), uint64(m)*uint64(n), uint64(ints.FromBool(add)), uint64(row))
	l.Launch.Shared, l.Launch.Tensors = w.shared(), []*driver.Tensor{box}
	l.Launch.Pack()
	l.Early = true
	return l
}

// An Operand has the addresses of a product's packed right factor, of its absmax cache and of the
// product's partial sums.
type Operand struct{ At, Absmax, Parts driver.Pointer }
