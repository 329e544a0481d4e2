package experiments_test

import (
	"strings"
	"testing"

	"rnnbench/experiments/study"
	"rnnbench/record"
)

// claimed returns the claim about words in a report.
func claimed(t *testing.T, rep *study.Report, words string) study.Claim {
	t.Helper()
	for _, c := range rep.Claims {
		if strings.Contains(c.Paper, words) {
			return c
		}
	}
	t.Fatalf("no claim about %q", words)
	return study.Claim{}
}

// scaled sets the times of records of a label, in seconds, with an interval of 1 % each way.
func scaled(recs []record.Record, label string, of func(record.Point) float64) []record.Record {
	for i, r := range recs {
		if r.Impl.Label == label {
			s := *r.Stats
			at := of(r.Point)
			lo, hi := 0.99*at, 1.01*at
			s.Median, s.Lo, s.Hi = at, &lo, &hi
			recs[i].Stats = &s
		}
	}
	return recs
}

// TestNaiveLaunches: where the naive form takes as long at any size, launches are the cause of a gain
// that is largest at the smallest minibatch. Where graphs are faster, launches are the cause of four
// layers that have not twice the throughput of one.
func TestNaiveLaunches(t *testing.T) {
	recs := scaled(planned(t, "appleyard-fig1", gpu), "0 naive", func(record.Point) float64 { return 0.08 })
	most := "the ladder gains most at minibatch 64"
	if c := claimed(t, report(t, "appleyard-fig1", recs, gpu), most); c.Outcome != study.Differs || strings.Contains(c.Why, "launches") {
		t.Errorf("without kernels: %+v", c)
	}
	for i := range recs {
		if recs[i].Impl.Label == "0 naive" {
			recs[i].Kernels = []record.Kernel{{Name: "product", Launches: 11600}}
		}
	}
	if c := claimed(t, report(t, "appleyard-fig1", recs, gpu), most); c.Outcome != study.Differs || !strings.Contains(c.Why, "11600 kernels a run, which takes 2000 to 2000 µs a cell at 8 of 8 points") {
		t.Errorf("%+v", c)
	}
	slow := scaled(recs, "0 naive", func(p record.Point) float64 { return 1e-6 * float64(p.Hidden*p.Batch) })
	if c := claimed(t, report(t, "appleyard-fig1", slow, gpu), most); strings.Contains(c.Why, "launches") {
		t.Errorf("of times that grow: %+v", c)
	}
	const twice = "four layers have twice the throughput"
	graph := scaled(recs, "6 as a graph", func(p record.Point) float64 { return float64(p.Layers) * 1e-9 })
	if c := claimed(t, report(t, "appleyard-fig1", graph, gpu), twice); c.Outcome != study.Differs || !strings.Contains(c.Why, "as a graph") {
		t.Errorf("%+v", c)
	}
}

// TestFaithfulLadder: the paper's factor is compared with the ladder by cuBLAS, which the paper used,
// where it was measured. Both lengths make one claim.
func TestFaithfulLadder(t *testing.T) {
	recs := planned(t, "appleyard-table1", gpu)
	for _, r := range recs {
		r.Point.Steps *= 10
		recs = append(recs, r)
	}
	recs = scaled(recs, "0 naive", func(record.Point) float64 { return 30 })
	recs = scaled(recs, "0 naive, cuBLAS", func(record.Point) float64 { return 11.1 })
	recs = scaled(recs, "6 overlapped", func(record.Point) float64 { return 1 })
	recs = scaled(recs, "6 overlapped, cuBLAS", func(record.Point) float64 { return 1 })
	const whole = "the whole ladder makes an LSTM 11.1 times as fast"
	rep := report(t, "appleyard-table1", recs, gpu)
	if c := claimed(t, rep, whole); c.Outcome != study.Agrees || !strings.Contains(c.Here, "T=20: 11.1× (10.4 to 11.9) with cuBLAS") || !strings.Contains(c.Here, "T=200") {
		t.Errorf("%+v", c)
	}
	recs = scaled(recs, "0 naive, cuBLAS", func(record.Point) float64 { return 12.7 })
	if c := claimed(t, report(t, "appleyard-table1", recs, gpu), whole); c.Outcome != study.CannotTell {
		t.Errorf("at the end of agreement: %+v", c)
	}
}

// TestNoThreshold: what a paper says without a number is no claim that may agree or differ.
func TestNoThreshold(t *testing.T) {
	for id, words := range map[string]string{"appleyard-fig1": "batching inputs in pairs is", "appleyard-fig2": "the backward pass has"} {
		found := false
		for _, c := range report(t, id, planned(t, id, gpu), gpu).Claims {
			if strings.Contains(c.Here, words) {
				found = found || c.Outcome == study.Yardstick
			}
		}
		if !found {
			t.Errorf("%s: no yardstick says %q", id, words)
		}
	}
}

// TestBackwardParts: the report of Figure 2 says that records do not tell the parts of the backward pass
// apart.
func TestBackwardParts(t *testing.T) {
	for _, on := range []study.Target{cpu, gpu} {
		said := about(report(t, "appleyard-fig2", planned(t, "appleyard-fig2", on), on), "The backward pass, weight gradients included")
		if !strings.Contains(said, "do not tell which one is faster") {
			t.Errorf("GPU %t: %q", on.GPU, said)
		}
	}
}
