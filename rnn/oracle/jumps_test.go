package oracle

import (
	"slices"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/equations"
)

// TestJumps: where a cell from a file has a kink that FindKinks does not know, an honest answer in 16
// bits is right, whose gradients jump elsewhere than the reference's. One whose gradient is 0, or whose
// weights are rounded to 3 bits, is wrong.
func TestJumps(t *testing.T) {
	for name, text := range map[string]string{
		"light": "gate z = sigmoid(W x + R h + b)\ngate n = relu(W x + R h + b)\nh' = z * h + (1 - z) * n\n",
		"most":  "gate n = tanh(W x + R h + b)\ngate m = tanh(W x + R h + b)\nh' = max(n, 0.5 * m) + 0.2 * abs(h)\n",
	} {
		c, err := equations.Parse(name+".cell", name, text)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(6) {
			for _, precision := range []rnn.Precision{rnn.BF16, rnn.FP16} {
				p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 65, Hidden: 65, Layers: 2, Batch: 5, Steps: 9, Precision: precision}
				d := rnn.NewData(p, seed, 5, "normal")
				want := Reference(d)
				answer := roundedAnswer(narrowed(d.Off(0x1p-12, 3)))
				if dev, err := Compare(p, answer, want); err != nil || !dev.OK() {
					t.Errorf("%v: honest: %v, %v", p, dev, err)
				}
				for k := range answer {
					if answer[k].Name == "grad_weight_ih_l1" {
						answer[k].Values = slices.Clone(answer[k].Values)
						for i := range answer[k].Values {
							answer[k].Values[i] *= 0.6
						}
					}
				}
				if dev, err := Compare(p, answer, want); err != nil || dev.OK() || !dev.Mean {
					t.Errorf("%v: all gradients too small by 40 %%: %v, %v", p, dev, err)
				}
				for k := range want {
					if want[k].Gradient {
						clear(answer[k].Values)
						break
					}
				}
				if dev, err := Compare(p, answer, want); err != nil || dev.OK() {
					t.Errorf("%v: a gradient of zeros: %v, %v", p, dev, err)
				}
				if dev, err := Compare(p, wrongWeights(d, 3), want); err != nil || dev.OK() {
					t.Errorf("%v: weights of 3 bits: %v, %v", p, dev, err)
				}
			}
		}
	}
}
