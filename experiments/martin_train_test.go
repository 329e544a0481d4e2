package experiments_test

import (
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/results"
)

// TestSooner: an LSTM with the same losses in four times the time is found to be four times as slow.
// One that ends at a higher loss is compared at that loss.
func TestSooner(t *testing.T) {
	recs := planned(t, "martin-train", cpu)
	for i := range recs {
		one := recs[i].Training
		if one == nil {
			continue
		}
		at := float64(recs[i].Seq) // of ten records
		heldOut := results.Score{Loss: 7 - at/10, Top1: 0.01, Top5: 0.05, Top20: 0.2}
		if one.Wall = at; strings.HasPrefix(recs[i].Impl.Label, "LSTM") {
			one.Wall = 4 * at
		}
		if recs[i].Impl.Label == "LSTM, T=256" {
			heldOut.Loss = 7 - min(at, 5)/10
		}
		one.HeldOut = &heldOut
	}
	rep := report(t, "martin-train", recs, cpu)
	for _, want := range []string{"4.00× for LSTM, T=64, 4.00× for LSTM, T=128, 4.00× for LSTM, T=256.", "below that of: LSTM, T=256.", "not comparable with the paper's"} {
		if about(rep, want) == "" {
			t.Errorf("no finding has %q: %q", want, rep.Findings)
		}
	}
	if row := rep.Tables[1].Rows[2]; row[1].Text != "6.500" || row[2].Text != "5" || row[3].Text != "20" {
		t.Errorf("the loss that both reach is %v", row)
	}
	if c := rep.Claims[0]; c.Outcome != experiments.Agrees || !strings.Contains(c.Here, "4.00×") {
		t.Errorf("the claim is %+v", c)
	}
	if last := rep.Claims[len(rep.Claims)-1]; last.Outcome != experiments.Irreproducible {
		t.Errorf("accuracies on other data count as %v", last.Outcome)
	}
}
