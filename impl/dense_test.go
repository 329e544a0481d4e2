package impl_test

import (
	"errors"
	"strings"
	"testing"

	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestDense runs networks with a fully connected layer by each technique.
func TestDense(t *testing.T) {
	directOf(t, impltest.Connected)
}

// TestEmulatedDense runs them on the CUDA device without a GPU, by the vendor's library too.
func TestEmulatedDense(t *testing.T) {
	emulatedOf(t, 10, impltest.Connected)
}

// TestDenseClips: units beyond the clip give it, those below 0 give 0, and neither has a gradient.
func TestDenseClips(t *testing.T) {
	one, _ := openWorkers(t)
	for _, precision := range []rnn.Precision{rnn.FP32, rnn.BF16, rnn.FP16} {
		p := rnn.Problem{Cell: cell.LSTM, Input: 5, Hidden: 6, Layers: 2, Batch: 3, Steps: 5, Output: 4, Dense: 9, Pass: rnn.Train, Precision: precision}
		data := rnn.NewData(p, 1, 3, "normal")
		bias := data.Get("bias_dense")
		for i := range bias {
			bias[i] = []float32{rnn.MostDense + 5, 5, -5}[i%3]
		}
		answer, err := oracle.Read(ran(t, one, "persistent", p, data))
		if err != nil {
			t.Fatal(err)
		}
		if dev, err := oracle.Compare(p, answer, oracle.Reference(data)); err != nil || !dev.OK() {
			t.Errorf("%v: %v, %v", precision, dev, err)
		}
		for _, x := range answer {
			for i, v := range x.Values {
				if ok := []bool{v == rnn.MostDense, v > 1 && v < 9, v == 0}; x.Name == "dense" && !ok[i%3] {
					t.Errorf("%v: dense[%d] is %v", precision, i, v)
				}
				if x.Name == "grad_bias_dense" && (v != 0) != (i%3 == 1) {
					t.Errorf("%v: the gradient of bias %d is %v", precision, i, v)
				}
			}
		}
	}
}

// TestDenseDeclines: what does not go with a fully connected layer is declined.
func TestDenseDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.SRU, Pass: rnn.Train, Input: 4, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Output: 3, Dense: 6}
	kept, bare := p, p
	kept.History, bare.Output = 2, 0
	for _, c := range []struct {
		technique string
		p         rnn.Problem
		k         knob.Params
		want      string
	}{
		{"scc", kept, nil, "set history to 0"},
		{"naive", bare, nil, "set output"},
		{"scan", p, knob.Params{"alone": 1, "inputbatch": 0}, "dense=6"},
	} {
		if _, _, err := rnn.Layout(impl.Lookup(c.technique), c.p, c.k); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v, want %q", c.technique, c.p, err, c.want)
		}
	}
	if _, _, err := rnn.LayoutHosted(impl.Lookup("naive"), p, nil); !errors.Is(err, schedule.ErrUnsupported) {
		t.Errorf("a host program: %v", err)
	}
}
