package schedule

import (
	"fmt"

	"rnnbench/rnn/cell"
)

// A Sequence is a layer's cell run over steps of time within one operation. With B sequences side
// by side, row t·B+b of X and Saved belongs to step t of sequence b. Row (t+1)·B+b of a state has
// its value after that step; the first B rows are the states before the first step.
type Sequence struct {
	Cell         *cell.Cell
	Train        bool
	Steps        int
	X            View   // products of the inputs, steps·B × gates·hidden
	BX, BR, Peep View   // one row each
	State        []View // (steps+1)·B × hidden
	Saved        View   // steps·B × saved·hidden, where Train
	Keep         View   // (steps+1)·B × 1, with a band for the step after the last: see keep.go
}

// A SequenceGrad holds what the gradient of a Sequence reads and writes besides the Sequence.
type SequenceGrad struct {
	DOut  View   // gradient of the outputs from above, steps·B × hidden
	Carry []View // B × hidden: the states' gradients, from after the last step to before the first
	DX    View   // steps·B × gradients·hidden; see cell.Cell.Gradients
	DR    View   // steps·B × recurrent gates·hidden, where the cell splits its gradients
	DPeep View   // B × peepholes·hidden, added to; empty where DX has it
}

// Persistent runs a layer over steps of time with the recurrent weights kept on chip. At each step
// it multiplies the state cell.Cell.Through by the weights of each recurrent gate, then runs the
// cell (Diamos et al. 2016, section 3).
type Persistent struct {
	Sequence
	R []View // per recurrent gate its weights, transposed and packed, hidden × hidden
}

// PersistentBackward is the gradient of Persistent, except that of the weights. It goes from the
// last step to the first. At each it computes the gradient of the cell, then adds that of the
// recurrent product to the carried gradient.
type PersistentBackward struct {
	Sequence
	SequenceGrad
	R View // the weights packed, recurrent gates·hidden × hidden
}

// Scan runs a layer whose cell has a linear recurrence. So time can be cut and computed in parallel
// (Martin and Cundy 2017, section 2.1). A serial scan runs the steps of each unit one after another
// and keeps its states in registers. So the recurrence need not be linear.
type Scan struct {
	Sequence
	R      View // recurrent products known ahead, steps·B × recurrent gates·hidden; empty where the cell has none
	Serial bool // the cell has no recurrent products
}

// ScanBackward is the gradient of Scan (section 2.2). A serial one adds to DPeep.
type ScanBackward struct {
	Sequence
	SequenceGrad
	Serial bool
}

// Batch is the number of sequences side by side.
func (s *Sequence) Batch() int { return s.State[0].Rows / (s.Steps + 1) }

// Hidden is the number of units.
func (s *Sequence) Hidden() int { return s.State[0].Cols }

// Before views the states before step t; Before(t+1) are those after it.
func (s *Sequence) Before(t int) []View {
	b := s.Batch()
	views := make([]View, len(s.State))
	for i, v := range s.State {
		views[i] = v.Band(t*b, b)
	}
	return views
}

// step narrows v to the rows of step t.
func (s *Sequence) step(v View, t int) View {
	if v.Empty() {
		return v
	}
	return v.Band(t*s.Batch(), s.Batch())
}

// keepBack is the part of Keep for steps t and t+1.
func (s *Sequence) keepBack(t int) View {
	if s.Keep.Empty() {
		return s.Keep
	}
	return s.Keep.Band(t*s.Batch(), 2*s.Batch())
}

// Step is the cell of step t, given its recurrent products r, B × recurrent
// gates·hidden.
func (s *Sequence) Step(t int, r View) Cell {
	return Cell{
		Cell: s.Cell, Train: s.Train, X: s.step(s.X, t), R: r, BX: s.BX, BR: s.BR, Peep: s.Peep,
		Prev: s.Before(t), Next: s.Before(t + 1), Saved: s.step(s.Saved, t), Keep: s.step(s.Keep, t),
	}
}

// stepBack is the gradient of Step.
func (s *Sequence) stepBack(g *SequenceGrad, t int) CellBackward {
	direct := make([]View, len(g.Carry))
	for i, v := range g.Carry {
		if s.Cell.DirectPrev(i) {
			direct[i] = v
		}
	}
	return CellBackward{
		Cell: s.Cell, DOut: s.step(g.DOut, t), DNext: g.Carry, DPrev: direct, Saved: s.step(s.Saved, t), Peep: s.Peep,
		Prev: s.Before(t), Next: s.Before(t + 1), DX: s.step(g.DX, t), DR: s.step(g.DR, t), DPeep: g.DPeep,
		Keep: s.keepBack(t),
	}
}

