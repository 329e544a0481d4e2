package train_test

import (
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
