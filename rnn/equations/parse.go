package equations

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A definition is what a file says.
type definition struct {
	gates     []gate
	states    []state  // the output first
	weights   []symbol // a number for each unit, as the peepholes of an LSTM
	window    int
	through   int   // the state that R multiplies
	inner     *node // the computed value that R multiplies in inner gates; nil: there are none
	equations []equation
}

// A symbol is a name with the place of its declaration.
type symbol struct {
	token
	used bool
}

// A gate is an equation with a product.
type gate struct {
	symbol
	input, recurrent bool // it has W x; it has R h, or R of the inner value
	inner            bool // it has R of the inner value
}

type state struct {
	symbol
	positive bool // declared > 0
	fixed    bool
	declared bool
	equation int // that gives its next value; -1: none so far
}

// An equation gives a value its name. Equations run in the order of the file.
type equation struct {
	symbol
	next int // the state whose next value it is; -1: none
	gate int // -1: it has no product
	expr *node
	span span
}

// A form is a kind of node.
type form uint8

const (
	constant  form = iota
	value          // of an earlier equation
	before         // a state before the step
	after          // a state after it
	weight         // of the unit
	fromInput      // W x with its bias
	fromState      // R h, or R of the inner value, with its bias
	bias           // b, which stands beside a product and adds nothing to what the product has
	apply          // a function
)

// A node is an expression.
type node struct {
	form
	index  int     // of the equation, state, weight or gate
	number float64 // of a constant
	of     *function
	args   []*node
	span   span
	sum    bool // a product is one of its terms, so that b may stand beside it
	at     token
}

// A parser reads a file by recursive descent.
type parser struct {
	definition
	file   string
	tokens []token
	at     int
	depth  int
	gate   int  // of the present equation; -1: none so far
	open   bool // the present equation may have products
	head   token
}

// parse reads a definition.
func parse(file string, tokens []token) (d *definition, wrong *Error) {
	defer func() {
		if e, ok := recover().(*Error); ok {
			d, wrong = nil, e
		} else if e != nil {
			panic(e)
		}
	}()
	p := &parser{file: file, tokens: tokens, definition: definition{window: 1, through: -1}}
	p.findStates()
	for p.peek().class != end {
		if p.peek().class == newline {
			p.at++
			continue
		}
		p.line()
		p.lineEnds()
	}
	p.finish()
	return &p.definition, nil
}

func (p *parser) lineEnds() {
	if t := p.peek(); t.class != newline && t.class != end {
		p.fail(t, "expected the end of the line, found %v", t)
	}
}

// fail ends parsing with a message about t.
func (p *parser) fail(t token, format string, args ...any) {
	panic(&Error{p.file, t.line, t.col, fmt.Sprintf(format, args...)})
}

func (p *parser) peek() token { return p.tokens[p.at] }

// ahead reports whether the next tokens have these texts.
func (p *parser) ahead(texts ...string) bool {
	for i, text := range texts {
		if t := p.tokens[min(p.at+i, len(p.tokens)-1)]; t.class == end || t.class == newline || t.text != text {
			return false
		}
	}
	return true
}

// take skips the next token if it has that text.
func (p *parser) take(text string) bool {
	if !p.ahead(text) {
		return false
	}
	p.at++
	return true
}

func (p *parser) need(text, what string) {
	if !p.take(text) {
		p.fail(p.peek(), "expected %q%s, found %v", text, what, p.peek())
	}
}

// name reads the name of something new.
func (p *parser) name(what string) token {
	t := p.peek()
	if t.class != name {
		p.fail(t, "expected the name of %s, found %v", what, t)
	}
	if slices.Contains(reserved, t.text) || p.function(t.text) != nil {
		p.fail(t, "%q has a meaning of its own: give %s another name", t.text, what)
	}
	p.at++
	return t
}

// reserved are the words of the language.
var reserved = []string{"W", "R", "x", "b", "gate", "state", "weight", "window", "fixed"}

