package rnn

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// NormLayer is the Problem.Norm of layers that normalise their products and cell states, by layer
// normalisation (Ba, Kiros and Hinton 2016): norm(v) = (v - mean) / √(variance + 1e-5), over all
// values of v at one step of one sequence.
//
// What a cell reads of its products is then gain_ih ∘ norm(W·x) and gain_hh ∘ norm(R·h), each over
// the units of all gates together, before biases are added. In an LSTM, the output is
// o ∘ tanh(gain_c ∘ norm(c') + bias_c), and the next step reads c' itself. gain_c and bias_c are the
// last H values of gain_hh and bias_hh. These are the layers LayerNormLSTM and LayerNormGRU of haste
// (lmnt-com/haste). The LayerNormLSTMCell in PyTorch's benchmarks/fastrnns differs in one thing: its
// next step reads the normalised c'.
const NormLayer = "layer"

// A Normaliser is a technique whose steps can normalise their products. Layout declines norm for all
// others.
type Normaliser interface {
	Technique
	Normalises()
}

// checkNorm reports a norm that there is not.
func checkNorm(p Problem) error {
	if p.Norm != "" && p.Norm != NormLayer && p.Norm != NormBatch {
		return fmt.Errorf("rnn: there is no norm %q: set norm to none, %s or %s", p.Norm, NormLayer, NormBatch)
	}
	return nil
}

// declineNorm says why t cannot normalise the layers of p.
func declineNorm(t Technique, p Problem) error {
	_, can := t.(Normaliser)
	switch {
	case p.Norm == "":
	case p.Norm == NormBatch:
		return declineBatchNorm(t, p)
	case p.Cell.Norm() == nil:
		return fmt.Errorf("%w: no layer of %v with normalised products is published: set norm to none, or cell to rnn-tanh, gru or lstm", schedule.ErrNorm, p.Cell)
	case !can:
		return fmt.Errorf("%w: norm=%s needs sums over all units of a layer within a step, which only naive and cudnnstyle form: set norm to none", schedule.ErrNorm, p.Norm)
	case p.Heads > 1:
		return fmt.Errorf("%w: a norm over all units would mix the heads: set heads to none, or norm to none", schedule.ErrNorm)
	case p.Projection > 0:
		return fmt.Errorf("%w: no layer with both a projection and normalised products is published: set projection to none, or norm to none", schedule.ErrNorm)
	}
	return nil
}

// A Norm normalises what the cell reads of a layer's products. Its methods are the operations that a
// technique appends. Products are formed in InputProduct and RecurrentProduct, for Input and Recurrent.
// Inner stands for the recurrent products of inner gates. Where training, the backward operations of
// a step follow its cell's, in the opposite order.
type Norm struct {
	X, R   *schedule.Matrix // gains, 1 × G·H and 1 × recurrent gates·H
	DX, DR *schedule.Matrix // their gradients, where training

	// Where training, these hold the products of all steps, T·B × G·H and T·B × recurrent gates·H. The
	// backward operations leave the shares of steps and sequences in DX and DR in their place.
	input, recurrent *schedule.Matrix

	ofX, ofR, ofInner  *schedule.Matrix // T·B × 2: Stats, where training
	dInput, dRecurrent *schedule.Matrix // gradients of the products, T·B × G·H and T·B × rows of R, where training

	outer, inner int // columns of the recurrent products, and of inner gates
	value        *Inner
	batches      Batches
	name         func(string) string
}

// newNorm makes the gains of a layer; nil: products are not normalised.
func newNorm(p *Plan, name func(string) string, value *Inner) *Norm {
	if p.Norm != NormLayer {
		return nil
	}
	gh, rh, train := len(p.Cell.Gates)*p.Hidden, p.Cell.Recurrent*p.Hidden, p.Pass == Train
	outer := p.Cell.Outer() * p.Hidden
	return &Norm{
		X: p.Matrix(name("gx"), 1, gh), R: p.Matrix(name("gr"), 1, rh), DX: matrixIf(p, train, name("dgx"), 1, gh), DR: matrixIf(p, train, name("dgr"), 1, rh),
		outer: outer, inner: rh - outer, value: value, batches: p.Batches, name: name,
	}
}

