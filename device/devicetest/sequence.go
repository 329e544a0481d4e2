package devicetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Layer is a persistent layer of given sizes or, for forward passes, a stack of them.
type Layer struct {
	Cell                 *cell.Cell
	Hidden, Batch, Steps int
	Layers               int // 0: one layer
	Train, Backward      bool
	Resets               bool // sequences begin anew at about half of the steps
	Precision            schedule.Precision
}

func (l Layer) String() string {
	s := fmt.Sprintf("%v %d batch %d steps %d", l.Cell, l.Hidden, l.Batch, l.Steps)
	if l.Layers > 0 {
		s += fmt.Sprintf(" layers %d", l.Layers)
	}
	if l.Resets {
		s += " resets"
	}
	switch {
	case l.Backward:
		s += " backward"
	case l.Train:
		s += " train"
	}
	return s + " " + l.Precision.String()
}

// Schedule returns the schedule of the layer alone. Some views are parts of larger matrices.
func (l Layer) Schedule(seed uint64) (*schedule.Schedule, error) {
	t := &trial{b: schedule.NewBuilder(1), rng: rand.New(rand.NewPCG(seed, 9))}
	s := t.layer(l.Cell, l.Train || l.Backward, l.Steps, l.Batch, l.Hidden)
	if l.Resets {
		addResets(t, &s)
	}
	if l.Backward {
		t.b.Do(0, schedule.PersistentBackward{Sequence: s, SequenceGrad: t.gradient(s), R: t.weights(l.Cell.Recurrent*l.Hidden, l.Hidden, true)})
	} else {
		all := []schedule.Sequence{s}
		for len(all) < l.Layers {
			s := t.layer(l.Cell, l.Train, l.Steps, l.Batch, l.Hidden)
			s.X = t.b.Scratch("scratch", s.X.Rows, s.X.Cols).All()
			all = append(all, s)
		}
		t.stack(all)
	}
	t.b.SetPrecision(l.Precision)
	return t.b.Schedule()
}

// stack adds layers, each with the states of the one below as its input.
func (t *trial) stack(all []schedule.Sequence) {
	var w, r []schedule.View
	for i, s := range all {
		w = append(w, schedule.View{})
		if i > 0 {
			w[i] = t.weights(s.Hidden(), s.X.Cols, true)
		}
		for range s.Cell.Recurrent {
			r = append(r, t.weights(s.Hidden(), s.Hidden(), true))
		}
	}
	for i, s := range all {
		n := s.Cell.Recurrent
		if i > 0 {
			below := all[i-1]
			t.b.Do(0, schedule.Gemm{A: below.State[s.Cell.Through].Band(s.Batch(), s.Steps*s.Batch()), B: w[i], C: s.X})
		}
		t.b.Do(0, schedule.Persistent{Sequence: s, R: r[i*n : (i+1)*n]})
	}
}

// A Case is a layer with settings of the device's knobs. It runs as one operation over all steps
// or, if Stepwise, as a product and a cell for each step.
type Case struct {
	Layer
	Knobs    knob.Params
	Stepwise bool
}

// Build returns the schedule of the case.
func (c Case) Build() (*schedule.Schedule, error) {
	if c.Stepwise {
		return c.steps(uint64(c.Hidden))
	}
	return c.Schedule(uint64(c.Hidden))
}

// Layers checks each case on d. Kernels of many cases are compiled side by side.
func Layers(t *testing.T, d device.Device, cases []Case) {
	const far = 64
	ready := 0
	for i, c := range cases {
		t.Run(fmt.Sprint(c.Layer, " ", c.Knobs), func(t *testing.T) {
			if i >= ready {
				ready = min(i+far, len(cases))
				for _, next := range cases[i:ready] {
					if s, err := next.Build(); err == nil {
						precompile(d, s, []knob.Params{next.Knobs})
					}
				}
			}
			c.Hold(t, d)
		})
	}
}

