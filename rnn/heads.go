package rnn

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"rnnbench/rnn/schedule"
)

// Heads divide the units of each layer into equal parts that the recurrent product does not
// mix: each gate's part of R is block-diagonal, and only its blocks are stored, one under the
// other. So row g·H+j of R, which is for unit j of gate g, has a weight for each unit of j's
// head. That is the memory mixing of Beck et al. (2024), xLSTM, section 2.2.

// HeadUnits is the number of units of a head, or of a layer without heads: the length of a row of
// R. In a layer with a projection, its outputs count in place of units.
func (p Problem) HeadUnits() int { return Emits(p) / max(1, p.Heads) }

// checkHeads reports heads that are not of equal size.
func (p Problem) checkHeads() error {
	if p.Heads < 0 || p.Heads > max(1, p.Hidden) || p.Heads > 1 && p.Hidden%p.Heads != 0 {
		return fmt.Errorf("rnn: heads is %d: it must divide the hidden units, of which a layer has %d", p.Heads, p.Hidden)
	}
	return nil
}

// declineHeads reports why p's layers cannot have heads.
func (p Problem) declineHeads() error {
	if p.Heads > 1 && p.Cell.Recurrent == 0 {
		return fmt.Errorf("%w: %v has no recurrent product, so heads would divide nothing: set heads to none", schedule.ErrHeads, p.Cell)
	}
	return nil
}

// A Block is a part of R that one product multiplies by a state: the rows of one gate for one head
// or, without heads, of one gate or of all gates.
type Block struct {
	first, rows  int // its rows in R, which are columns of the products
	state, units int // columns of the state that it multiplies
}

// Blocks returns gate g's blocks of R, one a head, in order.
func (p Problem) Blocks(g int) []Block {
	list := make([]Block, max(1, p.Heads))
	if p.Heads <= 1 {
		list[0] = Block{first: g * p.Hidden, rows: p.Hidden, units: Emits(p)}
		return list
	}
	u := p.HeadUnits()
	for k := range list {
		list[k] = Block{first: g*p.Hidden + k*u, rows: u, state: k * u, units: u}
	}
	return list
}

// AllBlocks returns the blocks of all gates that have a recurrent product, gate after gate. If
// grouped, and without heads, they are one block.
func (p Problem) AllBlocks(grouped bool) []Block {
	if grouped && p.Heads <= 1 {
		return []Block{{rows: p.Cell.Recurrent * p.Hidden, units: Emits(p)}}
	}
	var list []Block
	for g := range p.Cell.Recurrent {
		list = append(list, p.Blocks(g)...)
	}
	return list
}

// Weights narrows R, or its gradient, to the block.
func (b Block) Weights(r schedule.View) schedule.View { return r.Band(b.first, b.rows) }

// Of narrows recurrent products, or their gradients, to the columns that the block computes.
func (b Block) Of(products schedule.View) schedule.View { return products.Columns(b.first, b.rows) }

// State narrows a state, or its gradient, to the columns that the block multiplies.
func (b Block) State(v schedule.View) schedule.View { return v.Columns(b.state, b.units) }

// wholeR is R, or its gradient, as a matrix of recurrent gates·H × H, with zeros outside the
// blocks.
func wholeR[F float32 | float64](p Problem, r []F) []F {
	if p.Heads <= 1 {
		return r
	}
	h, u := p.Hidden, p.HeadUnits()
	out := make([]F, len(r)/u*h)
	for row := range len(r) / u {
		copy(out[row*h+row%h/u*u:], r[row*u:(row+1)*u])
	}
	return out
}

// keptByGate is kept for gradients of products. Columns that are by head are put in the order of gates.
func keptByGate(c *stepper, b *LayerBack, m *schedule.Matrix) ([]float64, error) {
	d, err := c.kept(m)
	if err != nil || !b.ByHead {
		return d, err
	}
	out, h, u, gates := make([]float64, len(d)), c.Hidden, c.HeadUnits(), m.Cols/c.Hidden
	parallel(len(d)/m.Cols, func(row int) {
		from, to := d[row*m.Cols:(row+1)*m.Cols], out[row*m.Cols:(row+1)*m.Cols]
		for k := range c.Heads {
			for g := range gates {
				copy(to[g*h+k*u:][:u], from[(k*gates+g)*u:])
			}
		}
	})
	return out, nil
}

// recurrentWeights checks the gradient of R, block by block; d has the gradients of the products.
func recurrentWeights(c *stepper, name string, rng *rand.Rand, d []float64, stride int, states []float64) {
	for _, b := range c.AllBlocks(true) {
		signs := draw(rng, b.units)
		c.weights(name, d, stride, b.first, b.first+b.rows, factorsOf(columns(states, Emits(c.Problem), b.state, b.units), b.units, signs), signs, b.units)
	}
}

// blocksOf extracts R's blocks from a matrix of recurrent gates·H × H.
func blocksOf(p Problem, whole []float64) []float64 {
	if p.Heads <= 1 {
		return whole
	}
	h, u := p.Hidden, p.HeadUnits()
	out := make([]float64, 0, len(whole)/h*u)
	for row := range len(whole) / h {
		out = append(out, whole[row*h+row%h/u*u:][:u]...)
	}
	return slices.Clip(out)
}
