package impl_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
)

// TestConvolutions runs networks with convolutions in front by each technique.
func TestConvolutions(t *testing.T) {
	directOf(t, impltest.Convolved)
}

// TestEmulatedConvolutions runs them on the CUDA device without a GPU, by the vendor's library too.
func TestEmulatedConvolutions(t *testing.T) {
	emulatedOf(t, 10, impltest.Convolved)
}

// TestConvolutionShifts: where one weight is 1 and the others 0, outputs are the inputs of another step and
// feature, and 0 where there is none.
func TestConvolutionShifts(t *testing.T) {
	one, _ := openWorkers(t)
	p := rnn.Problem{Cell: cell.GRU, Conv: "1x4x3", Input: 6, Hidden: 4, Layers: 1, Batch: 2, Steps: 5}
	data := rnn.NewData(p, 1, 2, "normal")
	for i, x := range data.Get("x") {
		data.Get("x")[i] = max(x, -x)
	}
	clear(data.Get("bias_conv0"))
	for i := range data.Get("weight_conv0") {
		data.Get("weight_conv0")[i] = 0
	}
	data.Get("weight_conv0")[3*3+2] = 1 // the last step of the kernel, two after the present one, and the feature above
	answer, err := oracle.Read(ran(t, one, "persistent", p, data))
	if err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(answer, func(t oracle.Tensor) bool { return t.Name == "conv0" })
	x := data.Get("x")
	for i, y := range answer[k].Values {
		row, feature, want := i/p.Input, i%p.Input, 0.0
		if later := row + 2*p.Batch; later < p.Steps*p.Batch && feature+1 < p.Input {
			want = float64(x[later*p.Input+feature+1])
		}
		if y != want {
			t.Fatalf("conv0[%d] is %v, want %v", i, y, want)
		}
	}
}

// TestConvolutionsDecline: what does not go with convolutions is declined.
func TestConvolutionsDecline(t *testing.T) {
	p := rnn.Problem{Cell: cell.SRU, Pass: rnn.Train, Conv: "2x3x3", Input: 4, Hidden: 4, Layers: 1, Batch: 2, Steps: 5}
	kept, ragged, reset, called, symbols, wrong, zero, many := p, p, p, p, p, p, p, p
	kept.History, ragged.Lengths, reset.Resets, symbols.OneHot = 2, "3+5", 20, true
	called.Pass, called.Calls = rnn.Forward, 3
	wrong.Conv, zero.Conv, many.Conv = "2x3", "2x0x3", strings.Repeat("1x1x1+", 8)+"1x1x1"
	for _, c := range []struct {
		technique string
		p         rnn.Problem
		k         knob.Params
		want      string
	}{
		{"scc", kept, nil, "no lengths, history, resets and calls"},
		{"naive", ragged, nil, "no lengths, history, resets and calls"},
		{"naive", reset, nil, "no lengths, history, resets and calls"},
		{"naive", called, nil, "no lengths, history, resets and calls"},
		{"naive", symbols, nil, "read features, not symbols"},
		{"naive", wrong, nil, "write CHANNELSxSTEPSxFEATURES"},
		{"naive", zero, nil, "must be 1 to 1024"},
		{"naive", many, nil, "at most 8"},
		{"scan", p, knob.Params{"alone": 1, "inputbatch": 0}, "conv=2x3x3"},
	} {
		if _, _, err := rnn.Layout(impl.Lookup(c.technique), c.p, c.k); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v, want %q", c.technique, c.p, err, c.want)
		}
	}
	if _, _, err := rnn.LayoutHosted(impl.Lookup("naive"), p, nil); err == nil || !strings.Contains(err.Error(), "convolutions") {
		t.Errorf("a host program: %v", err)
	}
	if _, _, err := rnn.LayoutForward(impl.Lookup("naive"), p, nil, true); err == nil || !strings.Contains(err.Error(), "set conv to none") {
		t.Errorf("states that carry on: %v", err)
	}
}
