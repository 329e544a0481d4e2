package train_test

import (
	"math"
	"slices"
	"testing"

	"rnnbench/rnn"
	"rnnbench/train"
)

// TestNormIsTaken: the norm of gradients is taken where they are clipped, and in 16 bits, where one that
// is not finite must change nothing.
func TestNormIsTaken(t *testing.T) {
	for _, c := range []struct {
		spec      string
		precision rnn.Precision
		norm      bool
		scale     float64
	}{
		{"adam", rnn.FP32, false, 0}, {"adam:clip=1", rnn.FP32, true, 0}, {"sgd", rnn.TF32, false, 0},
		{"adam", rnn.BF16, true, 0}, {"adam", rnn.FP16, true, 1024}, {"sgd:scale=8", rnn.FP16, true, 8}, {"sgd:scale=8", rnn.FP32, false, 8},
	} {
		o, err := train.ParseOptimizer(c.spec, c.precision)
		if err != nil || o.Norm != c.norm || o.LossScale != c.scale {
			t.Errorf("%s in %v: norm %t, loss scale %v, %v", c.spec, c.precision, o.Norm, o.LossScale, err)
		}
	}
}

// TestAnnealing: the rate is divided after each epoch, and is a function of the iteration alone.
func TestAnnealing(t *testing.T) {
	o, err := train.ParseOptimizer("sgd:lr=0.4:anneal=2:epoch=3", rnn.FP32)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1} {
		if got := o.RateAt(i + 1); math.Abs(got-want) > 1e-15 {
			t.Errorf("the rate of iteration %d is %g, not %g", i+1, got, want)
		}
	}
	if got := o.RateAt(1 << 30); got != 0 {
		t.Errorf("after a third of a billion epochs the rate is %g, which nothing can hold", got)
	}
	if o, err = train.ParseOptimizer("adam:lr=0.4", rnn.FP32); err != nil || o.RateAt(1<<30) != 0.4 {
		t.Errorf("without annealing the rate becomes %g, %v", o.RateAt(1<<30), err)
	}
}

// TestAnnealedTraining: once the rate is too small to change anything, parameters stay.
func TestAnnealedTraining(t *testing.T) {
	d := open(t)
	tr := newTrainer(t, setup(t, d, "naive", "sgd:lr=0.5:anneal=1e9:epoch=1", rnn.FP32))
	weights := func() []float32 {
		values, err := tr.Parameter("weight_out")
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	first := weights()
	step(t, tr, 6) // the rate of the last rounds to 0
	learnt := weights()
	step(t, tr, 4)
	if slices.Equal(first, learnt) || !slices.Equal(learnt, weights()) {
		t.Error("weights do not change at first, or still change at a rate of 0")
	}
}

// TestGlorotBegins: a training with Glorot's first weights begins with biases of 0.
func TestGlorotBegins(t *testing.T) {
	d := open(t)
	for _, glorot := range []bool{false, true} {
		s := setup(t, d, "naive", "sgd", rnn.FP32)
		s.Glorot = glorot
		bias, err := newTrainer(t, s).Parameter("bias_out")
		if err != nil {
			t.Fatal(err)
		}
		if zero := !slices.ContainsFunc(bias, func(v float32) bool { return v != 0 }); zero != glorot {
			t.Errorf("with Glorot's weights %t, the biases are %v", glorot, bias)
		}
	}
}