// Use makes room in which the layer normalises, if it does: for all steps where training.
func (m *Norm) Use(p *Plan) {
	if m == nil || p.Pass != Train {
		return
	}
	of := func(s string, cols int) *schedule.Matrix { return p.Matrix(m.name(s), m.batches.Before(p.Steps), cols) }
	m.input, m.recurrent, m.ofX, m.ofR = of("x·W to normalise", m.X.Cols), of("h·R to normalise", m.R.Cols), of("stats of x·W", 2), of("stats of h·R", 2)
	if m.dInput, m.dRecurrent = of("d(x·W) normalised", m.X.Cols), of("d(h·R) normalised", m.outer); m.inner > 0 {
		m.ofInner = of("stats of c", 2)
	}
}

// rows views steps [t, t+n) of what is there where training.
func (m *Norm) rows(v *schedule.Matrix, t, n int) schedule.View {
	if v == nil {
		return schedule.View{}
	}
	return v.Band(m.batches.Before(t), m.batches.Rows(t, n))
}

// InputProduct is where the input products of steps [t, t+n) are formed which the cell reads from x.
func (m *Norm) InputProduct(x schedule.View, t, n int) schedule.View {
	if m == nil || m.input == nil {
		return x
	}
	return m.rows(m.input, t, n)
}

// RecurrentProduct is where the recurrent products of step t are formed which the cell reads from r.
func (m *Norm) RecurrentProduct(r schedule.View, t int) schedule.View {
	switch {
	case m == nil:
		return r
	case m.recurrent == nil:
		return r.Columns(0, m.outer)
	}
	return m.rows(m.recurrent, t, 1).Columns(0, m.outer)
}

// Input normalises the input products of steps [t, t+n) to x.
func (m *Norm) Input(x schedule.View, t, n int) schedule.Normalise {
	return schedule.Normalise{X: m.InputProduct(x, t, n), Gain: m.X.All(), Out: x, Stats: m.rows(m.ofX, t, n)}
}

// Recurrent normalises the recurrent products of step t to r.
func (m *Norm) Recurrent(r schedule.View, t int) schedule.Normalise {
	return schedule.Normalise{X: m.RecurrentProduct(r, t), Gain: m.R.All().Columns(0, m.outer), Out: r.Columns(0, m.outer), Stats: m.rows(m.ofR, t, 1)}
}

// Inner normalises the inner value of step t to r.
func (m *Norm) Inner(r schedule.View, t int) schedule.Normalise {
	return schedule.Normalise{X: m.value.Value(t, 1), Gain: m.R.All().Columns(m.outer, m.inner), Out: r.Columns(m.outer, m.inner), Stats: m.rows(m.ofInner, t, 1)}
}

// InnerBack is the gradient of Inner. dr is that of what the cell reads of the recurrent products.
func (m *Norm) InnerBack(dr schedule.View, t int) schedule.NormaliseBackward {
	return schedule.NormaliseBackward{
		DOut: dr.Columns(m.outer, m.inner), X: m.value.Value(t, 1), Gain: m.R.All().Columns(m.outer, m.inner), Stats: m.rows(m.ofInner, t, 1),
		DX: m.value.Grad(t), Share: m.rows(m.recurrent, t, 1).Columns(m.outer, m.inner),
	}
}

// RecurrentBack is the gradient of Recurrent.
func (m *Norm) RecurrentBack(dr schedule.View, t int) schedule.NormaliseBackward {
	x := m.RecurrentProduct(schedule.View{}, t)
	return schedule.NormaliseBackward{DOut: dr.Columns(0, m.outer), X: x, Gain: m.R.All().Columns(0, m.outer), Stats: m.rows(m.ofR, t, 1), DX: m.rows(m.dRecurrent, t, 1), Share: x}
}

// InputBack is the gradient of Input. dx is that of what the cell reads of the input products.
func (m *Norm) InputBack(dx schedule.View, t, n int) schedule.NormaliseBackward {
	x := m.rows(m.input, t, n)
	return schedule.NormaliseBackward{DOut: dx, X: x, Gain: m.X.All(), Stats: m.rows(m.ofX, t, n), DX: m.rows(m.dInput, t, n), Share: x}
}

// Gains sums the shares of steps [t, t+n) in the gradients of both gains, or adds them.
func (m *Norm) Gains(t, n int, more bool) [2]schedule.SumRows {
	return [2]schedule.SumRows{{A: m.rows(m.input, t, n), Out: m.DX.All(), Accumulate: more}, {A: m.rows(m.recurrent, t, n), Out: m.DR.All(), Accumulate: more}}
}
