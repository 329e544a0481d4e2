package equations

import (
	"slices"
	"strconv"
)

// A parser reads a file by recursive descent.
type parser struct {
	definition
	cursor
	depth int
	gate  int  // of the present equation; -1: none so far
	open  bool // the present equation may have products
	head  token
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
	p := &parser{cursor: cursor{file: file, tokens: tokens}, definition: definition{window: 1, through: -1}}
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
		s := state{symbol: symbol{token: p.name("a state")}, equation: -1}
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
	e := equation{next: -1}
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
	if p.gate >= 0 && !p.gates[p.gate].input {
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
