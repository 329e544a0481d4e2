package schedule

import (
	"fmt"

	"rnnbench/rnn/cell"
)

// A Stack is layers on top of each other, run over all steps of time by one call of the vendor's
// library. Libraries take plain arrays: views are of whole rows, and those of parameters of whole
// matrices. A device may keep these where its library wants them. There are B sequences side by
// side. Row t·B+b of X and Y belongs to step t of sequence b, and row l·B+b of states to sequence b
// in layer l.
//
// A layer that runs both ways counts as two wherever something is per layer: number 2·l is layer l
// from the first step, and 2·l+1 from the last. Y has 2·hidden columns, those from the first step
// first, and layers above the first read as many. Rows of X and Y are in the order of steps.
//
// Where sequences have lengths of their own, the longest is the first. A step has rows of the
// sequences that have it, which are the first ones, or of all sequences: see Padded. States after
// the last step are those after each sequence's own last step, where a layer from the last step
// begins.
type Stack struct {
	Cell      *cell.Cell
	Algorithm int  // number of the library's algorithm
	Both      bool // each layer runs both ways
	Steps     int
	Lengths   []int  // of the sequences, not increasing, the first Steps; nil: all have all steps
	X         View   // inputs, steps·B × input
	Y         View   // outputs of the last layer, steps·B × hidden, or × 2·hidden
	First     []View // per state, before the first step, layers·B × hidden
	W, R      []View // per layer: gates·hidden × its input's width, recurrent gates·hidden × hidden
	BX, BR    []View // per layer, one row
	Kept      View   // packed, of any shape: what the gradient needs, in the library's form; empty: no gradient follows
}

// Vendor runs a Stack.
type Vendor struct {
	Stack
	Last []View // per state, after the last step, layers·B × hidden
}

// VendorBackward is the gradient of a Vendor with Kept, gradients of the weights included.
type VendorBackward struct {
	Stack
	DY       View   // gradient of the outputs from above, steps·B × hidden
	DX       View   // of the inputs
	DFirst   []View // of the states before the first step
	DW, DR   []View // of the parameters
	DBX, DBR []View
}

// Ways is how many times each layer runs: once for each way in which it reads the steps.
func (s *Stack) Ways() int {
	if s.Both {
		return 2
	}
	return 1
}

// Layers is the number of layers. One that runs both ways is one.
func (s *Stack) Layers() int { return len(s.W) / s.Ways() }

// Batch is the number of sequences side by side.
func (s *Stack) Batch() int {
	if s.Lengths != nil {
		return len(s.Lengths)
	}
	return s.X.Rows / s.Steps
}

// misfits reports whether the number of X's rows does not fit the steps of the sequences.
func (s *Stack) misfits() bool {
	if s.Lengths == nil {
		return s.X.Rows == 0 || s.X.Rows%s.Steps != 0
	}
	before := s.Steps
	for i, n := range s.Lengths {
		if n < 1 || n > before || i == 0 && n < s.Steps {
			return true
		}
		before = n
	}
	return s.X.Rows != s.exist() && s.X.Rows != s.Steps*len(s.Lengths)
}

// exist is the number of steps of all sequences together.
func (s *Stack) exist() int {
	if s.Lengths == nil {
		return s.X.Rows
	}
	sum := 0
	for _, n := range s.Lengths {
		sum += n
	}
	return sum
}

// Padded reports whether all sequences have rows at all steps, though some are shorter. Rows past
// the end of a sequence are 0 in Y and may be anything in DX. In other views they are not read.
func (s *Stack) Padded() bool { return s.X.Rows != s.exist() }

// Hidden is the number of units of a layer.
func (s *Stack) Hidden() int { return s.Y.Cols / s.Ways() }

// what names the cell, its ways and the algorithm.
func (s *Stack) what(suffix string) string {
	text := fmt.Sprintf("%v%s algorithm %d", s.Cell, suffix, s.Algorithm)
	if s.Both {
		text += " both ways"
	}
	if len(s.Lengths) > 0 {
		text += fmt.Sprintf(" %d sequences of %d to %d steps", len(s.Lengths), s.Lengths[len(s.Lengths)-1], s.Steps)
	}
	return text
}

func (s *Stack) reads() []View { return some([]View{s.X}, s.First, s.W, s.R, s.BX, s.BR) }

