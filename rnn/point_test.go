package rnn

import (
	"slices"
	"testing"

	"rnnbench/rnn/axis"
)

// TestOf: the problem has the value of every axis of its point, except for streams, which are how and
// not what. The words of axes are those of problems.
func TestOf(t *testing.T) {
	p := axis.Point{Cell: "lstm", Pass: "forward", Hidden: 8, Input: 8, Batch: 4, Steps: 9, Layers: 1, Precision: "fp32"}
	usual, err := Of(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range axis.All() {
		q := p
		switch words := a.Values(); {
		case a.Sized():
			a.Set(&q, 3)
		case words != nil:
			a.Set(&q, words[len(words)-1])
		default:
			a.Set(&q, "gru")
		}
		if problem, _ := Of(q); problem == usual != (a.Name == "streams") || problem.Cell == nil {
			t.Errorf("%s: %v becomes %v", a.Name, q, problem)
		}
	}
	for name, want := range map[string][]string{"pass": Passes(), "precision": Precisions(), "direction": Directions()} {
		if a, _ := axis.Named(name); !slices.Equal(a.Values(), want) {
			t.Errorf("%s has %v, not %v", name, a.Values(), want)
		}
	}
	p.Cell = "lsmt"
	if _, err := Of(p); err == nil || err.Error() != `rnn: unknown cell "lsmt": did you mean lstm?` {
		t.Error(err)
	}
}
