// Package newton runs nonlinear recurrences in parallel over time, by Newton's method for all steps at
// once. Each iteration replaces the steps by their tangents at the states of the iteration before, and
// a scan solves the linear recurrence of the tangents. The products of the inputs are those of package
// scan. The gradient is linear, so a single scan computes it.
//
// The answer is right once two iterations agree, which takes few iterations where the recurrence
// contracts and may never happen where it does not. So iterates are kept for the caller to compare:
// see rnn.Plan.Iterates.
//
// References: Lim, Zhu, Selfridge, Kasim. Parallelizing non-linear sequential models over the sequence
// length. 2024. arXiv:2309.12252. Danieli and others. ParaRNN. 2025. arXiv:2510.21450.
package newton

import (
	"fmt"
	"maps"

	"rnnbench/impl/scan"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Technique is the newton technique.
type Technique struct{}

func (Technique) Name() string { return "newton" }
func (Technique) Doc() string {
	return "nonlinear recurrences in parallel over time, by Newton's method (Lim et al. 2024)"
}

// By default iterations begin at few and double, up to most, until the answer has converged.
const few, most = 4, 32

func withIterations(blocks []knob.Knob) []knob.Knob {
	iterations := knob.Knob{
		Name: "iterations", Doc: "iterations of Newton's method; 0: as many as it takes to converge, which verifying finds",
		Values: []int{0, 2, 3, 4, 6, 8, 12, 16, 24, most}, Min: 0, Max: 1024,
	}
	all := []knob.Knob{iterations}
	for _, k := range blocks {
		if !k.Internal { // package scan's knob alone times scans, which are not those of an iteration
			all = append(all, k)
		}
	}
	return all
}

// Knobs implements rnn.Technique.
func (Technique) Knobs(p rnn.Problem) []knob.Knob {
	return withIterations(scan.Technique{}.Knobs(p))
}

// LaunchedKnobs implements rnn.Launcher.
func (Technique) LaunchedKnobs(p rnn.Problem) []knob.Knob {
	return withIterations(scan.Technique{}.LaunchedKnobs(p))
}

// More implements rnn.Iterative.
func (Technique) More(k knob.Params) (knob.Params, bool) {
	n := iterations(k)
	if n >= most {
		return nil, false
	}
	k = maps.Clone(k)
	k["iterations"] = min(2*n, most)
	return k, true
}

func iterations(k knob.Params) int {
	if n := k["iterations"]; n > 0 {
		return n
	}
	return few
}

// Plan implements rnn.Technique.
func (Technique) Plan(p *rnn.Plan, k knob.Params) error {
	c := p.Cell
	switch {
	case c.Newton == nil && (c.Recurrence != nil && c.Recurrent == 0 || c.Scanned != nil):
		return fmt.Errorf("%w: %v is a linear recurrence, which a single scan computes: use scan", schedule.ErrCell, c)
	case c.Newton == nil:
		return fmt.Errorf("%w: a unit of %v reads the states of other units", schedule.ErrCell, c)
	case p.Calls > 0:
		return fmt.Errorf("%w: only verifying each call would tell how many iterations it takes", schedule.ErrCalls)
	case c.Newton.Back == nil && p.Pass == rnn.Train:
		return fmt.Errorf("%w: the gradient of %v ties %d states of a unit, and scans run them one by one", schedule.ErrCell, c, len(c.States))
	}
	p.Iterations = iterations(k)
	return scan.LayOut(p, k, &recurrence{Plan: p, iterations: p.Iterations, other: make([][2]*schedule.Matrix, p.Reads())})
}

// A recurrence runs the steps of layers by Newton's method.
type recurrence struct {
	*rnn.Plan
	iterations int
	other      [][2]*schedule.Matrix // of each layer, where iterates are that are not the answer: (F+1)·B × states·H
}

// An iterate holds the states of a layer before a block's first step and after each of its steps.
type iterate struct {
	all   schedule.View   // states·H columns
	state []schedule.View // each has H of them
}

// Forward implements scan.Recurrence. Iterates alternate between two places, so that an iteration reads
// one and writes the other. The last is the answer, in a place of its own unless there is one state.
func (r *recurrence) Forward(l int, s schedule.Sequence) {
	batch, last, begun := s.Batch(), r.iterations, r.other[l][0] != nil
	if s.Train {
		last++ // the cell itself, which keeps what the gradient reads
	}
	answer := iterate{state: s.State}
	places := [2]iterate{answer, r.place(l, 0, s)} // of iterates an even and an odd number before the last
	if len(s.State) == 1 {
		places[0].all = s.State[0]
	} else {
		places[0] = r.place(l, 1, s)
	}
	at := func(i int) iterate {
		if i == last {
			return answer
		}
		return places[(last-i)%2]
	}
	for i := max(0, last-2); i < last; i++ {
		r.begin(at(i), s)
	}
	r.Do(0, schedule.Map{Op: cell.Zero, Out: at(0).all.Band(batch, s.Steps*batch)})
	for i := range r.iterations {
		step := s
		step.Cell, step.Train, step.Saved, step.State = r.Cell.Newton.Step, false, schedule.View{}, at(i+1).state
		r.Do(0, schedule.Scan{Sequence: step, R: at(i).all.Band(0, s.Steps*batch)})
	}
	if s.Train {
		r.evaluate(s, at(last-1).state)
	}
	if !begun {
		r.compare(l, at(last-1))
	}
}

// compare has the states of all steps of layer l compared with those of the iterate before.
func (r *recurrence) compare(l int, before iterate) {
	rows := r.Batches.Before(r.Steps)
	for k, m := range r.Layer[l].State {
		v := before.state[k]
		r.Iterates = append(r.Iterates, [2]schedule.View{m.Band(r.Batch, rows), v.M.Band(r.Batch, rows).Columns(v.Col, v.Cols)})
	}
}

// place returns one of layer l's places of iterates, for the steps of s.
func (r *recurrence) place(l, which int, s schedule.Sequence) iterate {
	m, first := r.other[l][which], s.State[0]
	if m == nil {
		m = r.Matrix(fmt.Sprintf("iterate%d of %s", which, first.M.Name), first.M.Rows, len(s.State)*r.Hidden)
		r.other[l][which] = m
	}
	place := iterate{all: m.Band(first.Row, first.Rows)}
	for k := range s.State {
		place.state = append(place.state, place.all.Columns(k*r.Hidden, r.Hidden))
	}
	return place
}

// begin copies the states before the first step of s to a place where they are not.
func (r *recurrence) begin(place iterate, s schedule.Sequence) {
	for k, v := range s.State {
		if place.state[k].M != v.M {
			r.Do(0, schedule.Map{Op: cell.Copy, Out: place.state[k].Band(0, s.Batch()), A: v.Band(0, s.Batch())})
		}
	}
}

// evaluate runs the cell once for all steps of s, each from the state before it.
func (r *recurrence) evaluate(s schedule.Sequence, before []schedule.View) {
	rows := s.Steps * s.Batch()
	step := schedule.Cell{Cell: r.Cell.Newton.Back, Train: true, X: s.X, BX: s.BX, Peep: s.Peep, Saved: s.Saved}
	if !s.Keep.Empty() {
		step.Keep = s.Keep.Band(0, rows)
	}
	for k, v := range s.State {
		step.Prev = append(step.Prev, before[k].Band(0, rows))
		step.Next = append(step.Next, v.Band(s.Batch(), rows))
	}
	r.Do(0, step)
}

// Backward implements scan.Recurrence.
func (r *recurrence) Backward(_ int, s schedule.Sequence, g schedule.SequenceGrad) {
	s.Cell = r.Cell.Newton.Back
	r.Do(0, schedule.ScanBackward{Sequence: s, SequenceGrad: g})
}
