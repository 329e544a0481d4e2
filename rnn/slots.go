package rnn

import (
	"slices"

	"rnnbench/rnn/schedule"
)

// A SlotKind says when a host program gives or takes a tensor.
type SlotKind int

const (
	Parameter     SlotKind = iota // given when it changes
	ForwardGiven                  // input and first states
	ForwardTaken                  // output and last states
	BackwardGiven                 // gradients of those
	BackwardTaken                 // gradients of the input, first states and parameters
)

// A Slot is a tensor of a host program, in the name and the layout of PyTorch: input, output, h_0,
// h_n, weight_ih_l0, grad_input and so on. Letters are those of package torch.
type Slot struct {
	Name   string
	Kind   SlotKind
	Shape  []int
	Pieces []Piece
}

// A Piece is a part of a slot that lies in one matrix.
type Piece struct {
	View    schedule.View
	From    int   // the first element of the slot that the piece holds
	Offsets []int // per row of View, where it lies behind From, in elements; negative: nowhere; nil: rows lie one after another
}

// Slots lists the tensors of a plan of LayoutHosted. lengths are those of the sequences in the host
// program's order; nil: all have all steps. With batchFirst, tensors of T × B are B × T.
func (p *Plan) Slots(lengths []int, batchFirst bool) []Slot {
	s := slots{Plan: p, order: ascending(lengths, p.Batch), batchFirst: batchFirst}
	s.parameters(Parameter, "", func(g Layer) LayerGrad { return LayerGrad{W: g.W, R: g.R, BX: g.BX, BR: g.BR, Peep: g.Peep} }, func(j *Projection) *schedule.Matrix { return j.W })
	s.sequence("input", ForwardGiven, p.X.All(), p.Input)
	s.states("_0", "", ForwardGiven, func(l, i int) (schedule.View, []int) {
		return p.shows(l, i).before, s.perSequence(StateWidth(p.Problem, i))
	})
	s.sequence("output", ForwardTaken, p.Outputs(0, p.Steps), p.Out())
	s.states("_n", "", ForwardTaken, func(l, i int) (schedule.View, []int) { return s.last(p.shows(l, i).after, StateWidth(p.Problem, i)) })
	if p.Pass != Train {
		return s.all
	}
	s.sequence("grad_output", BackwardGiven, p.DY.All(), p.Out())
	s.states("_n", "grad_", BackwardGiven, func(l, i int) (schedule.View, []int) {
		return Maybe(p.Layer[l].Grad.Last[i]), s.perSequence(StateWidth(p.Problem, i))
	})
	s.sequence("grad_input", BackwardTaken, p.DX.All(), p.Input)
	s.states("_0", "grad_", BackwardTaken, func(l, i int) (schedule.View, []int) {
		return p.shows(l, i).grad, s.perSequence(StateWidth(p.Problem, i))
	})
	s.parameters(BackwardTaken, "grad_", func(g Layer) LayerGrad { return g.Grad }, func(j *Projection) *schedule.Matrix { return j.DW })
	return s.all
}

// ascending returns the host program's number of each of the plan's sequences, which are numbered
// from the shortest to the longest.
func ascending(lengths []int, batch int) []int {
	order := make([]int, batch)
	for j := range order {
		order[j] = j
	}
	if lengths != nil {
		slices.SortStableFunc(order, func(a, b int) int { return lengths[a] - lengths[b] })
	}
	return order
}

// slots collects the slots of a plan.
type slots struct {
	*Plan
	order      []int // see ascending
	batchFirst bool
	all        []Slot
}

func (s *slots) add(kind SlotKind, name string, shape []int, pieces ...Piece) {
	s.all = append(s.all, Slot{Name: name, Kind: kind, Shape: shape, Pieces: pieces})
}

// sequence adds a tensor with a row for each step of each sequence.
func (s *slots) sequence(name string, kind SlotKind, v schedule.View, cols int) {
	shape := []int{s.Steps, s.Batch, cols}
	if s.batchFirst {
		shape[0], shape[1] = s.Batch, s.Steps
	}
	var offsets []int
	if s.batchFirst && s.Batch > 1 && s.Steps > 1 || !s.Batches.Even() {
		offsets = slices.Repeat([]int{-1}, v.Rows)
		s.Batches.visitExisting(func(row, t, j int) {
			j = s.order[j]
			if s.batchFirst {
				offsets[row] = (j*s.Steps + t) * cols
			} else {
				offsets[row] = (t*s.Batch + j) * cols
			}
		})
	}
	s.add(kind, name, shape, Piece{View: v, Offsets: offsets})
}

// states adds a tensor of each state, layer by layer. view returns the rows of a layer's state, and
// their offsets; an empty view leaves the tensor out.
func (s *slots) states(suffix, prefix string, kind SlotKind, view func(l, i int) (schedule.View, []int)) {
	for i, name := range s.Cell.States {
		width := StateWidth(s.Problem, i)
		var pieces []Piece
		for l := range s.Layer {
			if v, offsets := view(l, i); !v.Empty() {
				pieces = append(pieces, Piece{View: v, From: l * s.Batch * width, Offsets: offsets})
			}
		}
		if len(pieces) > 0 {
			s.add(kind, prefix+name+suffix, []int{s.Reads(), s.Batch, width}, pieces...)
		}
	}
}

// perSequence returns the offsets of rows that are sequences.
func (s *slots) perSequence(cols int) []int {
	if s.Batches.Even() {
		return nil
	}
	offsets := make([]int, s.Batch)
	for j, theirs := range s.order {
		offsets[j] = theirs * cols
	}
	return offsets
}

// last returns the rows of the states after the last step that is read, of all states of a layer.
func (s *slots) last(v schedule.View, cols int) (schedule.View, []int) {
	if s.Batches.Even() {
		return v.Band(v.Rows-s.Batch, s.Batch), nil
	}
	offsets := slices.Repeat([]int{-1}, v.Rows)
	s.Batches.visitExisting(func(row, t, j int) {
		if t == s.Batches.lengths[j]-1 {
			offsets[row] = s.order[j] * cols
		}
	})
	return v, offsets
}

// parameters adds the parameters of all layers, or their gradients.
func (s *slots) parameters(kind SlotKind, prefix string, of func(Layer) LayerGrad, projection func(*Projection) *schedule.Matrix) {
	for l, y := range s.Layer {
		add := func(name string, m *schedule.Matrix, shape ...int) {
			if m != nil {
				s.add(kind, prefix+s.Named(name, l), shape, Piece{View: m.All()})
			}
		}
		g := of(y)
		add("weight_ih", g.W, g.W.Rows, g.W.Cols)
		if g.R != nil {
			add("weight_hh", g.R, g.R.Rows, g.R.Cols)
		}
		add("bias_ih", g.BX, g.BX.Cols)
		if g.BR != nil {
			add("bias_hh", g.BR, g.BR.Cols)
		}
		if g.Peep != nil {
			add("peephole", g.Peep, len(s.Cell.Peeps), s.Hidden)
		}
		if y.Projection != nil {
			m := projection(y.Projection)
			add("weight_hr", m, m.Rows, m.Cols)
		}
	}
}
