package experiments_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// depthRecords returns two records of each network of diamos-depth. errors gives the label error rate of its
// best record, and cost the cost in nats; the first record is worse.
func depthRecords(t *testing.T, on study.Target, size study.Size, errors, cost func(p record.Point, seed int) float64) []record.Record {
	t.Helper()
	e, err := experiments.Lookup("diamos-depth")
	if err != nil {
		t.Fatal(err)
	}
	var recs []record.Record
	for _, x := range e.Trainings(size, on) {
		for _, r := range recordsOf([]study.Part{x.Part}) {
			for i := range 2 {
				wrong := min(1, errors(r.Point, x.Plan.Repeat)+0.1*float64(1-i))
				one := r
				one.Seq = i
				one.Training = &record.Training{Iterations: (i + 1) * x.Plan.Iterations / 2, Optimizer: x.Plan.Optimizer, Data: x.Plan.Data, Repeat: x.Plan.Repeat,
					HeldOut: &record.Score{Loss: cost(r.Point, x.Plan.Repeat) + float64(1-i), LabelErrors: &wrong}}
				recs = append(recs, one)
			}
		}
	}
	return recs
}

// TestDiamosDepth: where networks learn as the paper's did, all claims agree. Where the seeds differ by as
// much as the networks, none can be told.
func TestDiamosDepth(t *testing.T) {
	asPaper := func(p record.Point, seed int) float64 {
		wrong := 0.3 + 0.01*float64(seed)
		switch {
		case p.Skip == 0:
			return 0.95
		case p.Skip == 1:
			wrong += 0.1
		case p.Layers <= 12:
			wrong += 0.2 / float64(p.Layers)
		case p.Hidden < 100 && p.Layers > 64:
			wrong += 0.1
		}
		return wrong - 0.0005*float64(p.Layers)
	}
	cost := func(p record.Point, seed int) float64 { return 2 + 0.01*float64(seed) + 0.01*float64(p.Batch) }
	rep := report(t, "diamos-depth", depthRecords(t, gpu, study.Full, asPaper, cost), gpu)
	for _, c := range rep.Claims {
		if c.Outcome != study.Agrees {
			t.Errorf("%s: %s, %s", c.Paper, c.Outcome, c.Here)
		}
	}
	if len(rep.Claims) != 5 || len(rep.Tables) != 4 || len(rep.Figures) != 3 {
		t.Errorf("%d claims, %d tables, %d figures", len(rep.Claims), len(rep.Tables), len(rep.Figures))
	}
	if row := rep.Tables[0].Rows[0]; row[0].Text != "none" || row[1].Text != "100.00" || row[4].Text != "95.0 %" {
		t.Errorf("the first row of Table 1 is %v", row)
	}

	any := func(_ record.Point, seed int) float64 { return 0.2 + 0.3*float64(seed) }
	rep = report(t, "diamos-depth", depthRecords(t, gpu, study.Full, any, any), gpu)
	for _, c := range rep.Claims {
		if c.Outcome != study.CannotTell {
			t.Errorf("%s: %s, %s", c.Paper, c.Outcome, c.Here)
		}
	}
}

// TestDiamosDepthInPart: a report names what is missing or has failed.
func TestDiamosDepthInPart(t *testing.T) {
	half := func(record.Point, int) float64 { return 0.5 }
	recs := depthRecords(t, gpu, study.Full, half, half)
	recs = slices.DeleteFunc(recs, func(r record.Record) bool { return r.Point.Skip == 3 })
	for i := range recs {
		if r := &recs[i]; r.Point.Skip == 0 {
			why := "the loss is +Inf after 7 iterations"
			r.Status, r.Reason, r.Training.HeldOut = record.Failed, &why, nil
		}
	}
	rep := report(t, "diamos-depth", recs, gpu)
	words := fmt.Sprint(rep.Tables[0].Rows)
	if !strings.Contains(words, "the loss is +Inf") || !strings.Contains(words, "not measured") {
		t.Errorf("Table 1: %s", words)
	}
	if n := slices.IndexFunc(rep.Claims, func(c study.Claim) bool { return c.Outcome == study.Unmeasured }); n < 0 {
		t.Errorf("no claim lacks a network: %v", rep.Claims)
	}
}

// TestDiamosDepthRates: a network has the learning rate with the least mean cost. One with which a seed fails
// counts only where all fail.
func TestDiamosDepthRates(t *testing.T) {
	half := func(record.Point, int) float64 { return 0.5 }
	recs := depthRecords(t, gpu, study.Full, half, half)
	why := "the loss is NaN after 64 iterations"
	for i := range recs {
		r := &recs[i]
		switch low := strings.Contains(r.Training.Optimizer, "lr=0.001"); {
		case r.Point.Skip == 1 && low, r.Point.Skip == 2 && !low:
			r.Training.HeldOut.Loss /= 2
		case r.Point.Skip == 3 && low && r.Training.Repeat == 1, r.Point.Skip == 0:
			r.Status, r.Reason = record.Failed, &why
			if r.Point.Skip == 3 {
				r.Training.HeldOut = nil
			}
		}
	}
	want := map[string]string{"1": "0.001", "2": "0.003", "3": "0.003"}
	for _, row := range report(t, "diamos-depth", recs, gpu).Tables[0].Rows {
		if w, ok := want[row[0].Text]; ok && (row[3].Text != w || row[6].Text != "") {
			t.Errorf("skip %s: rate %s, status %q, want rate %s", row[0].Text, row[3].Text, row[6].Text, w)
		}
		if row[0].Text == "none" && !strings.Contains(row[6].Text, why) {
			t.Errorf("where all fail, the status is %q", row[6].Text)
		}
	}
}

// TestDiamosDepthPlans: all networks see as many utterances, those of Table 2 have about as many weights,
// and each is trained once
// a learning rate and seed.
func TestDiamosDepthPlans(t *testing.T) {
	e, err := experiments.Lookup("diamos-depth")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []study.Size{study.Full, study.Quick} {
		for _, on := range []study.Target{gpu, {}} {
			seen, shown := map[string]bool{}, 0
			for _, x := range e.Trainings(size, on) {
				p := x.Points[0]
				key := fmt.Sprint(p, x.Plan.Optimizer, x.Plan.Repeat)
				if seen[key] {
					t.Errorf("%s is trained twice", key)
				}
				seen[key] = true
				n := x.Plan.Iterations * p.Batch
				if shown == 0 {
					shown = n
				}
				if math.Abs(float64(n-shown)) > 0.05*float64(shown) {
					t.Errorf("%v sees %d utterances, others %d", p, n, shown)
				}
				if x.Plan.HeldBatch*x.Plan.Batches != 512 || p.Skip > p.Layers || x.Plan.Every > x.Plan.Iterations {
					t.Errorf("%v: %+v", p, x.Plan)
				}
			}
		}
	}
}