// StepBack is the gradient of the cell of step t.
func (p *PersistentBackward) StepBack(t int) CellBackward { return p.stepBack(&p.SequenceGrad, t) }

// StepBack is the gradient of the cell of step t.
func (s *ScanBackward) StepBack(t int) CellBackward { return s.stepBack(&s.SequenceGrad, t) }

// Recurrent views the gradients of the recurrent products of step t.
func (p *PersistentBackward) Recurrent(t int) View {
	if p.Cell.SplitGrad {
		return p.step(p.DR, t)
	}
	return p.step(p.DX, t).Columns(0, p.Cell.Recurrent*p.Hidden())
}

// Step is the cell of step t.
func (s *Scan) Step(t int) Cell { return s.Sequence.Step(t, s.step(s.R, t)) }

func (s *Sequence) reads() []View {
	views := some([]View{s.X, s.BX, s.BR, s.Peep, s.Keep})
	for _, v := range s.State {
		views = append(views, v.Band(0, s.Batch()))
	}
	return views
}

func (s *Sequence) writes() []View {
	var views []View
	for _, v := range s.State {
		views = append(views, v.Band(s.Batch(), s.Steps*s.Batch()))
	}
	return some(views, []View{s.Saved})
}

// readsBack lists the views that the gradient with g reads. Of the states it reads those that the
// cell's gradient recalls. It reads no input.
func (s *Sequence) readsBack(g *SequenceGrad) []View {
	var states []View
	for i, v := range s.State {
		if s.Cell.RecallsState(i) {
			states = append(states, v)
		}
	}
	return some(states, g.Carry, []View{s.Saved, s.Peep, s.Keep, g.DOut, g.DPeep})
}

func (s *Sequence) writesBack(g *SequenceGrad) []View {
	return some(g.Carry, []View{g.DX, g.DR, g.DPeep})
}

func (s *Sequence) cellFLOPs(p cell.Program) int64 {
	return p.FLOPs() * int64(s.Steps) * int64(s.Batch()) * int64(s.Hidden())
}

// productFLOPs counts those of the recurrent products of all steps.
func (s *Sequence) productFLOPs() int64 {
	h := int64(s.Hidden())
	return 2 * int64(s.Steps) * int64(s.Batch()) * int64(s.Cell.Recurrent) * h * h
}

// checkSteps reports the first shape that does not fit. It checks the states, the views with a row
// per step and sequence, and the first step, which stands for all.
func (s *Sequence) checkSteps(op Op, perStep []View, first func() Op) error {
	if s.Steps < 1 || len(s.State) != len(s.Cell.States) {
		return fmt.Errorf("schedule: %s of %v: want %d states and at least one step", op.Name(), s.Cell, len(s.Cell.States))
	}
	rows := s.Steps * s.Batch()
	for _, v := range s.State {
		if rows == 0 || v.Rows != rows+s.Batch() {
			return shapeError(op)
		}
	}
	for _, v := range some([]View{s.X, s.Saved}, perStep) {
		if v.Rows != rows {
			return shapeError(op)
		}
	}
	if !fitsKeep(s.Keep, rows+s.Batch()) {
		return shapeError(op)
	}
	return first().check()
}

func (g *SequenceGrad) perStep() []View { return []View{g.DOut, g.DX, g.DR} }

func (p Persistent) Name() string   { return "persistent" }
func (p Persistent) Reads() []View  { return some(p.Sequence.reads(), p.R) }
func (p Persistent) Writes() []View { return p.Sequence.writes() }
func (p Persistent) FLOPs() int64   { return p.productFLOPs() + p.cellFLOPs(p.Step(0, View{}).Program()) }
func (p Persistent) String() string {
	return fmt.Sprintf("persistent %v %v ← %v %v %d steps", p.Cell, p.State, p.X, p.R, p.Steps) + keepSuffix(p.Keep)
}
func (p Persistent) check() error {
	if len(p.R) != p.Cell.Recurrent || len(p.R) == 0 {
		return fmt.Errorf("schedule: persistent %v: want the weights of %d recurrent gates, at least one", p.Cell, p.Cell.Recurrent)
	}
	for _, r := range p.R {
		if r.Rows != p.Hidden() || r.Cols != p.Hidden() || !r.M.Packed {
			return shapeError(p)
		}
	}
	return p.checkSteps(p, nil, func() Op {
		products := Matrix{Rows: p.Batch(), Cols: len(p.R) * p.Hidden()}
		return p.Step(0, products.All())
	})
}

