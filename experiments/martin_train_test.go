package experiments_test

import (
	"math"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// losses returns records of martin-train at the full size, n for each network, once a second. The
// losses of a network by label are of a time in seconds.
func losses(t *testing.T, n int, loss func(label string, seconds float64) float64) []record.Record {
	t.Helper()
	var recs []record.Record
	e, err := experiments.Lookup("martin-train")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range e.Trainings(study.Full, gpu) {
		for i := 1; i <= n; i++ {
			r := recordsOf([]study.Part{x.Part})[0]
			r.Seq = i
			v := loss(r.Impl.Label, float64(i))
			r.Training = &record.Training{Iterations: i, Wall: float64(i), Frames: int64(i), Loss: v + 1, MeanLoss: v, MeanOf: 16,
				HeldOut: &record.Score{Loss: v + 0.1, Top1: 0.01, Top5: 0.05, Top20: 0.2}, Optimizer: x.Plan.Optimizer, Data: x.Plan.Data}
			recs = append(recs, r)
		}
	}
	return recs
}

// claimOn returns the one claim that begins so.
func claimOn(t *testing.T, rep *study.Report, paper string) (found study.Claim) {
	t.Helper()
	n := 0
	for _, c := range rep.Claims {
		if strings.HasPrefix(c.Paper, paper) {
			found, n = c, n+1
		}
	}
	if n != 1 {
		t.Errorf("%d claims begin %q", n, paper)
	}
	return found
}

// slowness is how slowly a network learns in these tests: an LSTM the slower, the longer its sequences.
func slowness(label string) float64 {
	return map[string]float64{"LS-LSTM, T=1024": 1, "LSTM, T=128": 5, "LSTM, T=256": 6, "LSTM, T=512": 7, "LSTM, T=1024": 8}[label]
}

// TestQuarterOfTheTime: the LS-LSTM reaches the lowest training loss of the LSTMs in a fifth of their
// time if it learns five times as fast as the fastest. The loss is the mean over minibatches, without
// which nothing is said.
func TestQuarterOfTheTime(t *testing.T) {
	const claim = "an LS-LSTM reaches a better training loss"
	recs := losses(t, 400, func(label string, s float64) float64 { return 8 - math.Log(1+s/slowness(label)) })
	rep := report(t, "martin-train", recs, gpu)
	if c := claimOn(t, rep, claim); c.Outcome != study.Agrees || !strings.Contains(c.Here, "after 400 s: ") {
		t.Errorf("%+v", c)
	}
	for i := range recs {
		recs[i].Training.MeanOf = 0
	}
	if c := claimOn(t, report(t, "martin-train", recs, gpu), claim); c.Outcome != study.Unmeasured {
		t.Errorf("of single minibatches: %+v", c)
	}
	recs = losses(t, 400, func(label string, s float64) float64 {
		if strings.HasPrefix(label, "LS-") {
			return 7 // it learns nothing
		}
		return 8 - math.Log(1+s/slowness(label))
	})
	if c := claimOn(t, report(t, "martin-train", recs, gpu), claim); c.Outcome != study.Differs || !strings.Contains(c.Here, "is not reached after 400 s") {
		t.Errorf("without learning: %+v", c)
	}
}

// TestShorterFaster: losses are compared at one time, also where a network's first record is below
// what another ever reaches.
func TestShorterFaster(t *testing.T) {
	const claim = "the shorter the sequences, the faster the LSTM learns at first"
	falling := func(label string, s float64) float64 { return 8 - math.Log(1+100*s/slowness(label)) }
	for _, first := range []int{1, 13} { // records begin early, or late
		recs := losses(t, 90, falling)
		for i := 0; i < len(recs); i++ {
			if r := recs[i].Training; r.Wall < float64(first) {
				recs = append(recs[:i], recs[i+1:]...)
				i--
			}
		}
		for i := range recs {
			if recs[i].Impl.Label == "LSTM, T=128" { // its records are not at the others' times
				recs[i].Training.Wall += 0.4
				recs[i].Training.MeanLoss = falling("LSTM, T=128", recs[i].Training.Wall)
			}
		}
		if c := claimOn(t, report(t, "martin-train", recs, gpu), claim); c.Outcome != study.Agrees {
			t.Errorf("from %d s on: %+v", first, c)
		}
	}
	recs := losses(t, 90, func(label string, s float64) float64 {
		if label == "LSTM, T=256" {
			label = "LSTM, T=1024"
		}
		return falling(label, s)
	})
	if c := claimOn(t, report(t, "martin-train", recs, gpu), claim); c.Outcome != study.Differs {
		t.Errorf("with 256 steps as slow as 1024: %+v", c)
	}
}

// TestFinalLoss: while losses still fall, nothing can be told of final ones. Else shorter sequences that end lower differ.
func TestFinalLoss(t *testing.T) {
	const claim = "the shorter the sequences, the higher the LSTM's final loss"
	recs := losses(t, 90, func(label string, s float64) float64 { return 8 - math.Log(1+s/slowness(label)) })
	if c := claimOn(t, report(t, "martin-train", recs, gpu), claim); c.Outcome != study.CannotTell || !strings.Contains(c.Why, "the loss of LSTM, T=1024 is not final after 90 s: it falls by 0.") {
		t.Errorf("%+v", c)
	}
	recs = losses(t, 90, func(label string, s float64) float64 { return 4 + slowness(label) })
	if c := claimOn(t, report(t, "martin-train", recs, gpu), claim); c.Outcome != study.Differs || c.Why != "the cause is not known" {
		t.Errorf("of constant losses: %+v", c)
	}
	recs = losses(t, 90, func(label string, s float64) float64 { return 4 - slowness(label)/10 })
	if c := claimOn(t, report(t, "martin-train", recs, gpu), claim); c.Outcome != study.Agrees {
		t.Errorf("of longer sequences that end lower: %+v", c)
	}
}

// TestSooner: an LSTM with the same losses in four times the time is found to be four times as slow.
// One that ends at a higher loss is compared at that loss. A time before the first record is a bound.
func TestSooner(t *testing.T) {
	recs := planned(t, "martin-train", cpu)
	for i := range recs {
		one := recs[i].Training
		if one == nil {
			continue
		}
		at := float64(recs[i].Seq) // of ten records
		heldOut := record.Score{Loss: 7 - at/10, Top1: 0.01, Top5: 0.05, Top20: 0.2}
		if one.Wall = at; strings.HasPrefix(recs[i].Impl.Label, "LSTM") {
			one.Wall = 4 * at
		}
		switch recs[i].Impl.Label {
		case "LSTM, T=256":
			heldOut.Loss = 7 - min(at, 5)/10
		case "LSTM, T=128":
			heldOut.Loss = 6.95 // below which the first record of the LS-LSTM is
		}
		one.HeldOut = &heldOut
	}
	rep := report(t, "martin-train", recs, cpu)
	for _, want := range []string{"4.00× for LSTM, T=64, at least 4.00× for LSTM, T=128, 4.00× for LSTM, T=256.", "below that of: LSTM, T=128; LSTM, T=256.", "not comparable with the paper's"} {
		if about(rep, want) == "" {
			t.Errorf("no finding has %q: %q", want, rep.Findings)
		}
	}
	if row := rep.Tables[1].Rows[2]; row[1].Text != "6.500" || row[2].Text != "5" || row[3].Text != "20" {
		t.Errorf("the loss that both reach is %v", row)
	}
	if row := rep.Tables[1].Rows[1]; row[2].Text != "≤ 1" || row[4].Text != "≥ 4.00" {
		t.Errorf("a loss below the first record: %v", row)
	}
	if last := rep.Claims[len(rep.Claims)-1]; last.Outcome != study.Irreproducible {
		t.Errorf("accuracies on other data count as %v", last.Outcome)
	}
}