func (p *parser) function(word string) *function {
	if i := slices.IndexFunc(functions, func(f function) bool { return f.name == word }); i >= 0 {
		return &functions[i]
	}
	return nil
}

// findStates makes a state of each name that an equation gives a next value, and of each that is
// declared. Undeclared ones come in the order of their equations, but h, the output, first.
func (p *parser) findStates() {
	add := func(t token) {
		if p.state(t.text) < 0 {
			p.states = append(p.states, state{symbol: symbol{token: t}, equation: -1})
		}
	}
	for i, t := range p.tokens {
		first := i == 0 || p.tokens[i-1].class == newline
		if first && t.text == "state" {
			p.at = i + 1
			p.declare()
			p.lineEnds()
		}
	}
	declared := len(p.states)
	for i, t := range p.tokens {
		if first := i == 0 || p.tokens[i-1].class == newline; first && t.class == name && p.tokens[i+1].text == "'" && !slices.Contains(reserved, t.text) {
			add(t)
		}
	}
	p.at = 0
	if declared > 0 {
		return
	}
	if h := p.state("h"); h > 0 {
		output := p.states[h]
		p.states = slices.Insert(slices.Delete(p.states, h, h+1), 0, output)
	} else if h < 0 && len(p.states) > 0 {
		p.fail(p.states[0].token, "no state is called h, so it is unclear which one is the output: declare the states, the output first, as in \"state %s\"", p.states[0].text)
	}
}

// declare reads the names after "state".
func (p *parser) declare() {
	for {
		s := state{symbol: symbol{token: p.name("a state")}, equation: -1, declared: true}
		if p.state(s.text) >= 0 {
			p.fail(s.token, "state %s is declared twice", s.text)
		}
		for more := true; more; {
			switch {
			case p.take("fixed"):
				s.fixed = true
			case p.take(">"):
				p.need("0", " after >")
				s.positive = true
			default:
				more = false
			}
		}
		p.states = append(p.states, s)
		if !p.take(",") {
			return
		}
	}
}

func (p *parser) state(word string) int {
	return slices.IndexFunc(p.states, func(s state) bool { return s.text == word })
}

// line reads a declaration or an equation.
func (p *parser) line() {
	switch {
	case p.take("state"):
		for t := p.peek(); t.class != newline && t.class != end; t = p.peek() { // see findStates
			p.at++
		}
	case p.take("weight"):
		for {
			t := p.name("a weight")
			p.fresh(t)
			p.weights = append(p.weights, symbol{token: t})
			if !p.take(",") {
				return
			}
		}
	case p.take("window"):
		t := p.peek()
		n, err := strconv.Atoi(t.text)
		if err != nil || n < 1 || n > mostWindow {
			p.fail(t, "expected the number of input steps that a gate reads, 1 to %d, found %v", mostWindow, t)
		}
		p.at++
		p.window = n
	default:
		p.equation()
	}
}

// fresh ends parsing if t names something already.
func (p *parser) fresh(t token) {
	earlier := func(s symbol) bool { return s.text == t.text }
	if i := slices.IndexFunc(p.equations, func(e equation) bool { return e.next < 0 && earlier(e.symbol) }); i >= 0 {
		p.fail(t, "%s is defined twice: first in line %d", t.text, p.equations[i].line)
	}
	if i := slices.IndexFunc(p.weights, earlier); i >= 0 {
		p.fail(t, "%s is a weight of line %d: use another name", t.text, p.weights[i].line)
	}
	if i := p.state(t.text); i >= 0 {
		p.fail(t, "%s is a state, whose next value is %s': use another name for this", t.text, t.text)
	}
}

