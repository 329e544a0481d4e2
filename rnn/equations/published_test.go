package equations

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// A paper has the equations of a cell, written out by hand for one unit: x and r are the products of the
// gates, in the order of the file, each with its bias. r of an inner gate is the product that the paper
// computes from value.
type paper struct {
	next  func(x, r, u, h []float64) []float64
	value func(x, r, h []float64) float64
}

// papers returns the equations of each example.
func papers() map[string]paper {
	sigmoid := func(a float64) float64 { return 1 / (1 + math.Exp(-a)) }
	return map[string]paper{
		"ligru": {next: func(x, r, _, h []float64) []float64 {
			z := sigmoid(x[0] + r[0])
			return []float64{z*h[0] + (1-z)*math.Max(0, x[1]+r[1])}
		}},
		"rnn-crelu": {next: func(x, r, _, _ []float64) []float64 { return []float64{math.Min(math.Max(0, x[0]+r[0]), 20)} }},
		"indrnn":    {next: func(x, _, u, h []float64) []float64 { return []float64{math.Max(0, x[0]+u[0]*h[0])} }},
		"gru-diag": {next: func(x, _, u, h []float64) []float64 {
			z, r := sigmoid(u[0]*h[0]+x[0]), sigmoid(u[1]*h[0]+x[1])
			return []float64{(1-z)*h[0] + z*math.Tanh(u[2]*(h[0]*r)+x[2])}
		}},
		"lstm-diag": {next: func(x, _, u, h []float64) []float64 { // x is in the order f, z, o, and so is u, with the peepholes of f and o behind
			f := sigmoid(u[0]*h[0] + x[0] + u[3]*h[1])
			c := f*h[1] + (1-f)*math.Tanh(u[1]*h[0]+x[1])
			o := sigmoid(u[2]*h[0] + x[2] + u[4]*c)
			return []float64{o * math.Tanh(c), c}
		}},
		"t-rnn": {next: func(x, _, _, h []float64) []float64 {
			f := sigmoid(x[0])
			return []float64{f*h[0] + (1-f)*x[1]}
		}},
		"cifg": {next: func(x, r, _, h []float64) []float64 { // h holds the output and the memory cell
			f, o := sigmoid(x[0]+r[0]), sigmoid(x[2]+r[2])
			i := 1 - f
			c := f*h[1] + i*math.Tanh(x[1]+r[1])
			return []float64{o * math.Tanh(c), c}
		}},
		"janet": {next: func(x, r, _, h []float64) []float64 {
			const beta = 1
			s := x[0] + r[0]
			return []float64{sigmoid(s)*h[0] + (1-sigmoid(s-beta))*math.Tanh(x[1]+r[1])}
		}},
		"gru-decay": {next: func(x, r, _, h []float64) []float64 {
			reset, z := sigmoid(x[0]+r[0]), sigmoid(x[1]+r[1])
			gamma := math.Exp(-math.Max(0, x[3]))
			return []float64{gamma * ((1-z)*math.Tanh(x[2]+reset*r[2]) + z*h[0])}
		}},
		"mgu": {next: func(x, r, _, h []float64) []float64 {
			f := sigmoid(x[0] + r[0])
			return []float64{(1-f)*h[0] + f*math.Tanh(x[1]+r[1])}
		}, value: func(x, r, h []float64) float64 { return sigmoid(x[0]+r[0]) * h[0] }},
		"gru-before": {next: func(x, r, _, h []float64) []float64 {
			z := sigmoid(x[1] + r[1])
			return []float64{z*h[0] + (1-z)*math.Tanh(x[2]+r[2])}
		}, value: func(x, r, h []float64) float64 { return sigmoid(x[0]+r[0]) * h[0] }},
	}
}

// TestPublished compares each example with the equations of its paper.
func TestPublished(t *testing.T) {
	published := papers()
	files, err := filepath.Glob("../../cells/*" + Extension)
	if err != nil || len(files) != len(published) {
		t.Fatalf("%d examples, %d with published equations: %v", len(files), len(published), err)
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for _, file := range files {
		c := parseFile(t, file)
		want, ok := published[strings.TrimSuffix(filepath.Base(file), Extension)]
		if !ok || (want.value != nil) != (c.Value != nil) {
			t.Errorf("%s: its published equations are not here, or have another inner value", file)
			continue
		}
		for range 100 {
			some := func(n int) []float64 {
				v := make([]float64, n)
				for i := range v {
					v[i] = 3 * rng.NormFloat64()
				}
				return v
			}
			x, r, u, h := some(len(c.Gates)), some(c.Recurrent), some(len(c.Peeps)), some(len(c.States))
			next := make([]float64, len(h))
			c.Equations(x, r, u, h, next)
			for s, w := range want.next(x, r, u, h) {
				if math.Abs(next[s]-w) > 1e-12 {
					t.Errorf("%s: state %s is %v, want %v", file, c.States[s], next[s], w)
				}
			}
			if want.value != nil {
				if got, w := c.Value(x, r, u, h), want.value(x, r, h); math.Abs(got-w) > 1e-12 {
					t.Errorf("%s: R multiplies %v, want %v", file, got, w)
				}
			}
		}
	}
}
