package equations

import "rnnbench/rnn/cell"

// rows returns the place of each gate among the rows of W: gates with R h come first, then those with R
// of the inner value, as R has rows for these alone.
func (d *definition) rows() []int {
	rows := make([]int, len(d.gates))
	n := 0
	for _, kind := range [][2]bool{{true, false}, {true, true}, {false, false}} {
		for i, g := range d.gates {
			if kind == [2]bool{g.recurrent, g.inner} {
				rows[i], n = n, n+1
			}
		}
	}
	return rows
}

// cell is a cell without programs.
func (d *definition) cell() cell.Cell {
	c := cell.Cell{Window: d.window, Through: d.through, Gates: make([]string, len(d.gates))}
	c.Equations, c.Value = d.interpreters()
	for i, row := range d.rows() {
		c.Gates[row] = d.gates[i].text
		if d.gates[i].recurrent {
			c.Recurrent++
		}
		if d.gates[i].inner {
			c.Inner++
		}
	}
	for i, s := range d.states {
		c.States = append(c.States, s.text)
		if s.positive {
			c.Positive = append(c.Positive, i)
		}
		if s.fixed {
			c.Fixed = append(c.Fixed, i)
		}
	}
	for _, w := range d.weights {
		c.Peeps = append(c.Peeps, w.text)
	}
	return c
}

// A lowering turns a definition into a program of point-wise operations.
type lowering struct {
	*definition
	rows     []int
	program  cell.Program
	temps    int
	values   []cell.Ref            // of the equations so far
	bounds   []bounds              // of them
	products map[cell.Ref]cell.Ref // of a gate, with its bias

	innerKnown bool // the inner value is computed
}

// lower returns the forward program of d, which keeps nothing.
func lower(d *definition) cell.Program {
	p := &lowering{definition: d, rows: d.rows(), products: map[cell.Ref]cell.Ref{}}
	for _, e := range d.equations {
		v := p.lower(e.expr)
		if e.next >= 0 {
			v = p.next(v, cell.Ref{Kind: cell.Next, Index: e.next})
		}
		p.values, p.bounds = append(p.values, v), append(p.bounds, p.boundsOf(e.expr))
	}
	return p.program
}

// do appends an operation. It ignores b if the operation has one operand.
func (p *lowering) do(op cell.Op, a, b cell.Ref) cell.Ref {
	in := cell.Instr{Op: op, A: a}
	if op.Operands() > 1 {
		in.B = b
	}
	return p.append(in)
}

func (p *lowering) append(in cell.Instr) cell.Ref {
	in.Out = cell.Ref{Kind: cell.Temp, Index: p.temps}
	p.temps++
	p.program = append(p.program, in)
	return in.Out
}

// next makes v a next state. A value that was computed for this gets its name; any other is copied.
func (p *lowering) next(v, state cell.Ref) cell.Ref {
	if v.Kind != cell.Temp {
		v = p.do(cell.Copy, v, v)
	}
	names := func(r *cell.Ref) {
		if *r == v {
			*r = state
		}
	}
	for i := range p.program {
		in := &p.program[i]
		names(&in.Out)
		names(&in.A)
		names(&in.B)
	}
	for i := range p.values {
		names(&p.values[i])
	}
	for k, r := range p.products {
		names(&r)
		p.products[k] = r
	}
	return state
}

func (p *lowering) lower(n *node) cell.Ref {
	switch n.form {
	case constant:
		return p.append(cell.Instr{Op: cell.Const, Value: float32(n.number)})
	case value:
		return p.values[n.index]
	case before:
		return cell.Ref{Kind: cell.Prev, Index: n.index}
	case after:
		return cell.Ref{Kind: cell.Next, Index: n.index}
	case weight:
		return cell.Ref{Kind: cell.Peep, Index: n.index}
	case fromInput:
		return p.product(cell.X, cell.BX, n.index)
	case fromState:
		if p.gates[n.index].inner && !p.innerKnown {
			p.innerKnown = true
			p.next(p.lower(p.inner), cell.Ref{Kind: cell.Inner})
		}
		return p.product(cell.R, cell.BR, n.index)
	}
	if n.of == &minus && n.args[0].form == constant && n.args[0].number == 1 {
		a := p.lower(n.args[1])
		return p.do(cell.OneMinus, a, a)
	}
	var args []cell.Ref
	for _, a := range n.args {
		args = append(args, p.lower(a))
	}
	if n.of.name == "sqrt" && p.boundsOf(n.args[0]).least < 0 {
		args[0] = p.do(cell.ReLU, args[0], args[0]) // its gradient is 0 below 0, where a root's is as of 0
	}
	return n.of.lower(p, args[0], args[len(args)-1])
}

// product is the product of a gate with its bias, computed once.
func (p *lowering) product(of, withBias cell.Kind, gate int) cell.Ref {
	r := cell.Ref{Kind: of, Index: p.rows[gate]}
	if _, ok := p.products[r]; !ok {
		p.products[r] = p.do(cell.Add, r, cell.Ref{Kind: withBias, Index: r.Index})
	}
	return p.products[r]
}
