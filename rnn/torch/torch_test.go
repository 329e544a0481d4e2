package torch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
	"rnnbench/rnn/torch"
)

var source = torch.Source{
	Technique: "naive", Knobs: knob.Params{"streams": 2, "fused": 1}, Device: "cpu", Seed: 1, Distribution: "normal",
}

// draw returns data for p with two distinct sequences, and the reference's
// answer.
func draw(p rnn.Problem) (*rnn.Data, []oracle.Tensor) {
	d := rnn.NewData(p, 1, 2, "normal")
	return d, oracle.Reference(d)
}

func arrays(t *testing.T, p rnn.Problem) map[string]torch.Array {
	t.Helper()
	d, answer := draw(p)
	list, err := torch.Arrays(d, answer, source)
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	out := make(map[string]torch.Array)
	for _, a := range list {
		out[a.Name] = a
	}
	return out
}

// shapes writes names, shapes and types as the tests expect them.
func shapes(m []torch.Array) string {
	var b strings.Builder
	for _, a := range m {
		fmt.Fprintf(&b, "%s %v %T\n", a.Name, a.Shape, a.Values)
	}
	return b.String()
}

// exported are problems with the arrays that are exported of each, in order.
var exported = []struct {
	p    rnn.Problem
	want string
}{
	{rnn.Problem{Cell: cell.RNNTanh, Input: 3, Hidden: 4, Layers: 1, Batch: 5, Steps: 6, Pass: rnn.Train, Direction: rnn.BothWays}, `
		meta [] string
		input [6 5 3] []float32
		weight_ih_l0 [4 3] []float32
		weight_hh_l0 [4 4] []float32
		bias_ih_l0 [4] []float32
		bias_hh_l0 [4] []float32
		weight_ih_l0_reverse [4 3] []float32
		weight_hh_l0_reverse [4 4] []float32
		bias_ih_l0_reverse [4] []float32
		bias_hh_l0_reverse [4] []float32
		h_l0 [6 5 4] []float64
		h_l0_reverse [6 5 4] []float64
		h_0 [2 5 4] []float32
		h_n [2 5 4] []float64
		output [6 5 8] []float64
		grad_output [6 5 8] []float32
		grad_input [6 5 3] []float64
		grad_weight_ih_l0 [4 3] []float64
		grad_weight_hh_l0 [4 4] []float64
		grad_bias_ih_l0 [4] []float64
		grad_bias_hh_l0 [4] []float64
		grad_weight_ih_l0_reverse [4 3] []float64
		grad_weight_hh_l0_reverse [4 4] []float64
		grad_bias_ih_l0_reverse [4] []float64
		grad_bias_hh_l0_reverse [4] []float64
		grad_h_0 [2 5 4] []float64
	`},
	{rnn.Problem{Cell: cell.GRU, Input: 3, Hidden: 4, Layers: 2, Batch: 5, Steps: 6, Pass: rnn.Train}, `
		meta [] string
		input [6 5 3] []float32
		weight_ih_l0 [12 3] []float32
		weight_hh_l0 [12 4] []float32
		bias_ih_l0 [12] []float32
		bias_hh_l0 [12] []float32
		weight_ih_l1 [12 4] []float32
		weight_hh_l1 [12 4] []float32
		bias_ih_l1 [12] []float32
		bias_hh_l1 [12] []float32
		h_l0 [6 5 4] []float64
		h_l1 [6 5 4] []float64
		output [6 5 4] []float64
		h_0 [2 5 4] []float32
		h_n [2 5 4] []float64
		grad_output [6 5 4] []float32
		grad_input [6 5 3] []float64
		grad_weight_ih_l0 [12 3] []float64
		grad_weight_hh_l0 [12 4] []float64
		grad_bias_ih_l0 [12] []float64
		grad_bias_hh_l0 [12] []float64
		grad_weight_ih_l1 [12 4] []float64
		grad_weight_hh_l1 [12 4] []float64
		grad_bias_ih_l1 [12] []float64
		grad_bias_hh_l1 [12] []float64
		grad_h_0 [2 5 4] []float64
	`},
	{rnn.Problem{Cell: cell.LSTMPeephole, Input: 7, Hidden: 2, Layers: 1, Batch: 3, Steps: 2, Pass: rnn.Train, OneHot: true, Output: 4}, `
		meta [] string
		symbols [2 3] []int64
		weight_ih_l0 [8 7] []float32
		weight_hh_l0 [8 2] []float32
		bias_ih_l0 [8] []float32
		bias_hh_l0 [8] []float32
		peephole_l0 [3 2] []float32
		h_l0 [2 3 2] []float64
		output [2 3 2] []float64
		h_0 [1 3 2] []float32
		h_n [1 3 2] []float64
		c_l0 [2 3 2] []float64
		c_0 [1 3 2] []float32
		c_n [1 3 2] []float64
		grad_weight_ih_l0 [8 7] []float64
		grad_weight_hh_l0 [8 2] []float64
		grad_bias_ih_l0 [8] []float64
		grad_bias_hh_l0 [8] []float64
		grad_peephole_l0 [3 2] []float64
		grad_h_0 [1 3 2] []float64
		grad_c_0 [1 3 2] []float64
		weight_out [4 2] []float32
		bias_out [4] []float32
		target [2 3] []int64
		loss [2 3] []float64
		grad_weight_out [4 2] []float64
		grad_bias_out [4] []float64
	`},
	{rnn.Problem{Cell: cell.RNNTanh, Input: 1, Hidden: 3, Layers: 1, Batch: 1, Steps: 1, Output: 2}, `
		meta [] string
		input [1 1 1] []float32
		weight_ih_l0 [3 1] []float32
		weight_hh_l0 [3 3] []float32
		bias_ih_l0 [3] []float32
		bias_hh_l0 [3] []float32
		h_l0 [1 1 3] []float64
		output [1 1 3] []float64
		h_0 [1 1 3] []float32
		h_n [1 1 3] []float64
		weight_out [2 3] []float32
		bias_out [2] []float32
		target [1 1] []int64
		loss [1 1] []float64
		prob [1 1 2] []float64
	`},
	{rnn.Problem{Cell: cell.MinGRU, Input: 1, Hidden: 3, Layers: 1, Batch: 1, Steps: 2, Output: 2, Dense: 5, Pass: rnn.Train}, `
		meta [] string
		input [2 1 1] []float32
		weight_ih_l0 [6 1] []float32
		bias_ih_l0 [6] []float32
		h_l0 [2 1 3] []float64
		h_0 [1 1 3] []float32
		h_n [1 1 3] []float64
		output [2 1 3] []float64
		grad_input [2 1 1] []float64
		grad_weight_ih_l0 [6 1] []float64
		grad_bias_ih_l0 [6] []float64
		grad_h_0 [1 1 3] []float64
		weight_dense [5 3] []float32
		bias_dense [5] []float32
		dense [2 1 5] []float64
		weight_out [2 5] []float32
		bias_out [2] []float32
		target [2 1] []int64
		loss [2 1] []float64
		grad_weight_dense [5 3] []float64
		grad_bias_dense [5] []float64
		grad_weight_out [2 5] []float64
		grad_bias_out [2] []float64
	`},
}

