package rnn

import (
	"slices"
	"strings"

	"rnnbench/internal/parallel"
)

// A Turn exchanges equal parts of a network: the units of each layer, or its heads, and sequences of
// the batch. Parameters and inputs differ then, but the answer is the same, with its values at other
// places. So a program can be given inputs that it has not seen, without another run of the
// reference. Sums over sequences may be rounded differently.
type Turn struct {
	problem Problem
	units   int   // unit u gets the part of unit u+units, modulo Hidden
	from    []int // sequence j of the distinct ones gets the part of sequence from[j]
}

// Turn returns a turn of d for each k above 0. It exchanges sequences only if they have equally many
// copies and steps, so that sums over the batch stay the same.
func (d *Data) Turn(k int) *Turn {
	p := d.Problem
	t := &Turn{problem: p, from: make([]int, d.Distinct)}
	if n := p.Hidden; p.Symbols > 0 && t.crosses() { // an embedding's features are not divided into units
		t.units = 0
	} else if p.Heads > 1 {
		t.units = (1 + k%max(1, p.Heads-1)) * p.HeadUnits() % n
	} else {
		t.units = (1 + k%max(1, n-1)) % n
	}
	type kind struct {
		copies float64
		steps  int
	}
	alike := map[kind][]int{}
	for j := range t.from {
		of := kind{copies: d.Copies(j)}
		if d.lengths != nil {
			of.steps = d.lengths[j]
		}
		alike[of] = append(alike[of], j)
	}
	for _, some := range alike {
		for i, j := range some {
			t.from[j] = some[(i+1+k%max(1, len(some)-1))%len(some)]
		}
	}
	return t
}

// SetTurn has p's Write write turned data from now on, and answers be read in the order of the data that
// were given to it. A nil turn changes nothing.
func SetTurn(p *Plan, t *Turn) { p.turn = t }

// Turned returns d after a turn, as Write writes it.
func (d *Data) Turned(t *Turn) *Data {
	out := DataFor(d.Problem, d.Distinct)
	for _, one := range d.Tensors {
		out.Tensors = append(out.Tensors, t.turned(one))
	}
	return out
}

// crosses reports whether a shortcut adds the input to outputs: then features belong to units.
func (t *Turn) crosses() bool {
	_, ok := ShortcutFrom(t.problem, 0)
	return ok && t.problem.Projection == 0
}

// axes reports whether the rows, and whether the columns, of a tensor of data or of an answer are
// those of units, possibly for each of several gates.
func (t *Turn) axes(name string) (rows, cols bool) {
	p := t.problem
	name = strings.TrimPrefix(name, "grad_")
	shown := p.Projection == 0 // outputs of layers are units
	kind, layer, _ := strings.Cut(name, "_l")
	switch kind {
	case "weight_ih":
		if first := layer == "0" || strings.HasPrefix(layer, "0_"); first {
			return !p.OneHot, p.OneHot || t.crosses()
		}
		return true, shown
	case "weight_hh":
		return true, shown && p.Heads <= 1
	case "x", "dx":
		return false, t.crosses()
	case "bias_ih", "bias_hh", "peephole", "weight_hr", "gain_ih", "gain_hh", "unprojected":
		return false, true
	case "weight_out":
		return false, shown && p.Dense == 0
	case "weight_dense", "weight_ahead", "dy", "y":
		return false, shown
	}
	for i, s := range p.Cell.States {
		if kind == s || kind == s+"0" {
			return false, i > 0 || shown
		}
	}
	return false, false
}

// turned returns a tensor of d as the turned data have it.
func (t *Turn) turned(one Tensor) Tensor {
	if t == nil {
		return one
	}
	rows, cols := t.axes(one.Name)
	h := t.problem.Hidden
	source := func(row int) int { return row }
	switch {
	case one.PerSequence:
		n := len(t.from)
		source = func(row int) int { return row - row%n + t.from[row%n] }
	case rows:
		source = func(row int) int { return row - row%h + (row%h+t.units)%h }
	}
	shift := 0
	if cols {
		shift = t.units
	}
	out := make([]float32, len(one.Values))
	parallel.For(one.Rows, func(row int) {
		from := source(row)
		turnRow(out[row*one.Cols:(row+1)*one.Cols], one.Values[from*one.Cols:(from+1)*one.Cols], h, shift)
	})
	one.Values = out
	return one
}

// turnRow copies from to to. In each block of h values, the value at i+shift goes to i.
func turnRow(to, from []float32, h, shift int) {
	if shift == 0 {
		copy(to, from)
		return
	}
	for i := 0; i < len(from); i += h {
		copy(to[i:], from[i+shift:i+h])
		copy(to[i+h-shift:], from[i:i+shift])
	}
}

// back returns the values of a part of an answer to turned data, of so many rows, in the order of the answer to the data. Where they
// move, they go to buffer, which grows as needed.
func (t *Turn) back(r Result, rows int, values []float32, buffer *[]float32) []float32 {
	if t == nil {
		return values
	}
	units, columns := t.axes(r.Name)
	h := t.problem.Hidden
	target := func(row int) int { return row }
	switch {
	case r.PerSequence:
		batch, n := t.problem.Batch, len(t.from)
		target = func(row int) int {
			b := row % batch
			return row - b%n + t.from[b%n]
		}
	case units:
		target = func(row int) int { return row - row%h + (row%h+t.units)%h }
	}
	shift := 0
	if columns {
		shift = (h - t.units) % h
	}
	out := slices.Grow((*buffer)[:0], len(values))[:len(values)]
	*buffer = out
	cols := len(values) / max(1, rows)
	parallel.For(rows, func(row int) {
		to := target(row)
		turnRow(out[to*cols:(to+1)*cols], values[row*cols:(row+1)*cols], h, shift)
	})
	return out
}