// equation reads "gate NAME = …", "NAME = …" or "STATE' = …".
func (p *parser) equation() {
	product := p.take("gate")
	e := equation{next: -1, gate: -1}
	what := "a value"
	if product {
		what = "a gate"
	} else if p.peek().class != name {
		p.fail(p.peek(), "expected gate, state, weight, window or the name of a value, found %v", p.peek())
	}
	e.token = p.name(what)
	p.head = e.token
	if p.take("'") {
		e.next = p.state(e.text)
		if product {
			p.fail(e.token, "a gate has no next value: write \"%s' = …\" without gate", e.text)
		}
		if s := p.states[e.next]; s.equation >= 0 {
			p.fail(e.token, "%s' is defined twice: first in line %d", e.text, p.equations[s.equation].line)
		}
	} else {
		p.fresh(e.token)
	}
	p.need("=", "")
	p.gate, p.open = -1, product || e.next >= 0
	if product {
		p.newGate(e.token)
	}
	e.expr = p.sum()
	e.span = e.expr.span
	if e.gate = p.gate; e.gate >= 0 && !p.gates[e.gate].input {
		p.fail(e.token, "gate %s has no product with the input: write W x into it", e.text)
	}
	if e.next >= 0 {
		s := &p.states[e.next]
		s.equation, e.used = len(p.equations), true
		if s.positive && e.span != positive {
			p.fail(e.token, "%s is declared > 0, but %s' may be 0 or below: build it from exp, sigmoid, softplus, positive numbers and states > 0 by + * / and max", e.text, e.text)
		}
	}
	p.equations = append(p.equations, e)
}

func (p *parser) newGate(t token) {
	if len(p.gates) == mostGates {
		p.fail(t, "the cell has more than %d gates", mostGates)
	}
	p.gate = len(p.gates)
	p.gates = append(p.gates, gate{symbol: symbol{token: t}})
}

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

// finish checks what can be checked only at the end.
func (p *parser) finish() {
	last := p.peek()
	switch {
	case len(p.gates) == 0:
		p.fail(last, "there is no gate: write at least one equation with W x, as in gate n = tanh(W x + R h + b)")
	case len(p.states) == 0:
		p.fail(last, "there is no state: write the output's next value, as in h' = n")
	case len(p.states) > mostStates:
		p.fail(p.states[mostStates].token, "the cell has more than %d states", mostStates)
	case len(p.weights) > mostWeights:
		p.fail(p.weights[mostWeights].token, "the cell has more than %d weights for each unit", mostWeights)
	}
	for _, s := range p.states {
		if s.equation < 0 {
			p.fail(s.token, "state %s has no next value: write %s' = …", s.text, s.text)
		}
	}
	if p.states[0].fixed {
		p.fail(p.states[0].token, "the output cannot be fixed: nothing would be learnt")
	}
	for _, e := range p.equations {
		if !e.used {
			p.fail(e.token, "%s is not used: remove it, or use it in an equation below", e.text)
		}
	}
	for _, w := range p.weights {
		if !w.used {
			p.fail(w.token, "weight %s is not used", w.text)
		}
	}
	p.through = max(p.through, 0)
	if i := p.unlearnt(); i >= 0 {
		p.fail(p.gates[i].token, "nothing but fixed states depends on gate %s, so its weights have no gradient", p.gates[i].text)
	}
}

// unlearnt finds a gate on which only fixed states depend; -1: none.
func (d *definition) unlearnt() int {
	reached := make([]bool, len(d.gates))
	seen := make([]bool, len(d.equations))
	var visit func(e int)
	var walk func(n *node)
	walk = func(n *node) {
		switch n.form {
		case value:
			visit(n.index)
		case after:
			if !d.states[n.index].fixed {
				visit(d.states[n.index].equation)
			}
		case fromInput, fromState:
			if reached[n.index] = true; n.form == fromState && d.gates[n.index].inner {
				walk(d.inner)
			}
		}
		for _, a := range n.args {
			walk(a)
		}
	}
	visit = func(e int) {
		if !seen[e] {
			seen[e] = true
			walk(d.equations[e].expr)
		}
	}
	for _, s := range d.states {
		if !s.fixed {
			visit(s.equation)
		}
	}
	return slices.Index(reached, false)
}