func TestArrays(t *testing.T) {
	for _, test := range exported {
		d, answer := draw(test.p)
		list, err := torch.Arrays(d, answer, source)
		if err != nil {
			t.Fatalf("%v: %v", test.p, err)
		}
		want := strings.ReplaceAll(strings.TrimSpace(test.want), "\t", "") + "\n"
		if got := shapes(list); got != want {
			t.Errorf("%v:\n%swant:\n%s", test.p, got, want)
		}
	}
}

// TestCopies compares every sequence of a batch with the one of two that it copies, wherever
// sequences are written.
func TestCopies(t *testing.T) {
	const steps, batch, distinct = 3, 5, 2
	p := rnn.Problem{Cell: cell.LSTM, Input: 2, Hidden: 3, Layers: 2, Batch: batch, Steps: steps, Pass: rnn.Train}
	classes := p
	classes.OneHot, classes.Output = true, 4
	for _, p := range []rnn.Problem{p, classes} {
		found := 0
		for name, a := range arrays(t, p) {
			if len(a.Shape) < 2 || a.Shape[1] != batch {
				continue
			}
			found++
			width := 1
			if len(a.Shape) == 3 {
				width = a.Shape[2]
			}
			v := floats(a)
			row := func(i, b int) []float64 { return v[(i*batch+b)*width:][:width] }
			for i := range a.Shape[0] {
				for b := range batch {
					if !slices.Equal(row(i, b), row(i, b%distinct)) {
						t.Errorf("%v: %s[%d,%d] is not a copy of %s[%d,%d]", p, name, i, b, name, i, b%distinct)
					}
				}
				if width > 1 && slices.Equal(row(i, 0), row(i, 1)) {
					t.Errorf("%v: %s[%d] has equal sequences 0 and 1", p, name, i)
				}
			}
		}
		if found != 14 {
			t.Errorf("%v: %d arrays of sequences, want 14", p, found)
		}
	}
}

