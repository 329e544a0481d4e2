package cell

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSLSTM compares the cell with equations 8 to 12 of Beck et al. (2024), which have no m, from
// zero states. At gates whose exponentials double precision cannot hold, it compares with their
// limit.
func TestSLSTM(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var c, n float64 // of the paper
		prev, next := make([]float64, 4), make([]float64, 4)
		for step := range 30 {
			x, r := make([]float64, 4), make([]float64, 4)
			for g := range x {
				x[g], r[g] = 3*rng.NormFloat64(), rng.NormFloat64()
			}
			in, f, z, o := math.Exp(x[0]+r[0]), sigmoid(x[1]+r[1]), tanh(x[2]+r[2]), sigmoid(x[3]+r[3])
			c, n = f*c+in*z, f*n+in
			SLSTM.Equations(x, r, nil, prev, next)
			if want := o * c / n; math.Abs(next[0]-want) > 1e-12 {
				t.Fatalf("step %d: h is %v, want %v", step, next[0], want)
			}
			if scale := math.Exp(next[3]); math.Abs(next[1]*scale-c) > 1e-9*scale || math.Abs(next[2]*scale-n) > 1e-9*scale {
				t.Fatalf("step %d: c and n are %v and %v times e^%v, want %v and %v", step, next[1], next[2], next[3], c, n)
			}
			prev, next = next, prev
		}
	}
	prev, next := []float64{0, 0.5, 1, 0}, make([]float64, 4)
	SLSTM.Equations([]float64{2000, 0, 0.3, 50}, make([]float64, 4), nil, prev, next)
	if want := tanh(0.3); next[0] != want || next[3] != 2000 {
		t.Errorf("an input gate of e^2000: h is %v and m %v, want %v and 2000", next[0], next[3], want)
	}
	SLSTM.Equations([]float64{-2000, 50, 0.3, 50}, make([]float64, 4), nil, prev, next)
	if next[0] != 0.5 {
		t.Errorf("an input gate of e^-2000: h is %v, want the one before, 0.5", next[0])
	}
}

// TestFixedStates: the gradient reads no gradient of a state that it holds fixed, and has no kink.
func TestFixedStates(t *testing.T) {
	for _, in := range SLSTM.Backward {
		for _, a := range in.Args() {
			if a == (Ref{DNext, 3}) {
				t.Errorf("%v reads the gradient of m", in)
			}
		}
	}
	if SLSTM.Kinked() || !RNNReLU.Kinked() || !MinGRU.Kinked() {
		t.Errorf("slstm has a kink: %v, rnn-relu: %v, mingru: %v", SLSTM.Kinked(), RNNReLU.Kinked(), MinGRU.Kinked())
	}
}
