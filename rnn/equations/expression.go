package equations

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// sum reads terms with + and - between them.
func (p *parser) sum() *node {
	if p.depth++; p.depth > mostDepth {
		p.fail(p.peek(), "more than %d parentheses stand within each other: name the inner part", mostDepth)
	}
	defer func() { p.depth-- }()
	total := p.product()
	beside := total // the first b; later terms may be the product that it belongs to
	for {
		at := p.peek()
		op := &plus
		switch {
		case p.take("+"):
		case p.take("-"):
			op = &minus
		default:
			if beside.form == bias && !total.sum {
				p.fail(beside.at, "b is the bias of a product: it stands in a sum with W x or R h")
			}
			return total
		}
		term := p.product()
		if term.form == bias {
			if beside = term; op == &minus {
				p.fail(at, "b cannot be subtracted: it is a weight, which may be below 0 itself")
			}
		}
		total = p.apply(op, at, total, term)
	}
}

// product reads factors with * and / between them.
func (p *parser) product() *node {
	n := p.factor()
	for {
		at := p.peek()
		op := &times
		switch {
		case p.take("*"):
		case p.take("/"):
			op = &over
		default:
			return n
		}
		m := p.factor()
		for _, f := range []*node{n, m} {
			if f.form == bias {
				p.fail(f.at, "b cannot be multiplied: it stands in a sum with W x or R h")
			}
		}
		if op == &over && m.span != positive && (m.form != constant || m.number == 0) {
			p.fail(m.at, "this divisor may be 0: divide by a positive number, by exp, sigmoid or softplus, or by a state declared > 0")
		}
		n = p.apply(op, at, n, m)
	}
}

// factor reads what stands between operators.
func (p *parser) factor() *node {
	t := p.peek()
	if t.class == end || t.class == newline {
		p.fail(t, "expected a value, found %v", t)
	}
	switch {
	case p.take("-"):
		if p.depth++; p.depth > mostDepth {
			p.fail(t, "more than %d signs stand before each other", mostDepth)
		}
		n := p.factor()
		p.depth--
		if n.form == bias {
			p.fail(n.at, "b cannot be subtracted: it is a weight, which may be below 0 itself")
		}
		return p.apply(&negate, t, n)
	case p.take("("):
		n := p.sum()
		p.need(")", " after an expression in parentheses")
		return n
	case t.class == number:
		p.at++
		return p.constant(t)
	case t.class == name:
		p.at++
		return p.named(t)
	}
	p.fail(t, "expected a value, found %v", t)
	return nil
}

func (p *parser) constant(t token) *node {
	v, err := strconv.ParseFloat(t.text, 64)
	if err != nil || math.Abs(v) > math.MaxFloat32 {
		p.fail(t, "%s is not a number that single precision holds", t.text)
	}
	return numeral(v, t)
}

// numeral is a number as devices have it: in single precision.
func numeral(v float64, t token) *node {
	v = float64(float32(v))
	n := &node{form: constant, number: v, at: t}
	switch {
	case v > 0:
		n.span = positive
	case v == 0:
		n.span = notNegative
	}
	return n
}

// apply makes the node of an operation. Operations on numbers are done at once.
func (p *parser) apply(f *function, at token, args ...*node) *node {
	a, b := args[0], args[len(args)-1]
	switch {
	case f == &plus && a.form == bias:
		return b
	case f == &plus && b.form == bias:
		return a
	case f == &minus && a.form == bias:
		return p.apply(&negate, at, b)
	case a.form == constant && b.form == constant:
		v := f.eval(a.number, b.number)
		if math.IsNaN(v) || math.Abs(v) > math.MaxFloat32 {
			p.fail(at, "this is not a number that single precision holds")
		}
		return numeral(v, at)
	}
	sum := (f == &plus || f == &minus) && (a.sum || b.sum)
	return &node{form: apply, of: f, args: args, span: f.span(a.span, b.span), sum: sum, at: a.at}
}

// named reads what a name stands for.
func (p *parser) named(t token) *node {
	if f := p.function(t.text); f != nil {
		return p.call(f, t)
	}
	if p.take("'") {
		s := p.state(t.text)
		switch {
		case s < 0:
			p.fail(t, "there is no state %s: only states have a next value", t.text)
		case p.states[s].equation < 0:
			p.fail(t, "%s' is read before it is computed: move its equation up", t.text)
		}
		return &node{form: after, index: s, span: p.equations[p.states[s].equation].span, at: t}
	}
	switch t.text {
	case "W", "R":
		return p.matrix(t)
	case "b":
		return &node{form: bias, at: t}
	case "x":
		p.fail(t, "the input may have another size than the layer: write W x, its product with a gate's weights")
	}
	for i := range p.equations {
		if e := &p.equations[i]; e.text == t.text && e.next < 0 {
			e.used = true
			return &node{form: value, index: i, span: e.span, at: t}
		}
	}
	for i := range p.weights {
		if w := &p.weights[i]; w.text == t.text {
			w.used = true
			return &node{form: weight, index: i, at: t}
		}
	}
	s := p.state(t.text)
	if s < 0 {
		p.unknown(t)
	}
	n := &node{form: before, index: s, at: t}
	if p.states[s].positive {
		n.span = positive
	}
	return n
}

