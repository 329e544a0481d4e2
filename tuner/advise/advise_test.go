package advise

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rnnbench/plots/table"
	"rnnbench/record"
)

// timedRecord is a record of technique name whose rounds took these seconds.
func timedRecord(name string, p record.Point, seconds ...float64) record.Record {
	var stats *record.Stats
	if len(seconds) > 0 {
		s, _ := record.Summarize(seconds, 1)
		stats = &s
	}
	iters := make([]int, len(seconds))
	for i := range iters {
		iters[i] = 1
	}
	return record.Record{
		Run: "run", Point: p, Status: record.OK, Impl: record.Impl{Name: name}, Stats: stats, Samples: &record.Samples{Iters: iters, Wall: seconds},
		Work: record.Work{Memory: 1 << 20}, Device: "cpu",
	}
}

// rounds are n times, each later one a little longer.
func rounds(first float64, n int) (list []float64) {
	for i := range n {
		list = append(list, first*(1+0.0001*float64(i)))
	}
	return list
}

var layer = record.Point{Cell: "lstm", Pass: "forward", Precision: "fp32", Hidden: 64, Input: 32, Batch: 1, Steps: 1, Layers: 1, Weights: "m:1@0"}

func outside(name string) bool { return name == "pytorch" || name == "onnxruntime" }

// TestOf: the best of ours is compared with the best of the others, and doubts say why not to believe it.
func TestOf(t *testing.T) {
	noisy := timedRecord("persistent", layer, rounds(1e-6, 12)...)
	noisy.Warnings = []string{record.WarnNoisy}
	for _, c := range []struct {
		name    string
		recs    []record.Record
		best    string
		today   string
		times   float64
		verdict string
		doubts  []string
	}{
		{"a clear lead", []record.Record{timedRecord("naive", layer, rounds(3e-6, 12)...), timedRecord("persistent", layer, rounds(1e-6, 12)...), timedRecord("pytorch", layer, rounds(9e-6, 12)...), timedRecord("onnxruntime", layer, rounds(2e-6, 12)...)}, "persistent", "onnxruntime", 2, "yes: at least 2.00×", nil},
		{"a vendor's library", []record.Record{timedRecord("persistent", layer, rounds(1e-6, 12)...), timedRecord("cudnn", layer, rounds(4e-6, 12)...)}, "persistent", "cudnn", 4, "yes: at least 4.00×", nil},
		{"nothing to compare with", []record.Record{timedRecord("persistent", layer, rounds(1e-6, 12)...)}, "persistent", "", 0, "nothing to compare with", nil},
		{"noise", []record.Record{noisy, timedRecord("pytorch", layer, rounds(3e-6, 12)...)}, "persistent", "pytorch", 3, "yes: at least 3.00×", []string{"times of persistent are noisy"}},
		{"a rival that wins", []record.Record{timedRecord("persistent", layer, rounds(2e-6, 12)...), timedRecord("pytorch", layer, rounds(1e-6, 12)...)}, "persistent", "pytorch", 0.5, "yes: stay with today's", nil},
		{"too few samples", []record.Record{timedRecord("persistent", layer, 1e-6), timedRecord("pytorch", layer, 2e-6)}, "persistent", "pytorch", 2, "no: too few samples", nil},
		{"a tie", []record.Record{timedRecord("persistent", layer, rounds(1e-6, 12)...), timedRecord("pytorch", layer, rounds(1.001e-6, 12)...)}, "persistent", "pytorch", 1.001, "no: it may be chance", nil},
	} {
		all := Of(c.recs, outside, Model{})
		if len(all) != 1 {
			t.Errorf("%s: %d layers", c.name, len(all))
			continue
		}
		a := all[0]
		today, times := "", 0.0
		if a.Today != nil {
			today, times = a.Today.Label, *a.Times
		}
		if a.Best.Label != c.best || today != c.today || times < c.times*0.999 || times > c.times*1.001 || a.Verdict != c.verdict || !slices.Equal(a.Doubts, slices.Concat([]string{}, c.doubts)) {
			t.Errorf("%s: best %s, today %s, %g times, %s, doubts %q", c.name, a.Best.Label, today, times, a.Verdict, a.Doubts)
		}
	}
}

// TestGraphs: a technique that runs as a CUDA graph is compared with a program that does not.
func TestGraphs(t *testing.T) {
	ours := timedRecord("persistent", layer, rounds(1e-6, 12)...)
	ours.Impl.Knobs, ours.Mode.Graph = map[string]int{"graph": 1}, true
	all := Of([]record.Record{timedRecord("pytorch", layer, rounds(3e-6, 12)...), ours}, outside, Model{})
	if len(all) != 1 || all[0].Times == nil || all[0].Best.Setting != "persistent:graph=1" {
		t.Errorf("%+v", all)
	}
}

// TestNothingTimed: advice without a time says why.
func TestNothingTimed(t *testing.T) {
	r := timedRecord("persistent", layer)
	why := "it needs more memory than there is"
	r.Status, r.Stats, r.Samples, r.Reason = record.Skipped, nil, nil, &why
	a := Of([]record.Record{r}, outside, Model{})[0]
	if a.Best != nil || len(a.Doubts) != 1 || !strings.Contains(a.Doubts[0], why) {
		t.Errorf("%+v", a)
	}
}

// TestUse: the lines are those of the model's framework, and name its layers.
func TestUse(t *testing.T) {
	both := layer
	both.Direction, both.Cell = "both", "gru-before@12345678"
	plain := layer
	plain.Weights = ""
	for want, c := range map[string]struct {
		p record.Point
		m Model
	}{
		"from rnnbench_torch import LSTM\nmodel.enc.rnn = LSTM.from_torch(model.enc.rnn)\nmodel.dec = LSTM.from_torch(model.dec)": {layer, Model{"m.pt", true, map[string][]string{layer.Weights: {"enc.rnn", "dec"}}}},
		"rnnbench export --model 'm.onnx' --layer 'LSTM_1' -B 1 -T 1 -f weights.npz\n" +
			"rnnbench_layer(device, \"cell=gru-before,input=32,hidden=64,layers=1,direction=both\", &layer);\n" +
			"rnnbench_plan(layer, 1, 1, \"forward\", \"auto\", NULL, &plan);  /* then rnnbench_bind the arrays of weights.npz */": {both, Model{"m.onnx", false, map[string][]string{layer.Weights: {"LSTM_1"}}}},
		"from rnnbench_torch import LSTM\nfast = LSTM.from_torch(module)  # a torch.nn.LSTM": {plain, Model{}},
	} {
		if got := strings.Join(c.m.use(c.p), "\n"); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

// TestTable: the table has a row for each shape and a note for each doubt, and the advice is JSON.
func TestTable(t *testing.T) {
	m := Model{"m.onnx", false, map[string][]string{layer.Weights: {"LSTM_1", "LSTM_2"}}}
	recs := []record.Record{timedRecord("persistent", layer, rounds(2e-6, 12)...), timedRecord("pytorch", layer, rounds(1e-6, 12)...)}
	all := Of(recs, outside, m)
	var out bytes.Buffer
	if err := Table(all, recs).Write(&out, "markdown", table.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[1] 2 layers, each lstm 32→64", "persistent", "2.00 µs", "0.50×", "yes: stay with today's", "LSTM_1 was timed. The others of this shape take as long: LSTM_2.", "1.00 MiB", "persistent: recurrent weights"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if _, err := json.Marshal(all); err != nil {
		t.Error(err)
	}
}
