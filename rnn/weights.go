package rnn

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Weights are parameters and first states that are given and not drawn: those of a model's file.
type Weights struct {
	ID      string   // as in Problem.Weights
	Tensors []Tensor // in the names and layouts of Data; first states have a row for each sequence, or one for all
	Zeros   bool     // first states that are not given are 0, and not drawn
}

var weights = struct {
	sync.RWMutex
	known map[string]Weights
}{known: map[string]Weights{}}

// RegisterWeights makes weights known by their ID.
func RegisterWeights(w Weights) {
	weights.Lock()
	defer weights.Unlock()
	weights.known[w.ID] = w
}

// KnownWeights lists the IDs of weights.
func KnownWeights() []string {
	weights.RLock()
	defer weights.RUnlock()
	return slices.Sorted(maps.Keys(weights.known))
}

// adopt replaces what was drawn by the weights that the problem names.
func (d *Data) adopt() {
	if d.Problem.Weights == "" {
		return
	}
	weights.RLock()
	w, ok := weights.known[d.Problem.Weights]
	weights.RUnlock()
	if !ok {
		panic(fmt.Sprintf("rnn: there are no weights %q", d.Problem.Weights))
	}
	given := map[string]Tensor{}
	for _, t := range w.Tensors {
		given[t.Name] = t
	}
	for i, t := range d.Tensors {
		g, ok := given[t.Name]
		state := t.PerSequence && d.isFirstState(t.Name)
		switch {
		case ok && state:
			for row := range t.Rows {
				copy(t.Values[row*t.Cols:][:t.Cols], g.Values[row%g.Rows*g.Cols:])
			}
		case ok:
			d.Tensors[i].Values = g.Values
		case state && w.Zeros:
			clear(t.Values)
		}
	}
}

// Fits returns an error if the weights are not those of a network like p.
func (w Weights) Fits(p Problem) error {
	p.Batch, p.Steps, p.Weights = 1, 1, ""
	want := map[string]Tensor{}
	for _, t := range NewData(p, 1, 1, "zeros").Tensors {
		want[t.Name] = t
	}
	parameters := 0
	for _, g := range w.Tensors {
		t, ok := want[g.Name]
		if !ok {
			return fmt.Errorf("rnn: the network has no tensor %s", g.Name)
		}
		rows := t.Rows
		if t.PerSequence {
			rows = max(1, g.Rows)
		} else {
			parameters++
		}
		if g.Rows != rows || g.Cols != t.Cols || len(g.Values) != g.Rows*g.Cols {
			return fmt.Errorf("rnn: tensor %s has %d × %d values, and needs %d × %d", g.Name, g.Rows, g.Cols, rows, t.Cols)
		}
	}
	for _, t := range want {
		if !t.PerSequence {
			parameters--
		}
	}
	if parameters != 0 {
		return fmt.Errorf("rnn: the weights of %s lack parameters", w.ID)
	}
	return nil
}