// TestStatesAtTheEnds compares states at the ends with those after each step.
func TestStatesAtTheEnds(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 2, Hidden: 3, Layers: 2, Batch: 4, Steps: 5}
	a := arrays(t, p)
	n := p.Batch * p.Hidden
	for _, s := range p.Cell.States {
		for l := range p.Layers {
			all := floats(a[fmt.Sprintf("%s_l%d", s, l)])
			if !slices.Equal(all[len(all)-n:], floats(a[s+"_n"])[l*n:(l+1)*n]) {
				t.Errorf("%s_n[%d] is not the last of %s_l%d", s, l, s, l)
			}
		}
	}
	if !slices.Equal(floats(a["output"]), floats(a["h_l1"])) {
		t.Error("output is not h_l1")
	}
}

// TestOneHot compares the transposed weights with the table, which has a row for each symbol.
func TestOneHot(t *testing.T) {
	p := rnn.Problem{Cell: cell.GRU, Input: 7, Hidden: 2, Layers: 2, Batch: 3, Steps: 4, Pass: rnn.Train, OneHot: true, Output: 5}
	d, answer := draw(p)
	a := arrays(t, p)
	at := slices.IndexFunc(answer, func(t oracle.Tensor) bool { return t.Name == "grad_weight_ih_l0" })
	const gh = 6
	for s := range p.Input {
		for g := range gh {
			if got, want := floats(a["weight_ih_l0"])[g*p.Input+s], float64(d.Get("weight_ih_l0")[s*gh+g]); got != want {
				t.Errorf("weight of gate unit %d and symbol %d is %v, want %v", g, s, got, want)
			}
			if got, want := floats(a["grad_weight_ih_l0"])[g*p.Input+s], answer[at].Values[s*gh+g]; got != want {
				t.Errorf("gradient of gate unit %d and symbol %d is %v, want %v", g, s, got, want)
			}
		}
	}
	for i, s := range a["symbols"].Values.([]int64) {
		step, sequence := i/p.Batch, i%p.Batch%d.Distinct
		if want := int64(d.Get("x")[step*d.Distinct+sequence]); s != want {
			t.Errorf("symbol %d is %d, want %d", i, s, want)
		}
	}
}

// nothing is a technique whose schedule is empty.
type nothing struct{}

func (nothing) Name() string                            { return "nothing" }
func (nothing) Doc() string                             { return "" }
func (nothing) Knobs(rnn.Problem) []knob.Knob           { return nil }
func (nothing) Plan(*rnn.Plan, knob.Params) error       { return nil }
func (nothing) Write(*schedule.Matrix, []float32) error { return nil }
func (nothing) Read(m *schedule.Matrix, dst []float32) error {
	for i := range dst {
		dst[i] = float32(m.ID*1000 + i)
	}
	return nil
}

