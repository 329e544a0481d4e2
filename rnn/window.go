package rnn

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Tap is what the products of a layer's input have of one step of the cell's
// window: Taps[k] multiplies what the layer read k steps before. Before the
// first step that is 0, so that the tap has no rows there.
type Tap struct {
	W, DW schedule.View // the weights and, where training, their gradients, G·H × width
	In    schedule.View // what they multiply, width columns
}

// Of narrows v, whose rows are those of the steps that the tap was made for, to
// the last of them: those in which the tap has a part.
func (t Tap) Of(v schedule.View) schedule.View { return v.Band(v.Rows-t.In.Rows, t.In.Rows) }

// Taps are the parts of layer l's input products at steps [t, t+n). All cells
// have the first; taps that have no row are left out.
func (p *Matrices) Taps(l, t, n int) []Tap {
	var taps []Tap
	for k := range min(p.Cell.Window, t+n) {
		from := max(t, k)
		tap := Tap{W: p.tap(p.Layer[l].W, l, k), In: p.InputOf(l, from-k, t+n-from)}
		if p.Pass == Train {
			tap.DW = p.tap(p.Layer[l].Grad.W, l, k)
		}
		taps = append(taps, tap)
	}
	return taps
}

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

// ZeroTaps sets to zero the gradients of layer l's weights that no step is long
// enough after the first to use.
func (p *Plan) ZeroTaps(stream, l int) {
	for k := p.Steps; k < p.Cell.Window; k++ {
		p.Do(stream, schedule.Map{Op: cell.Zero, Out: p.tap(p.Layer[l].Grad.W, l, k)})
	}
}
