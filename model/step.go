package model

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
)

// A Work is what one step of a recurrent layer asks for: a product of R, Rows ×
// Hidden, with the states of Batch sequences, and the cell.
type Work struct {
	Rows, Hidden, Batch int
	Bytes               float64 // of one weight or state
	Pointwise           int     // sigmoids and hyperbolic tangents per unit
}

// Recurrent is the work of one step of a layer of c.
func Recurrent(c *cell.Cell, hidden, batch int, bytes float64) (Work, error) {
	switch {
	case c.Recurrent == 0:
		return Work{}, fmt.Errorf("model: cell %s has no recurrent product: its recurrence is a scan", c.Name)
	case hidden < 1 || batch < 1 || hidden > 1<<24 || batch > 1<<24:
		return Work{}, fmt.Errorf("model: hidden %d and batch %d: both must be 1 to %d", hidden, batch, 1<<24)
	}
	w := Work{Rows: c.Recurrent * hidden, Hidden: hidden, Batch: batch, Bytes: bytes}
	for _, in := range c.Inference {
		if in.Op == cell.Sigmoid || in.Op == cell.Tanh {
			w.Pointwise++
		}
	}
	return w, nil
}

// FLOPs is the number of operations of the product.
func (w Work) FLOPs() float64 { return 2 * float64(w.Rows) * float64(w.Hidden) * float64(w.Batch) }

// Weights is the number of bytes of R.
func (w Work) Weights() float64 { return float64(w.Rows) * float64(w.Hidden) * w.Bytes }

// A Split divides the product of one module among its parts.
type Split struct {
	Rows, Cols, Batch int
}

// Parts is the number of parts that have something to do.
func (s Split) Parts() int { return s.Rows * s.Cols * s.Batch }

// A Tiling is a split for each level, from the innermost; where a level has one
// part, it is {1, 1, 1}.
type Tiling []Split

// String spells the splits that divide anything, from the outermost: rows ×
// columns, and the batch where it is divided.
func (t Tiling) String() string {
	var words []string
	for _, s := range slices.Backward(t) {
		switch {
		case s.Parts() == 1:
		case s.Batch > 1:
			words = append(words, fmt.Sprintf("%d×%d/%d", s.Rows, s.Cols, s.Batch))
		default:
			words = append(words, fmt.Sprintf("%d×%d", s.Rows, s.Cols))
		}
	}
	if words == nil {
		return "whole"
	}
	return strings.Join(words, ", ")
}

// groups is the number of parts within a module of a level that have sequences of their own.
func (t Tiling) groups(level int) int {
	n := 1
	for _, s := range t[:level+1] {
		n *= s.Batch
	}
	return n
}

// A Step is what one step takes under one tiling, in seconds.
type Step struct {
	Work   Work
	Tiling Tiling

	Home     string  // level at which the weights stay
	Resident bool    // the weights stay in memory of one core each, and no other core reads them
	Share    float64 // bytes of weights in one module of that level

	Compute   float64 // products
	Weights   float64 // reading the weights from their home, beside the products
	Stream    float64 // fetching input products and keeping states
	Exchange  float64 // moving states and partial sums between parts
	Sync      float64 // synchronisation, and the latency of what was exchanged
	Pointwise float64 // sigmoids and hyperbolic tangents

	Time  float64
	Limit string // what decides Time: "compute", "weights", "memory", "exchange" or "latency"
}

// FLOPS is the rate of products.
func (s Step) FLOPS() float64 { return s.Work.FLOPs() / s.Time }

func ceil(a, b int) int { return (a + b - 1) / b }

// Predict predicts a step of w on m under tiling t, which has a split for each level.
//
// Weights stay at the innermost level whose modules hold their share. Going
// inwards, the parts of a module read the states that their columns need and
// write the states of their rows; parts that divide the columns exchange partial
// sums as well, and synchronise once more.
func (m *Machine) Predict(w Work, t Tiling) (Step, error) {
	if len(t) != len(m.Levels) {
		return Step{}, fmt.Errorf("model: a tiling of %d levels on machine %q, which has %d", len(t), m.Name, len(m.Levels))
	}
	s := Step{Work: w, Tiling: t}
	gates := float64(w.Rows) / float64(w.Hidden)
	rows, cols, batch := w.Rows, w.Hidden, w.Batch
	below := m.Private()
	for i, l := range slices.Backward(m.Levels) {
		split := t[i]
		if split.Rows < 1 || split.Cols < 1 || split.Batch < 1 || split.Parts() > l.P {
			return Step{}, fmt.Errorf("model: level %s of machine %q has %d parts, and the tiling %d×%d/%d", l.Name, m.Name, l.P, split.Rows, split.Cols, split.Batch)
		}
		if share := float64(rows) * float64(cols) * w.Bytes; share <= l.M || i == len(m.Levels)-1 {
			s.Home, s.Share, s.Resident, s.Weights = l.Name, share, i < below, 0
			if l.B > 0 {
				// Parts with sequences of their own read all weights each.
				s.Weights = share * float64(t.groups(i)) / l.B
			}
		}
		rows, cols, batch = ceil(rows, split.Rows), ceil(cols, split.Cols), ceil(batch, split.Batch)
		if split.Rows*split.Cols == 1 {
			continue // parts have sequences of their own: nothing to exchange
		}
		read := float64(cols)
		written := float64(rows) / gates
		rounds := 1.0
		if split.Cols > 1 {
			written += 2 * float64(rows) // partial sums, written and read
			rounds = 2
		}
		rate := l.X
		if rate == 0 {
			rate = l.B
		}
		s.Exchange += float64(split.Parts()) * (read + written) * float64(batch) * w.Bytes / rate
		s.Sync += rounds * (l.C + l.L)
	}
	rate := m.FLOPS / float64(m.Parts())
	if w.Bytes <= 2 && m.Half > 0 {
		rate *= m.Half
	}
	s.Compute = 2 * float64(rows) * float64(cols) * float64(batch) / rate
	// The input products come from main memory or, just computed, from the other
	// parts.
	far := m.Levels[len(m.Levels)-1].B
	if x := m.Levels[min(below, len(m.Levels)-1)].X; x > 0 {
		far = min(far, x)
	}
	s.Stream = float64(w.Rows+w.Hidden) * float64(w.Batch) * w.Bytes / far
	if m.Pointwise > 0 {
		// Parts that divide the columns share the units of their rows.
		units := float64(rows) / gates * float64(batch)
		s.Pointwise = units * float64(w.Pointwise) / (m.Pointwise / float64(m.Parts()))
	}
	s.finish(m.Overlap, batch)
	return s, nil
}