// unknown ends parsing at a name that stands for nothing yet.
func (p *parser) unknown(t token) {
	for i := p.at; i < len(p.tokens)-2; i++ {
		first := p.tokens[i-1].class == newline || p.tokens[i-1].text == "gate"
		if first && p.tokens[i].text == t.text && p.tokens[i+1].text == "=" {
			p.fail(t, "%s is defined only in line %d: an equation may use those above it, so move that up, or break the cycle if each needs the other", t.text, p.tokens[i].line)
		}
	}
	p.fail(t, "%s is not defined: it is no state, gate, value, weight or function", t.text)
}

// call reads the operands of a function.
func (p *parser) call(f *function, at token) *node {
	p.need("(", " after "+f.name)
	args := []*node{p.sum()}
	for len(args) < f.operands {
		p.need(",", fmt.Sprintf(": %s takes %d operands", f.name, f.operands))
		args = append(args, p.sum())
	}
	p.need(")", " after the operands of "+f.name)
	return p.apply(f, at, args...)
}

// matrix reads x after W, or a state after R.
func (p *parser) matrix(t token) *node {
	if !p.open {
		p.fail(t, "only gates have products: write gate before the name at the beginning of this line")
	}
	if p.gate < 0 { // the gate has the name of the state
		p.newGate(p.head)
	}
	g := &p.gates[p.gate]
	if t.text == "W" {
		p.need("x", " after W")
		g.input = true
		return &node{form: fromInput, index: p.gate, sum: true, at: t}
	}
	of := p.peek()
	if p.take("(") {
		p.innerValue(of)
		return &node{form: fromState, index: p.gate, sum: true, at: t}
	}
	s := p.state(of.text)
	switch {
	case of.class == name && s < 0 && p.at+1 < len(p.tokens) && !slices.Contains(reserved, of.text):
		p.fail(of, "R multiplies a state, and %s is none: a state has an equation for its next value, %s' = …", of.text, of.text)
	case of.class != name || s < 0:
		p.fail(of, "expected the state that R multiplies, found %v", of)
	}
	p.at++
	switch {
	case p.ahead("'"):
		p.fail(of, "R multiplies a state before the step: write R %s", of.text)
	case p.through >= 0 && p.through != s:
		p.fail(of, "R multiplies %s in another equation: all recurrent products of a cell are of one state", p.states[p.through].text)
	}
	if g.inner {
		p.fail(of, "R stands for one matrix in an equation: it multiplies another value of this gate already")
	}
	p.through, g.recurrent = s, true
	return &node{form: fromState, index: p.gate, sum: true, at: t}
}

// innerValue reads the value that R multiplies in the present gate, after its "(".
func (p *parser) innerValue(at token) {
	v := p.sum()
	p.need(")", " after the value that R multiplies")
	g := &p.gates[p.gate]
	switch {
	case g.recurrent && !g.inner:
		p.fail(at, "R stands for one matrix in an equation: it multiplies a state in this one already")
	case v.form == before:
		p.fail(at, "write R %s without parentheses", v.at.text)
	case p.inner == nil:
		p.inner = v
		p.independent(v, at)
	case !v.equal(p.inner):
		p.fail(at, "R multiplies another value in line %d: all values that a step multiplies by R, beside a state, are one", p.inner.at.line)
	}
	g.recurrent, g.inner = true, true
}

// independent ends parsing if the inner value cannot be known before its product.
func (p *parser) independent(n *node, at token) {
	switch {
	case n.form == fromState && n.index == p.gate:
		p.fail(at, "the value that R multiplies depends on the product itself")
	case n.form == after && p.states[n.index].fixed:
		p.fail(at, "the value that R multiplies depends on the fixed state %s", p.states[n.index].text)
	case n.form == after:
		p.independent(p.equations[p.states[n.index].equation].expr, at)
	case n.form == value:
		p.independent(p.equations[n.index].expr, at)
	}
	for _, a := range n.args {
		p.independent(a, at)
	}
}

// equal reports whether two expressions are written alike, but for spaces and parentheses.
func (n *node) equal(m *node) bool {
	return n.form == m.form && n.index == m.index && n.number == m.number && n.of == m.of && slices.EqualFunc(n.args, m.args, (*node).equal)
}