// TestDeviceAnswers lays out what oracle.Read returns, all sequences of the
// batch, for every cell and kind of network.
func TestDeviceAnswers(t *testing.T) {
	for _, c := range cell.All() {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			for _, output := range []int{0, 3} {
				for _, input := range []string{"dense", "onehot", "embedded"} {
					if input == "onehot" && c.Window > 1 { // rnn.Layout declines it
						continue
					}
					p := rnn.Problem{Cell: c, Input: 3, Hidden: 4, Layers: 2, Batch: 5, Steps: 2, Pass: pass, Output: output, OneHot: input == "onehot"}
					if input == "embedded" {
						p.Symbols, p.Embedding, p.Weighted = 6, 2, output > 0
					}
					if c.Recurrent > 0 && output > 0 {
						p.Heads = 2
					} else if c.Projects() {
						p.Projection = 3
					}
					plan, _, err := rnn.Layout(nothing{}, p, nil)
					if err != nil {
						t.Fatal(err)
					}
					answer, err := oracle.Read(plan, nothing{})
					if err != nil {
						t.Fatal(err)
					}
					d, reference := draw(p)
					got, err := torch.Arrays(d, answer, source)
					if err != nil {
						t.Fatalf("%v: %v", p, err)
					}
					want, err := torch.Arrays(d, reference, source)
					if err != nil {
						t.Fatalf("%v: %v", p, err)
					}
					if shapes(got) != shapes(want) {
						t.Errorf("%v:\n%swant as from the reference:\n%s", p, shapes(got), shapes(want))
					}
					at := slices.IndexFunc(got, func(a torch.Array) bool { return a.Name == "h_l0" })
					if v := got[at].Values.([]float64); !slices.Equal(v, answer[0].Values) {
						t.Errorf("%v: h_l0 is %v, want %v", p, v, answer[0].Values)
					}
				}
			}
		}
	}
}

// TestSpeech: an export has convolutions, transcripts and their losses, one a sequence.
func TestSpeech(t *testing.T) {
	p := rnn.Problem{Cell: cell.GRU, Input: 5, Hidden: 4, Layers: 1, Batch: 3, Steps: 6, Pass: rnn.Train, Output: 4, Transcript: 2, Conv: "2x3x4/2+3x1x2"}
	all := arrays(t, p)
	for name, want := range map[string][]int{
		"weight_conv0": {2, 3, 4, 1}, "grad_weight_conv1": {3, 1, 2, 2}, "bias_conv1": {3}, "conv0": {6, 3, 3, 2}, "conv1": {6, 3, 3, 3},
		"transcript": {3, 2}, "loss": {3},
	} {
		if got := all[name].Shape; !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	labels, counts := all["transcript"].Values.([]int64), all["transcript_labels"].Values.([]int64)
	for i, steps := range all["transcript_steps"].Values.([]int64) {
		if steps < 3 || steps > 6 {
			t.Errorf("sequence %d has %d steps", i, steps)
		}
		for j, label := range labels[2*i : 2*i+2] {
			if (label > 0) != (j < int(counts[i])) {
				t.Errorf("sequence %d has %d labels in %v", i, counts[i], labels[2*i:2*i+2])
			}
		}
	}
	if _, there := all["grad_input"]; there {
		t.Error("there is a gradient of the input")
	}
	p.Pass = rnn.Forward
	if got := arrays(t, p)["prob"].Shape; !slices.Equal(got, []int{6, 3, 4}) {
		t.Errorf("prob is %v", got)
	}
}

// TestEmbedding: symbols, features and table are those of the data.
func TestEmbedding(t *testing.T) {
	p := rnn.Problem{Cell: cell.GRU, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 3, Pass: rnn.Train, Symbols: 6, Embedding: 2, Output: 4, Groups: 2, Weighted: true}
	d, _ := draw(p)
	all := arrays(t, p)
	symbols, features := all["symbols"].Values.([]int64), all["input"].Values.([]float32)
	for i, x := 0, d.Get("x"); i < len(symbols); i++ {
		if float32(symbols[i]) != x[2*i] || features[i] != x[2*i+1] {
			t.Errorf("row %d is symbol %d with feature %v, not %v", i, symbols[i], features[i], x[2*i:2*i+2])
		}
	}
	if !slices.Equal(all["embedding"].Values.([]float32), d.Get("embedding")) || !slices.Equal(all["loss_weight"].Values.([]float32), d.Get("loss_weight")) {
		t.Error("table or weights are others")
	}
	if got := len(all["grad_embedding"].Values.([]float64)); got != 12 {
		t.Errorf("the table's gradient has %d values", got)
	}
}

func TestMeta(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTMPeephole, Input: 7, Hidden: 2, Layers: 1, Batch: 3, Steps: 4, Pass: rnn.Train, OneHot: true, Output: 4, Precision: rnn.BF16}
	var got map[string]any
	if err := json.Unmarshal([]byte(arrays(t, p)["meta"].Values.(string)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"format": torch.Format, "cell": "lstm-peephole", "gates": []any{"i", "f", "g", "o"}, "states": []any{"h", "c"}, "peepholes": []any{"i", "f", "o"},
		"input": 7., "hidden": 2., "layers": 1., "batch": 3., "distinct": 2., "steps": 4., "output": 4., "onehot": true, "pass": "train", "precision": "bf16",
		"technique": "naive", "knobs": map[string]any{"streams": 2., "fused": 1.}, "device": "cpu", "seed": 1., "distribution": "normal",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("meta is\n%v, want\n%v", got, want)
	}
}

func TestRefusals(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 2, Batch: 5, Steps: 6, Pass: rnn.Train}
	forward := p
	forward.Pass = rnn.Forward
	d, answer := draw(p)
	inference, _ := draw(forward)
	short := slices.Clone(answer)
	short[0].Values = short[0].Values[1:]
	for _, test := range []struct {
		data   *rnn.Data
		answer []oracle.Tensor
		want   string
	}{
		{d, answer[1:], "torch: the answer has no h_l0"},
		{d, short, "torch: the answer's h_l0 is 12×4 and holds 47 values, not 30×4"},
		{inference, answer, "torch: the answer has dx, which is not part of the problem"},
	} {
		if err := torch.Export(new(bytes.Buffer), test.data, test.answer, source); err == nil || err.Error() != test.want {
			t.Errorf("error %v, want %s", err, test.want)
		}
	}
}

