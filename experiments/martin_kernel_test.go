package experiments_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
)

// withTimes gives records the median times that seconds returns; 0 leaves a record as it is.
func withTimes(recs []record.Record, seconds func(record.Record) float64) []record.Record {
	recs = slices.Clone(recs)
	for i, r := range recs {
		if t := seconds(r); t > 0 {
			s := *r.Stats
			lo, hi := 0.99*t, 1.01*t
			s.Median, s.Lo, s.Hi = t, &lo, &hi
			recs[i].Stats = &s
		}
	}
	return recs
}

// TestProcessors: the number of processors varies as far as the machine has them. The claim is of the
// least gain from three on, and is not made of two, or on a GPU, whose number does not vary.
func TestProcessors(t *testing.T) {
	const claim = "a parallel scan is faster from 3 processors on"
	for workers, want := range map[int]study.Outcome{2: study.Unmeasured, 3: study.Agrees, 16: study.Differs} {
		on := cpu
		on.Workers = workers
		recs := withTimes(planned(t, "martin-kernel", on), func(r record.Record) float64 {
			n := 0
			if fmt.Sscanf(r.Impl.Label, "scan alone, %d", &n); n == 16 {
				return 2 // too many
			}
			return map[int]float64{1: 1, 2: 1.2, 3: 0.8, 4: 0.7, 8: 0.6}[n]
		})
		rep := report(t, "martin-kernel", recs, on)
		c := claimOn(t, rep, claim)
		if c.Outcome != want {
			t.Errorf("%d workers: %+v", workers, c)
		}
		if workers == 16 && !strings.HasPrefix(c.Here, "0.83× (0.78 to 0.89) with 2, 1.25× (1.17 to 1.34) with 3, ") {
			t.Errorf("%q", c.Here)
		}
		if columns := rep.Tables[1].Columns; columns[len(columns)-1].Name != fmt.Sprintf("p=%d", workers) {
			t.Errorf("%d workers: columns %v", workers, columns)
		}
	}
	rep := report(t, "martin-kernel", planned(t, "martin-kernel", gpu), gpu)
	if c := claimOn(t, rep, claim); c.Outcome != study.Unmeasured {
		t.Errorf("on a GPU: %+v", c)
	}
	for _, c := range rep.Tables[0].Columns {
		if strings.HasPrefix(c.Name, "model") {
			t.Error("a GPU's table has the model, as if the number of processors were measured")
		}
	}
}

// TestLengthsOfThePaper: the paper's factor is of its lengths, though longer sequences are faster here. If it
// differs, the report says what launches have to do with it.
func TestLengthsOfThePaper(t *testing.T) {
	e, err := experiments.Lookup("martin-fig1")
	if err != nil {
		t.Fatal(err)
	}
	recs := withTimes(recordsOf(e.Parts(study.Full, gpu)), func(r record.Record) float64 {
		events := float64(r.Point.Batch * r.Point.Steps)
		switch {
		case r.Impl.Label == "LSTM":
			return events / 1000
		case r.Impl.Label == "LSTM, graph":
			return events / 2000
		case r.Impl.Label == "LS-LSTM, scan" && r.Point.Steps == 262144:
			return events / 900e3
		}
		return events / 300e3
	})
	rep := report(t, "martin-fig1", recs, gpu)
	if c := claimOn(t, rep, "an LS-LSTM trains up to 175 times"); c.Here != "up to 300× (280 to 321)" || c.Outcome != study.Differs || !strings.Contains(c.Why, "the factor is 150×") {
		t.Errorf("%+v", c)
	}
	ch := rep.Figures[0].Figure.(*plots.Chart)
	if !slices.ContainsFunc(ch.Panels[0].Series, func(s plots.Series) bool { return s.Label == "the paper's" && !s.Unlisted }) {
		t.Error("no entry of the legend for the paper's lines")
	}
	if !slices.ContainsFunc(ch.Notes, func(n string) bool {
		return strings.HasPrefix(n, "From minibatch 1 on, the LS-LSTM's lines of all lengths coincide")
	}) {
		t.Errorf("equal rates: %q", ch.Notes)
	}
}

// TestPeakLimits: on a processor, the report says that arithmetic limits the factor where even the peak
// would.
func TestPeakLimits(t *testing.T) {
	e, err := experiments.Lookup("martin-fig1")
	if err != nil {
		t.Fatal(err)
	}
	recs := withTimes(recordsOf(e.Parts(study.Full, cpu)), func(r record.Record) float64 { return float64(r.Point.Batch*r.Point.Steps) / 1e4 })
	for i := range recs {
		events := float64(recs[i].Point.Batch * recs[i].Point.Steps)
		recs[i].Device = "cpu-synthetic-2t"
		peak := 3e4 * float64(recs[i].Work.Flops) / events // three times as fast as this
		recs[i].Rate = &record.Rate{Flops: peak / 3, Peak: &peak, Source: record.PeakMultiplyAdds}
	}
	for _, claim := range []string{"an LS-LSTM trains up to 175 times", "one sequence: 9.8 times"} {
		if c := claimOn(t, report(t, "martin-fig1", recs, cpu), claim); !strings.HasPrefix(c.Why, "arithmetic limits it: ") || !strings.HasSuffix(c.Why, "it would be 3.0×") {
			t.Errorf("%+v", c)
		}
	}
}

// TestLaunchedTraining: if whole training has another factor than the paper's, the report says how
// much of it is the LSTM's replay as a graph.
func TestLaunchedTraining(t *testing.T) {
	recs := withTimes(planned(t, "martin-fig1-training", gpu), func(r record.Record) float64 {
		events := float64(r.Point.Batch * r.Point.Steps)
		return events / map[string]float64{"LS-LSTM": 50e3, "LSTM": 1000, "LSTM, launched": 700}[r.Impl.Label]
	})
	const claim = "an LS-LSTM trains up to 77 times"
	if c := claimOn(t, report(t, "martin-fig1-training", recs, gpu), claim); !strings.Contains(c.Why, "it reaches 0.7 instead of 1.0 thousand events per second, and the factor is 71×") {
		t.Errorf("%+v", c)
	}
	if c := claimOn(t, report(t, "martin-fig1-training", without(recs, "LSTM, launched"), gpu), claim); c.Why != "the cause is not known" {
		t.Errorf("without it: %+v", c)
	}
}