// Stacks returns stacks that a device runs in one kernel if its knob of that name is 1 or, for many
// sequences, 3. The sizes fill neither the last block of a kernel nor the last turn of sequences.
// The numbers of steps range from the fewest possible to many.
func Stacks(name string) []Case {
	return []Case{
		{Layer: Layer{Cell: cell.LSTM, Hidden: 37, Batch: 5, Steps: 22, Layers: 2, Precision: schedule.BF16}, Knobs: knob.Params{name: 1}},
		{Layer: Layer{Cell: cell.LSTM, Hidden: 20, Batch: 34, Steps: 19, Layers: 2, Precision: schedule.BF16}, Knobs: knob.Params{name: 3, "groups": 1}},
		{Layer: Layer{Cell: cell.GRU, Hidden: 33, Batch: 19, Steps: 7, Layers: 3, Precision: schedule.BF16}, Knobs: knob.Params{name: 1, "samples": 8, "groups": 1}},
		{Layer: Layer{Cell: cell.LSTMPeephole, Hidden: 40, Batch: 21, Steps: 5, Layers: 4, Train: true, Precision: schedule.FP16}, Knobs: knob.Params{name: 1, "groups": 1}},
		{Layer: Layer{Cell: cell.GRU, Hidden: 70, Batch: 3, Steps: 3, Layers: 2, Train: true, Precision: schedule.FP32}, Knobs: knob.Params{name: 1}},
		{Layer: Layer{Cell: cell.RNNTanh, Hidden: 17, Batch: 9, Steps: 21, Layers: 3, Precision: schedule.TF32}, Knobs: knob.Params{name: 1, "samples": 16}},
		{Layer: Layer{Cell: cell.GRU, Hidden: 33, Batch: 19, Steps: 5, Layers: 3, Precision: schedule.FP16}, Knobs: knob.Params{name: 3, "groups": 1}},
		{Layer: Layer{Cell: cell.LSTMPeephole, Hidden: 64, Batch: 37, Steps: 4, Layers: 2, Train: true, Precision: schedule.BF16}, Knobs: knob.Params{name: 3, "groups": 1}},
		{Layer: Layer{Cell: cell.LSTM, Hidden: 48, Batch: 5, Steps: 3, Layers: 3, Precision: schedule.BF16}, Knobs: knob.Params{name: 3}},
		{Layer: Layer{Cell: cell.LSTM, Hidden: 20, Batch: 35, Steps: 3, Layers: 2, Precision: schedule.BF16}, Knobs: knob.Params{name: 3, "groups": 1, "samples": 16}},
		{Layer: Layer{Cell: cell.LSTM, Hidden: 20, Batch: 5, Steps: 3, Layers: 2, Precision: schedule.BF16}, Knobs: knob.Params{name: 3, "groups": 1, "samples": 32}},
		{Layer: Layer{Cell: cell.GRU, Hidden: 33, Batch: 9, Steps: 2, Layers: 2, Precision: schedule.FP32}, Knobs: knob.Params{name: 1}},
		{Layer: Layer{Cell: cell.LSTM, Hidden: 33, Batch: 19, Steps: 7, Layers: 3, Train: true, Precision: schedule.FP32}, Knobs: knob.Params{name: 1, "samples": 8, "groups": 1}},
		{Layer: Layer{Cell: cell.LSTM, Hidden: 20, Batch: 5, Steps: 2, Layers: 2, Precision: schedule.BF16}, Knobs: knob.Params{name: 3}},
		{Layer: Layer{Cell: cell.LSTM, Hidden: 20, Batch: 35, Steps: 5, Layers: 2, Train: true, Precision: schedule.BF16}, Knobs: knob.Params{name: 3, "groups": 1, "samples": 16}},
	}
}

// Hold checks the case on d against the evaluation. Several runs must have the same bits. The test
// is skipped if the device declines the case.
func (c Case) Hold(t testing.TB, d device.Device) {
	t.Helper()
	s, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, d, s, uint64(c.Batch), []knob.Params{c.Knobs}, trials(d, 4))
}

// HoldWith checks the layer on d with each of the settings, like Case.Hold.
func (l Layer) HoldWith(t testing.TB, d device.Device, settings []knob.Params) {
	t.Helper()
	s, err := l.Schedule(uint64(l.Hidden))
	if err != nil {
		t.Fatal(err)
	}
	compare(t, d, s, uint64(l.Batch), settings, trials(d, 4))
}

// steps returns the layer as a product and a cell for each step.
func (l Layer) steps(seed uint64) (*schedule.Schedule, error) {
	t := &trial{b: schedule.NewBuilder(1), rng: rand.New(rand.NewPCG(seed, 9))}
	s := t.layer(l.Cell, l.Train || l.Backward, l.Steps, l.Batch, l.Hidden)
	if l.Resets {
		addResets(t, &s)
	}
	rows, through := l.Cell.Recurrent*l.Hidden, l.Cell.Through
	if l.Backward {
		op := schedule.PersistentBackward{Sequence: s, SequenceGrad: t.gradient(s), R: t.weights(rows, l.Hidden, false)}
		for step := l.Steps - 1; step >= 0; step-- {
			t.b.Do(0, op.StepBack(step))
			t.b.Do(0, schedule.Gemm{A: op.Recurrent(step), B: op.R, C: op.Carry[through], Accumulate: l.Cell.DirectPrev(through)})
		}
	} else {
		r, product := t.weights(l.Hidden, rows, true), t.place(l.Batch, rows)
		for step := range l.Steps {
			t.b.Do(0, schedule.Gemm{A: s.Before(step)[through], B: r, C: product})
			t.b.Do(0, s.Step(step, product))
		}
	}
	t.b.SetPrecision(l.Precision)
	return t.b.Schedule()
}

// sequence returns a few steps of cell c over fresh matrices.
func (t *trial) sequence(c *cell.Cell, train bool) schedule.Sequence {
	// Evaluation takes time of the order of rows·h², so there are few sequences.
	return t.layer(c, train, 1+t.rng.IntN(6), 1+t.size()%20, t.size())
}

