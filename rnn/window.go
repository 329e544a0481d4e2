package rnn

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Tap is the part of a layer's input products that reads one step of the cell's window: Taps[k]
// multiplies what the layer read k steps before. Before the first step that is 0, so the tap has no
// rows there.
type Tap struct {
	W, DW schedule.View // the weights and, where training, their gradients, G·H × width
	In    schedule.View // what they multiply, width columns
	K     int           // how many steps before
	Again bool          // it is not the first of its K

	row int // first row in which it takes part
}

// Of narrows v, whose rows are those of the steps that the tap was made for, to those in which the
// tap takes part.
func (t Tap) Of(v schedule.View) schedule.View { return v.Band(t.row, t.In.Rows) }

// Taps returns the parts of layer l's input products at steps [t, t+n). All cells have the first;
// taps without rows are left out. Where sequences end within the steps, a tap of earlier steps has
// one part for each run.
func (p *Matrices) Taps(l, t, n int) []Tap {
	var taps []Tap
	for k := range min(p.Cell.Window, t+n) {
		from := max(t, k)
		for i, run := range p.Batches.Bands(k, from, t+n-from) {
			tap := Tap{W: p.tap(p.Layer[l].W, l, k), In: inputBefore(p, l, k, run), K: k, Again: i > 0, row: p.Batches.Rows(t, run.T-t)}
			if p.Pass == Train {
				tap.DW = p.tap(p.Layer[l].Grad.W, l, k)
			}
			taps = append(taps, tap)
		}
	}
	return taps
}

// Bands divides steps [t, t+n) into runs whose rows k steps before are one band.
func (b Batches) Bands(k, t, n int) []Run {
	switch {
	case n < 1:
		return nil
	case k == 0 || b.before == nil:
		return []Run{{t, n}}
	case k == 1:
		return b.Runs(t, n, n)
	}
	return b.Runs(t, n, 1)
}

// inputBefore views what layer l reads k steps before those of a run.
func inputBefore(p *Matrices, l, k int, run Run) schedule.View {
	if k == 0 {
		return p.InputOf(l, run.T, run.N)
	}
	row, n := p.Batches.Earlier(k, run), p.Batches.Rows(run.T, run.N)
	if l == 0 {
		return p.X.Band(row, n)
	}
	return p.Layer[l-1].State[0].Band(p.Batch+row, n)
}

// Earlier is the first of the rows k steps before those of a run, which has one step if k is more than 1.
func (b Batches) Earlier(k int, run Run) int { return b.Before(run.T-k+1) - b.At(run.T) }

// Later divides the steps that lie k steps after [t, t+n) into runs, as Taps does.
func (b Batches) Later(k, t, n int) []Run { return b.Bands(k, t+k, min(n, b.steps-t-k)) }

// TapWeights views the weights of each step of layer l's window.
func (p *Matrices) TapWeights(l int) []schedule.View {
	var v []schedule.View
	for k := range p.Cell.Window {
		v = append(v, p.tap(p.Layer[l].W, l, k))
	}
	return v
}

func (p *Matrices) tap(w *schedule.Matrix, l, k int) schedule.View {
	if l == 0 && p.OneHot {
		return w.All()
	}
	return w.All().Columns(k*p.Width(l), p.Width(l))
}

// ZeroTaps zeroes the gradients of layer l's weights that no step uses, since the sequences are
// shorter than the window.
func (p *Plan) ZeroTaps(stream, l int) {
	for k := p.Steps; k < p.Cell.Window; k++ {
		p.Do(stream, schedule.Map{Op: cell.Zero, Out: p.tap(p.Layer[l].Grad.W, l, k)})
	}
}