func (p PersistentBackward) Name() string { return "persistentbackward" }
func (p PersistentBackward) Reads() []View {
	return some(p.readsBack(&p.SequenceGrad), []View{p.R})
}
func (p PersistentBackward) Writes() []View { return p.writesBack(&p.SequenceGrad) }
func (p PersistentBackward) FLOPs() int64 {
	return p.productFLOPs() + p.cellFLOPs(p.Cell.Backward)
}
func (p PersistentBackward) String() string {
	return fmt.Sprintf("persistent %vbackward %v %v %v ← %v %v %d steps", p.Cell, p.DX, p.DR, p.Carry, p.DOut, p.R, p.Steps) + keepSuffix(p.Keep)
}
func (p PersistentBackward) check() error {
	if p.Cell.Recurrent == 0 || p.R.Rows != p.Cell.Recurrent*p.Hidden() || p.R.Cols != p.Hidden() || !p.R.M.Packed {
		return shapeError(p)
	}
	return p.checkSteps(p, p.perStep(), func() Op { return p.StepBack(0) })
}

// Recurrence is what the steps of s compute.
func (s *Scan) Recurrence() *cell.Recurrence { return s.recurrence(s.Serial) }

// Recurrence is what the steps of s compute.
func (s *ScanBackward) Recurrence() *cell.Recurrence { return s.recurrence(s.Serial) }

func (s *Sequence) recurrence(serial bool) *cell.Recurrence {
	if serial {
		return s.Cell.Serial
	}
	return s.Cell.Recurrence
}

func (s Scan) Name() string   { return serialName("scan", s.Serial) }
func (s Scan) Reads() []View  { return some(s.Sequence.reads(), []View{s.R}) }
func (s Scan) Writes() []View { return s.Sequence.writes() }
func (s Scan) FLOPs() int64   { return s.cellFLOPs(s.Step(0).Program()) }
func (s Scan) String() string {
	return fmt.Sprintf("%s %v %v ← %v %v %d steps", s.Name(), s.Cell, s.State, s.X, s.R, s.Steps) + keepSuffix(s.Keep)
}
func (s Scan) check() error {
	if r := s.Recurrence(); r == nil || !s.Serial && r.Compose == nil {
		return recurrenceError(s, s.Cell)
	}
	return s.checkSteps(s, []View{s.R}, func() Op { return s.Step(0) })
}

// Scans reports whether op is a scan or the gradient of one. SerialScan reports whether it is also
// serial.
func Scans(op Op) bool {
	switch op.(type) {
	case Scan, ScanBackward:
		return true
	}
	return false
}

func SerialScan(op Op) bool {
	switch op := op.(type) {
	case Scan:
		return op.Serial
	case ScanBackward:
		return op.Serial
	}
	return false
}

func serialName(name string, serial bool) string {
	if serial {
		return "serial" + name
	}
	return name
}

func recurrenceError(op Op, c *cell.Cell) error {
	return fmt.Errorf("schedule: %s of %v: its recurrence is not linear, or not without recurrent products", op.Name(), c)
}

func (s ScanBackward) Name() string   { return serialName("scanbackward", s.Serial) }
func (s ScanBackward) Reads() []View  { return s.readsBack(&s.SequenceGrad) }
func (s ScanBackward) Writes() []View { return s.writesBack(&s.SequenceGrad) }
func (s ScanBackward) FLOPs() int64   { return s.cellFLOPs(s.Cell.Backward) }
func (s ScanBackward) String() string {
	return fmt.Sprintf("%s %vbackward %v %v ← %v %d steps", serialName("scan", s.Serial), s.Cell, s.DX, s.Carry, s.DOut, s.Steps) + keepSuffix(s.Keep)
}
func (s ScanBackward) check() error {
	if r := s.Recurrence(); r == nil || !s.Serial && r.ComposeBackward == nil {
		return recurrenceError(s, s.Cell)
	}
	return s.checkSteps(s, s.perStep(), func() Op { return s.StepBack(0) })
}
