package experiments_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/record"
)

// alternatives are the records of diamos-alternatives at the full size, whose times seconds gives.
func alternatives(t *testing.T, seconds func(r record.Record) float64) (recs []record.Record) {
	t.Helper()
	e, err := experiments.Lookup("diamos-alternatives")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recordsOf(e.Parts(study.Full, gpu)) {
		r.Seq, r.Stats = len(recs)+1, stats(seconds(r))
		recs = append(recs, r)
	}
	return recs
}

// TestHostActivations: the slowdown is computed from the rates of copies. Records of earlier programs lack
// these, and a processor's activations are in host memory.
func TestHostActivations(t *testing.T) {
	const claim = "keeping activations in host memory"
	recs := alternatives(t, func(r record.Record) float64 { return 1e-3 * float64(r.Point.Batch) })
	e, err := experiments.Lookup("diamos-alternatives")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key, rate string
		want      study.Outcome
	}{
		{"cuda-synthetic", "1.00 GB/s", study.ComputedDiffers}, {"cuda-synthetic", "12.0 GB/s", study.ComputedAgrees},
		{"cuda-synthetic", "500 GB/s", study.ComputedDiffers}, {"cuda-synthetic", "", study.Unmeasured}, {"cpu-synthetic-2t", "", study.Unmeasured},
	} {
		d := record.Device{Key: c.key, Facts: map[string]string{"copies to the host": c.rate, "copies from the host": c.rate}}
		rep, err := e.On(d, recs)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcomes(rep, claim); !slices.Equal(got, []study.Outcome{c.want}) {
			t.Errorf("%s, copies at %q: %v, want %s", c.key, c.rate, got, c.want)
		}
	}
}

// TestKeptActivations: a plain layer keeps its states and little else. Its weights are not counted.
func TestKeptActivations(t *testing.T) {
	on := gpu
	on.ToHost, on.FromHost = 50e9, 25e9
	tab := report(t, "diamos-alternatives", alternatives(t, func(record.Record) float64 { return 1 }), on).Tables[0]
	if len(tab.Rows) != 4 {
		t.Fatalf("%d rows, want two techniques at two minibatches", len(tab.Rows))
	}
	for i, row := range tab.Rows {
		states := 4 * 4 * 1152 * 350 * float64(row[0].Value.(int))
		bytes := row[2].Value.(float64)
		if bytes < states || bytes > 1.1*states {
			t.Errorf("row %d keeps %g bytes, and states alone are %g", i, bytes, states)
		}
		if copies, want := row[5].Value.(float64), bytes/50e9+bytes/25e9; math.Abs(copies-want) > 1e-9 {
			t.Errorf("row %d copies for %g s, want %g", i, copies, want)
		}
	}
}

// TestDividedLayers: layers pay from the size at which half of linear scaling is kept, by products as
// measured and exchanges over the machine's links.
func TestDividedLayers(t *testing.T) {
	const claim = "a layer divided over 4 GPUs"
	e, err := experiments.Lookup("diamos-alternatives")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		latency float64 // of the link
		want    study.Outcome
		says    string
	}{
		{10e-6, study.ComputedAgrees, "from 5120 units on"},
		{0.1e-6, study.ComputedDiffers, "at all sizes"},
		{1e-3, study.ComputedDiffers, "not at the largest size, 7240 units"},
	} {
		recs := alternatives(t, func(r record.Record) float64 {
			h := float64(r.Point.Hidden)
			return float64(r.Point.Steps) * 12 * h * h * float64(r.Point.Batch) / 40e12
		})
		m, err := model.Load("h200")
		if err != nil {
			t.Fatal(err)
		}
		m.Links[0].L = c.latency
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := e.On(record.Device{Key: "cuda-synthetic", Machine: text}, recs)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(rep.Claims, func(x study.Claim) bool {
			return strings.HasPrefix(x.Paper, claim) && strings.HasPrefix(x.Here, "modelled")
		})
		if i < 0 || rep.Claims[i].Outcome != c.want || !strings.Contains(rep.Claims[i].Here, c.says) {
			t.Errorf("latency %g s: %+v, want %s %q", c.latency, rep.Claims, c.want, c.says)
		}
	}
}
