package cells

import (
	"math"
	"math/rand/v2"
	"testing"

	"rnnbench/rnn/cell"
)

// all loads every cell that is a file.
func all(t *testing.T) (list []*cell.Cell) {
	for _, name := range Names() {
		c, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// TestNewtonSteps: at any guess an iteration of Newton's method computes the cell's own step where the
// state is the guess, and moves with the state as the cell does near the guess.
func TestNewtonSteps(t *testing.T) {
	const near = 1e-6
	ran := 0
	for _, c := range all(t) {
		if c.Newton == nil {
			continue
		}
		ran++
		step := c.Newton.Step
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, 1))
			values := map[cell.Ref]*float64{}
			at := func(r cell.Ref) *float64 {
				if values[r] == nil {
					v := rng.NormFloat64()
					values[r] = &v
				}
				return values[r]
			}
			states := make([]float64, len(c.States))
			run := func(p cell.Program, moved int, by float64) []float64 {
				for s := range states {
					*at(cell.Ref{Kind: cell.Prev, Index: s}), *at(cell.Ref{Kind: cell.R, Index: s}) = states[s], states[s]
				}
				*at(cell.Ref{Kind: cell.Prev, Index: moved}) += by
				p.Eval(at)
				next := make([]float64, len(states))
				for s := range next {
					next[s] = *at(cell.Ref{Kind: cell.Next, Index: s})
				}
				return next
			}
			for s := range states {
				states[s] = rng.NormFloat64()
			}
			for s := range states {
				same, want := run(step.Inference, s, 0), run(c.Inference, s, 0)
				moved, wantMoved := run(step.Inference, s, near), run(c.Inference, s, near)
				slope, wantSlope := (moved[s]-same[s])/near, (wantMoved[s]-want[s])/near
				if math.Abs(same[s]-want[s]) > 1e-9 || math.Abs(slope-wantSlope) > 1e-4*(1+math.Abs(wantSlope)) {
					t.Errorf("%v, state %s: %g with slope %g, want %g with slope %g", c, c.States[s], same[s], slope, want[s], wantSlope)
				}
			}
		}
	}
	if ran < 2 {
		t.Errorf("%d cells have Newton's method", ran)
	}
}

// TestWhatNewtonRuns: cells whose units read their own states alone run by Newton's method, if they do not
// compose. With a single state their gradients compose.
func TestWhatNewtonRuns(t *testing.T) {
	want := map[string]string{"gru-diag": "gradient", "indrnn": "gradient", "lstm-diag": "step"}
	for _, c := range all(t) {
		got := ""
		switch {
		case c.Newton == nil:
		case c.Newton.Back == nil:
			got = "step"
		default:
			got = "gradient"
		}
		if w, ok := want[c.Name]; ok && got != w || !ok && (c.Recurrent > 0 || c.Scanned != nil) && got != "" {
			t.Errorf("%v: %q, want %q", c, got, w)
		}
	}
}
