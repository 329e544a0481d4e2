package rnn

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// An Embedding is a table that training changes. The row of a step's symbol gives the first
// features of the first layer's input. Techniques do not know of it: they see X and its gradient.
type Embedding struct {
	Table *schedule.Matrix // Symbols × Embedding
	Grad  *schedule.Matrix // its gradient, of the same size, where training
}

// symbols views the symbol of each step of each sequence.
func (p *Matrices) symbols() schedule.View { return p.Given.All().Columns(0, 1) }

// embed forms X: rows of the table, and beside them what is given with the symbols.
func embed(p *Plan) {
	if p.Embed == nil {
		return
	}
	x, e := p.X.All(), p.Problem.Embedding
	p.Do(0, schedule.Gather{Index: p.symbols(), Table: p.Embed.Table.All(), Out: x.Columns(0, e)})
	if rest := p.Input - e; rest > 0 {
		p.Do(0, schedule.Map{Op: cell.Copy, Out: x.Columns(e, rest), A: p.Given.All().Columns(1, rest)})
	}
}

// embeddingGradient sums the gradient of X into the rows of the table, in the order of steps.
func embeddingGradient(p *Plan) {
	if p.Embed == nil || p.Pass != Train {
		return
	}
	p.Do(0, schedule.Map{Op: cell.Zero, Out: p.Embed.Grad.All()})
	p.Do(0, schedule.Scatter{Index: p.symbols(), Src: p.DX.All().Columns(0, p.Problem.Embedding), Table: p.Embed.Grad.All()})
}
