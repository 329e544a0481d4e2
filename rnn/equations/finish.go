package equations

import "slices"

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