// layer returns steps of c over rows sequences of h units.
func (t *trial) layer(c *cell.Cell, train bool, steps, rows, h int) schedule.Sequence {
	g := len(c.Gates)
	s := schedule.Sequence{Cell: c, Train: train, Steps: steps, X: t.place(steps*rows, g*h), BX: t.place(1, g*h)}
	if n := c.Recurrent; n > 0 {
		s.BR = t.place(1, n*h)
	}
	if n := len(c.Peeps); n > 0 {
		s.Peep = t.place(1, n*h)
	}
	if train && c.Saved > 0 {
		s.Saved = t.place(steps*rows, c.Saved*h)
	}
	for i := range c.States {
		s.State = append(s.State, t.state(c, i, (steps+1)*rows, h))
	}
	return s
}

// gradient returns matrices for the gradients of s.
func (t *trial) gradient(s schedule.Sequence) schedule.SequenceGrad {
	c, rows, h := s.Cell, s.Batch(), s.Hidden()
	g := schedule.SequenceGrad{DOut: t.place(s.Steps*rows, h), DX: t.place(s.Steps*rows, c.Gradients()*h)}
	if c.SplitGrad {
		g.DR = t.place(s.Steps*rows, c.Recurrent*h)
	}
	if c.SumsPeeps() {
		g.DPeep = t.place(rows, len(c.Peeps)*h)
	}
	for range c.States {
		g.Carry = append(g.Carry, t.place(rows, h))
	}
	return g
}

// weights packs fresh weights.
func (t *trial) weights(rows, cols int, trans bool) schedule.View {
	packed := t.b.Packed("packed", rows, cols).All()
	r, c := oriented(trans, rows, cols)
	t.b.Do(0, schedule.Pack{Src: t.b.Matrix(weights, r, c).All(), Dst: packed, Trans: trans})
	return packed
}

// weights is the name of matrices whose products are smaller than what they multiply, so that
// errors do not grow from step to step.
const weights = "weights"

// sequenceMakers returns the makers of operations over several steps of c.
func sequenceMakers(c *cell.Cell) map[string]maker {
	all := map[string]maker{}
	if c.Recurrence != nil && c.Recurrence.Compose != nil {
		all["scan"] = func(t *trial) schedule.Op {
			op := schedule.Scan{Sequence: t.sequence(c, t.flip() && c.Forward != nil)}
			if n := c.Recurrent; n > 0 {
				op.R = t.place(op.X.Rows, n*op.Hidden())
			}
			return op
		}
	}
	if c.Recurrence != nil && c.Recurrence.ComposeBackward != nil {
		all["scanbackward"] = func(t *trial) schedule.Op {
			s := t.sequence(c, true)
			return schedule.ScanBackward{Sequence: s, SequenceGrad: t.gradient(s)}
		}
	}
	if c.Serial != nil {
		all["serial scan"] = func(t *trial) schedule.Op {
			return schedule.Scan{Sequence: t.sequence(c, t.flip()), Serial: true}
		}
		all["serial scanbackward"] = func(t *trial) schedule.Op {
			s := t.sequence(c, true)
			return schedule.ScanBackward{Sequence: s, SequenceGrad: t.gradient(s), Serial: true}
		}
	}
	if c.Recurrent > 0 && c.Forward != nil {
		all["persistent"] = func(t *trial) schedule.Op {
			op := schedule.Persistent{Sequence: t.sequence(c, t.flip())}
			for range c.Recurrent {
				op.R = append(op.R, t.weights(op.Hidden(), op.Hidden(), t.flip()))
			}
			return op
		}
		all["persistentbackward"] = func(t *trial) schedule.Op {
			s := t.sequence(c, true)
			h := s.Hidden()
			return schedule.PersistentBackward{Sequence: s, SequenceGrad: t.gradient(s), R: t.weights(c.Recurrent*h, h, t.flip())}
		}
	}
	if slices.Contains(resetCells, c) {
		for name, build := range maps.Clone(all) {
			all[name+" anew"] = func(t *trial) schedule.Op { return withResets(t, build(t)) }
		}
	}
	return all
}

// isSequence reports whether op runs several steps, of which each reads what an earlier one has
// computed.
func isSequence(op schedule.Op) bool {
	switch op.(type) {
	case schedule.Persistent, schedule.PersistentBackward, schedule.Scan, schedule.ScanBackward, schedule.Vendor, schedule.VendorBackward:
		return true
	}
	return false
}

// roundsStates reports whether op may round states or gradients that products multiply.
func roundsStates(op schedule.Op) bool {
	switch op.(type) {
	case schedule.Cell, schedule.CellBackward:
		return true
	}
	return isSequence(op)
}

// trials is how often a schedule runs on d in a check that runs agree: n times, or twice if d is emulated, where threads
// take turns in the same order in each run.
func trials(d device.Device, n int) int {
	if _, emulated := d.Info().Libraries["emulator"]; emulated {
		return 2
	}
	return n
}
