package rnn

import (
	"fmt"

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
	First, Rows int  // its rows in R, which are columns of the products
	From, Units int  // columns of the state that it multiplies
	Inner       bool // it multiplies the inner value in place of a state: see cell.Cell.Inner
}

// Blocks returns gate g's blocks of R, one a head, in order.
func (p Problem) Blocks(g int) []Block {
	if p.Heads <= 1 {
		return blockOf(p, g, 1)
	}
	list, u := make([]Block, p.Heads), p.HeadUnits()
	for k := range list {
		list[k] = Block{First: g*p.Hidden + k*u, Rows: u, From: k * u, Units: u, Inner: g >= p.Cell.Outer()}
	}
	return list
}

// blockOf returns the block of n gates from g without heads; none if n is 0.
func blockOf(p Problem, g, n int) []Block {
	if n == 0 {
		return nil
	}
	return []Block{{First: g * p.Hidden, Rows: n * p.Hidden, Units: Emits(p), Inner: g >= p.Cell.Outer()}}
}

// AllBlocks returns the blocks of all gates that have a recurrent product, gate after gate. If
// grouped, and without heads, they are one block, and inner gates another.
func (p Problem) AllBlocks(grouped bool) []Block {
	if grouped && p.Heads <= 1 {
		outer := p.Cell.Outer()
		return append(blockOf(p, 0, outer), blockOf(p, outer, p.Cell.Multiplied()-outer)...)
	}
	var list []Block
	for g := range p.Cell.Multiplied() {
		list = append(list, p.Blocks(g)...)
	}
	return list
}

// Weights narrows R, or its gradient, to the block.
func (b Block) Weights(r schedule.View) schedule.View { return r.Band(b.First, b.Rows) }

// Of narrows recurrent products, or their gradients, to the columns that the block computes.
func (b Block) Of(products schedule.View) schedule.View { return products.Columns(b.First, b.Rows) }

// State narrows a state, or its gradient, to the columns that the block multiplies.
func (b Block) State(v schedule.View) schedule.View { return v.Columns(b.From, b.Units) }