// finish adds up the parts of a step. Reading weights always overlaps with their products.
func (s *Step) finish(overlap bool, batch int) {
	largest := func(names []string, values []float64) (string, float64) {
		best := 0
		for i, v := range values {
			if v > values[best] {
				best = i
			}
		}
		return names[best], values[best]
	}
	limit, work := largest([]string{"compute", "weights"}, []float64{s.Compute, s.Weights})
	if !overlap {
		s.Time = work + s.Exchange + s.Sync + s.Pointwise + s.Stream
		s.Limit, _ = largest([]string{limit, "memory", "exchange", "latency"}, []float64{work, s.Stream, s.Exchange, s.Sync + s.Pointwise})
		return
	}
	// One sequence after the other fills the pipeline: a step ends neither
	// before the busiest stage has served all of them nor before one sequence
	// has passed through every stage.
	n := float64(batch)
	chain := s.Sync + (s.Compute+s.Exchange+s.Pointwise)/n
	s.Limit, s.Time = largest([]string{limit, "memory", "exchange", "latency"}, []float64{work, s.Stream, s.Exchange + s.Pointwise, chain})
}

// Bands is the tiling of Diamos et al., section 4.1: each core has a band of rows. Below the cores
// it is the fastest one.
func (m *Machine) Bands(w Work) (Step, error) {
	at := m.Private()
	return best(m, w, func(s Step) bool { return s.Tiling[at].Rows == min(m.Levels[at].P, w.Rows) })
}

// Best is the fastest tiling.
func (m *Machine) Best(w Work) (Step, error) {
	return best(m, w, func(Step) bool { return true })
}

// Persistent is the fastest tiling whose weights stay in the cores. ok is false if there is none.
func (m *Machine) Persistent(w Work) (s Step, ok bool, err error) {
	s, err = best(m, w, func(s Step) bool { return s.Resident })
	return s, s.Tiling != nil, err
}

// Room is the number of bytes of weights that the memories of one core hold, and the memory that
// holds most. With one worker, a cache that cores share counts as its own. hidden is the largest
// layer of c whose weights stay in those of all cores under Bands; 0 if none does.
func (m *Machine) Room(c *cell.Cell, bytes float64) (room float64, in string, hidden int, err error) {
	inner := 1 // modules of a level in one core
	for _, l := range slices.Backward(m.Levels[:m.Private()]) {
		if holds := float64(inner) * l.M; holds > room {
			room, in = holds, l.Name
		}
		inner *= l.P
	}
	low, high := 0, 1<<20 // low stays, high does not
	for high-low > 1 {
		h := (low + high) / 2
		w, err := Recurrent(c, h, 1, bytes)
		if err != nil {
			return 0, "", 0, err
		}
		s, err := m.Bands(w)
		if err != nil {
			return 0, "", 0, err
		}
		if s.Resident {
			low = h
		} else {
			high = h
		}
	}
	return room, in, low, nil
}

// best is the fastest step for which ok holds, without a tiling if none does.
func best(m *Machine, w Work, ok func(Step) bool) (Step, error) {
	best := Step{Time: math.Inf(1)}
	for t := range m.Tilings(w) {
		s, err := m.Predict(w, t)
		if err != nil {
			return s, err
		}
		if s.Time < best.Time && ok(s) {
			best = s
			best.Tiling = slices.Clone(t)
		}
	}
	return best, nil
}

// Tilings yields every way to divide w over all parts of m, reusing the slice.
func (m *Machine) Tilings(w Work) iter.Seq[Tiling] {
	return func(yield func(Tiling) bool) {
		t := make(Tiling, len(m.Levels))
		var fill func(level int, rows, cols, batch int) bool
		fill = func(level, rows, cols, batch int) bool {
			if level < 0 {
				return yield(t)
			}
			for _, s := range splits(m.Levels[level].P, rows, cols, batch) {
				t[level] = s
				if !fill(level-1, ceil(rows, s.Rows), ceil(cols, s.Cols), ceil(batch, s.Batch)) {
					return false
				}
			}
			return true
		}
		fill(len(m.Levels)-1, w.Rows, w.Hidden, w.Batch)
	}
}

// splits returns the factorisations of p by which rows × cols of batch sequences can be divided.
// Where there are too few rows, columns and sequences, parts stay idle.
func splits(p, rows, cols, batch int) []Split {
	var list []Split
	for b := 1; b <= min(p, batch); b++ {
		for c := 1; c <= min(p/b, cols); c++ {
			if p%b != 0 || p/b%c != 0 {
				continue
			}
			s := Split{Rows: min(p/b/c, rows), Cols: c, Batch: b}
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}