// flops counts the operations of the products and the cells of all layers and steps.
func (s *Stack) flops(products int64, p cell.Program) int64 {
	h, n := int64(s.Hidden()), int64(s.exist())
	var sum int64
	for l := range s.W {
		weights := int64(s.W[l].Rows)*int64(s.W[l].Cols) + int64(s.R[l].Rows)*int64(s.R[l].Cols)
		sum += n * (2*products*weights + p.FLOPs()*h)
	}
	return sum
}

// check reports the first shape that does not fit. inputs are as wide as X, and outputs as wide as
// Y. parameters come in the order of W, R, BX, BR.
func (s *Stack) check(op Op, inputs, outputs []View, states, parameters [][]View) error {
	runs := s.Layers() * s.Ways()
	if s.Steps < 1 || runs < 1 || s.misfits() || s.Cell.Recurrent == 0 || len(s.Cell.Peeps) > 0 {
		return fmt.Errorf("schedule: %s of %v: want steps and layers, a batch and a recurrence without peepholes", op.Name(), s.Cell)
	}
	h := s.Hidden()
	gh, rh := len(s.Cell.Gates)*h, s.Cell.Recurrent*h
	fits := func(v View, rows, cols int) bool {
		return !v.Empty() && v.Rows == rows && v.Cols == cols && v.Cols == v.M.Cols
	}
	ok := s.Kept.Empty() || s.Kept.M.Packed
	for _, v := range inputs {
		ok = ok && fits(v, s.X.Rows, s.X.Cols)
	}
	for _, v := range outputs {
		ok = ok && fits(v, s.X.Rows, s.Ways()*h)
	}
	for _, views := range states {
		ok = ok && len(views) == len(s.Cell.States)
		for _, v := range views {
			ok = ok && fits(v, runs*s.Batch(), h)
		}
	}
	for i, views := range parameters {
		ok = ok && len(views) == runs
		for n, v := range views {
			width := s.X.Cols
			if n >= s.Ways() {
				width = s.Ways() * h
			}
			shape := [][2]int{{gh, width}, {rh, h}, {1, gh}, {1, rh}}[i%4]
			ok = ok && fits(v, shape[0], shape[1]) && v.Rows == v.M.Rows
		}
	}
	if !ok {
		return shapeError(op)
	}
	return nil
}

func (v Vendor) Name() string   { return "vendor" }
func (v Vendor) Reads() []View  { return v.reads() }
func (v Vendor) Writes() []View { return some([]View{v.Y, v.Kept}, v.Last) }
func (v Vendor) FLOPs() int64 {
	if v.Kept.Empty() {
		return v.flops(1, v.Cell.Inference)
	}
	return v.flops(1, v.Cell.Forward)
}
func (v Vendor) String() string {
	return fmt.Sprintf("vendor %s %v %v ← %v %v %v %d steps", v.what(""), v.Y, v.Last, v.X, v.W, v.R, v.Steps)
}
func (v Vendor) check() error {
	return v.Stack.check(v, []View{v.X}, []View{v.Y}, [][]View{v.First, v.Last}, [][]View{v.W, v.R, v.BX, v.BR})
}

func (v VendorBackward) Name() string { return "vendorbackward" }
func (v VendorBackward) Reads() []View {
	return some(v.reads(), []View{v.Y, v.Kept, v.DY})
}
func (v VendorBackward) Writes() []View {
	return some([]View{v.Kept, v.DX}, v.DFirst, v.DW, v.DR, v.DBX, v.DBR)
}
func (v VendorBackward) FLOPs() int64 { return v.flops(2, v.Cell.Backward) }
func (v VendorBackward) String() string {
	return fmt.Sprintf("vendor %s %v %v %v %v ← %v %v %v %d steps", v.what("backward"), v.DX, v.DFirst, v.DW, v.DR, v.DY, v.W, v.R, v.Steps)
}
func (v VendorBackward) check() error {
	if v.Kept.Empty() {
		return fmt.Errorf("schedule: %v: nothing is kept for it", v)
	}
	return v.Stack.check(v, []View{v.X, v.DX}, []View{v.Y, v.DY}, [][]View{v.First, v.DFirst},
		[][]View{v.W, v.R, v.BX, v.BR, v.DW, v.DR, v.DBX, v.DBR})
}
