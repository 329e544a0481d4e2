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

// TestNewtonGradients: where the guess is a gradient after a step, an iteration of the gradient and the last one
// compute what the cell's own backward pass does. With any guess, each state's gradient moves with its own after
// the step as the cell's does.
func TestNewtonGradients(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }
	c, err := Load("lstm-diag")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		start := map[cell.Ref]float64{}
		run := func(p cell.Program, moved int) map[cell.Ref]float64 { // the state whose gradient after the step is larger; -1: none
			values := map[cell.Ref]*float64{}
			p.Eval(func(r cell.Ref) *float64 {
				if values[r] == nil {
					from := r
					if r.Kind == cell.Next && r.Index >= len(c.States) { // the guess is right
						from = cell.Ref{Kind: cell.DNext, Index: r.Index - len(c.States)}
					}
					if _, ok := start[from]; !ok && r.Kind != cell.DPeep {
						start[from] = rng.NormFloat64()
					}
					v := start[from]
					if r.Kind == cell.DNext && r.Index == moved {
						v++
					}
					values[r] = &v
				}
				return values[r]
			})
			out := map[cell.Ref]float64{}
			for r, v := range values {
				out[r] = *v
			}
			return out
		}
		for s := range c.States {
			prev := cell.Ref{Kind: cell.DPrev, Index: s}
			want, wantMoved := run(c.Backward, -1), run(c.Backward, s)
			step, last := run(c.Newton.StepBack.Backward, -1), run(c.Newton.Back.Backward, -1)
			if !near(step[prev], want[prev]) || !near(last[prev], want[prev]) {
				t.Errorf("the gradient of %s is %g, and %g at last, want %g", c.States[s], step[prev], last[prev], want[prev])
			}
			if after := (cell.Ref{Kind: cell.DX, Index: s}); step[after] != start[cell.Ref{Kind: cell.DNext, Index: s}] {
				t.Errorf("the next guess of the gradient of %s is %g, want %g", c.States[s], step[after], start[after])
			}
			if moved := run(c.Newton.StepBack.Backward, s); !near(moved[prev]-step[prev], wantMoved[prev]-want[prev]) {
				t.Errorf("the gradient of %s moves by %g, want %g", c.States[s], moved[prev]-step[prev], wantMoved[prev]-want[prev])
			}
			for i := range len(c.Gates) + len(c.Peeps) {
				of := cell.Ref{Kind: cell.DX, Index: i}
				if i >= len(c.Gates) {
					of = cell.Ref{Kind: cell.DPeep, Index: i - len(c.Gates)}
				}
				if got := last[cell.Ref{Kind: cell.DX, Index: i}]; !near(got, want[of]) {
					t.Errorf("%v is %g, want %g", of, got, want[of])
				}
			}
		}
	}
}

// TestWhatNewtonRuns: cells whose units read their own states alone run by Newton's method, if they do not
// compose. With a single state their gradients compose, else they take iterations.
func TestWhatNewtonRuns(t *testing.T) {
	want := map[string]string{"gru-diag": "gradient", "indrnn": "gradient", "lstm-diag": "iterations"}
	for _, c := range all(t) {
		got := ""
		switch {
		case c.Newton == nil:
		case c.Newton.Back == nil:
			got = "step"
		case c.Newton.StepBack != nil:
			got = "iterations"
		default:
			got = "gradient"
		}
		if w, ok := want[c.Name]; ok && got != w || !ok && (c.Recurrent > 0 || c.Scanned != nil) && got != "" {
			t.Errorf("%v: %q, want %q", c, got, w)
		}
	}
}
