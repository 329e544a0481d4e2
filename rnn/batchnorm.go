package rnn

import (
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// NormBatch is the Problem.Norm of layers that normalise their input products over the minibatch: the
// sequence-wise batch normalisation of Laurent et al. (2015), as in Deep Speech 2 (Amodei et al. 2015).
// The cell reads gain_ih ∘ (W·x - mean) / √(variance + 1e-5) in place of W·x, before biases are added.
// Mean and variance of each unit of each gate are over all steps and sequences, in both passes.
// Recurrent products stay as they are.
const NormBatch = "batch"

// A BatchNormaliser is a technique that forms the input products of all steps at once, and can normalise
// them. Layout declines NormBatch for all others.
type BatchNormaliser interface {
	Technique
	NormalisesBatch()
}

// declineBatchNorm says why t cannot normalise the layers of p over the minibatch.
func declineBatchNorm(t Technique, p Problem) error {
	_, can := t.(BatchNormaliser)
	decline := func(format string, args ...any) error {
		return fmt.Errorf("%w: norm=%s %s", schedule.ErrNorm, NormBatch, fmt.Sprintf(format, args...))
	}
	switch {
	case !can:
		return decline("needs the input products of all steps at once, which only cudnnstyle, persistent, scan and newton form: set norm to none")
	case p.Steps == 1 || p.Calls > 0:
		return decline("has statistics of many steps, but a run computes %d: set norm to none", p.Steps)
	case p.Lengths != "" || p.History > 0 || p.Heads > 1 || p.Projection > 0:
		return decline("goes with no lengths, history, heads and projection yet: set these to none")
	}
	return nil
}

// A BatchNorm normalises the input products of one layer over all steps and sequences. Its methods list the
// operations that a technique appends.
type BatchNorm struct {
	Gain, DGain *schedule.Matrix // 1 × G·H; DGain where training

	hat      *schedule.Matrix // T·B × G·H: normalised products
	mean     *schedule.Matrix // 1 × G·H: of the products, then of their gradients
	root     *schedule.Matrix // 1 × G·H: √(variance + ε)
	part     *schedule.Matrix // 1 × G·H: 1 / (T·B)
	epsilon  *schedule.Matrix // 1 × G·H
	d, slope *schedule.Matrix // where training, the gradient of the products, T·B × G·H, and a row for it
}

// newBatchNorm makes the matrices of a layer; nil: it has none.
func newBatchNorm(p *Plan, name func(string) string, rows int) *BatchNorm {
	if p.Norm != NormBatch {
		return nil
	}
	gh, train := len(p.Cell.Gates)*p.Hidden, p.Pass == Train
	row := func(s string) *schedule.Matrix { return p.Matrix(name(s), 1, gh) }
	m := &BatchNorm{
		Gain: row("gx"), DGain: matrixIf(p, train, name("dgx"), 1, gh), hat: p.Matrix(name("x·W normalised"), rows, gh),
		mean: row("mean of x·W"), root: row("root of x·W"), part: row("1/rows"), epsilon: row("epsilon"),
		d: matrixIf(p, train, name("d(x·W) normalised"), rows, gh), slope: matrixIf(p, train, name("slope of x·W"), 1, gh),
	}
	p.Prepare(schedule.Map{Op: cell.Const, Out: m.part.All(), Value: float32(1 / float64(rows))})
	p.Prepare(schedule.Map{Op: cell.Const, Out: m.epsilon.All(), Value: schedule.NormEpsilon})
	return m
}

// Input normalises x, the input products of all steps, in place.
func (m *BatchNorm) Input(x schedule.View) []schedule.Op {
	if m == nil {
		return nil
	}
	hat, mean, root, part := m.hat.All(), m.mean.All(), m.root.All(), m.part.All()
	return []schedule.Op{
		schedule.SumRows{A: x, Out: mean},
		schedule.Map{Op: cell.Mul, Out: mean, A: mean, B: part},
		schedule.Map{Op: cell.Sub, Out: hat, A: x, B: mean},
		schedule.Map{Op: cell.Mul, Out: x, A: hat, B: hat},
		schedule.SumRows{A: x, Out: root},
		schedule.Map{Op: cell.Mul, Out: root, A: root, B: part},
		schedule.Map{Op: cell.Add, Out: root, A: root, B: m.epsilon.All()},
		schedule.Map{Op: cell.Sqrt, Out: root, A: root},
		schedule.Map{Op: cell.Div, Out: hat, A: hat, B: root},
		schedule.Map{Op: cell.Mul, Out: x, A: hat, B: m.Gain.All()},
	}
}

// Products is the gradient of the products, given dx, that of what the cell reads.
func (m *BatchNorm) Products(dx schedule.View) schedule.View {
	if m == nil {
		return dx
	}
	return m.d.All()
}

// InputBack forms the gradients of the products and of the gain from dx, that of what the cell reads. A unit
// of a gate has gain/root ∘ (dx - mean(dx) - hat ∘ mean(dx ∘ hat)).
func (m *BatchNorm) InputBack(dx schedule.View) []schedule.Op {
	if m == nil {
		return nil
	}
	d, hat, mean, slope, part := m.d.All(), m.hat.All(), m.mean.All(), m.slope.All(), m.part.All()
	return []schedule.Op{
		schedule.Map{Op: cell.Mul, Out: d, A: dx, B: hat},
		schedule.SumRows{A: d, Out: m.DGain.All()},
		schedule.SumRows{A: dx, Out: mean},
		schedule.Map{Op: cell.Mul, Out: mean, A: mean, B: part},
		schedule.Map{Op: cell.Mul, Out: slope, A: m.DGain.All(), B: part},
		schedule.Map{Op: cell.Mul, Out: d, A: hat, B: slope},
		schedule.Map{Op: cell.Sub, Out: d, A: dx, B: d},
		schedule.Map{Op: cell.Sub, Out: d, A: d, B: mean},
		schedule.Map{Op: cell.Div, Out: slope, A: m.Gain.All(), B: m.root.All()},
		schedule.Map{Op: cell.Mul, Out: d, A: d, B: slope},
	}
}