// floats returns an array's numbers.
func floats(a torch.Array) []float64 {
	var out []float64
	switch v := a.Values.(type) {
	case []float32:
		for _, x := range v {
			out = append(out, float64(x))
		}
	case []int64:
		for _, x := range v {
			out = append(out, float64(x))
		}
	case []float64:
		out = v
	}
	return out
}

// TestLengths: meta lists the lengths, targets past the ends are -1, and h_n is after each sequence's own last step.
func TestLengths(t *testing.T) {
	p := rnn.Problem{Cell: cell.GRU, Input: 2, Hidden: 3, Layers: 1, Batch: 3, Steps: 5, Output: 4, Direction: rnn.BothWays, Lengths: "1+3+5"}
	a := arrays(t, p)
	if meta := a["meta"].Values.(string); !strings.Contains(meta, `"lengths":[1,3,5]`) {
		t.Errorf("meta has no lengths: %s", meta)
	}
	target, last := a["target"].Values.([]int64), floats(a["h_n"])
	for j, n := range []int{1, 3, 5} {
		for step := range p.Steps {
			if class := target[step*p.Batch+j]; (class < 0) != (step >= n) {
				t.Errorf("sequence %d of %d steps has the target %d at step %d", j, n, class, step)
			}
		}
		for way, end := range map[string]int{"h_l0": n - 1, "h_l0_reverse": 0} {
			at := (end*p.Batch + j) * p.Hidden
			from := j * p.Hidden
			if way != "h_l0" {
				from += p.Batch * p.Hidden
			}
			if want := floats(a[way])[at : at+p.Hidden]; !slices.Equal(last[from:from+p.Hidden], want) {
				t.Errorf("h_n of sequence %d is %v, not %v of %s", j, last[from:from+p.Hidden], want, way)
			}
		}
	}
}
