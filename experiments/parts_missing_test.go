package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
)

// reportWithout returns the report of an experiment's records at the papers' sizes without those that leave
// chooses.
func reportWithout(t *testing.T, id string, leave func(record.Record) bool) *study.Report {
	t.Helper()
	e, err := experiments.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	recs := slices.DeleteFunc(recordsOf(e.Parts(study.Full, gpu)), leave)
	rep, err := e.Report(recs, gpu)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// outcomes are those of claims that begin with words.
func outcomes(rep *study.Report, words string) (found []study.Outcome) {
	for _, c := range rep.Claims {
		if strings.HasPrefix(c.Paper, words) {
			found = append(found, c.Outcome)
		}
	}
	return found
}

// TestScalingNeedsParts: times of one part say nothing about how a technique scales over devices.
func TestScalingNeedsParts(t *testing.T) {
	for words, leave := range map[string]func(record.Record) bool{
		"Scaling over devices was not measured": func(r record.Record) bool { return r.Point.Batch > 4 },
		"With 4 sequences, persistent keeps":    func(r record.Record) bool { return r.Point.Batch == 8 || r.Point.Batch == 64 },
	} {
		rep := reportWithout(t, "diamos-fig5", leave)
		if !slices.ContainsFunc(rep.Findings, func(s string) bool { return strings.HasPrefix(s, words) }) {
			t.Errorf("no finding begins with %q: %q", words, rep.Findings)
		}
		if scales := len(outcomes(rep, "persistent kernels scale")) > 0; scales != (words == "With 4 sequences, persistent keeps") {
			t.Errorf("%q: claims are %+v", words, rep.Claims)
		}
	}
}

// TestAloneIsNotFastest: a technique that was measured alone at a layer is not called the fastest there.
func TestAloneIsNotFastest(t *testing.T) {
	all := reportWithout(t, "production", func(record.Record) bool { return false })
	layers := len(all.Tables[0].Rows)
	seen := 0
	rep := reportWithout(t, "production", func(r record.Record) bool {
		if r.Point.Hidden == 1024 && r.Point.Batch == 512 {
			seen++
			return r.Impl.Label != "naive"
		}
		return false
	})
	if seen < 2 || len(rep.Tables[0].Rows) != layers {
		t.Fatalf("%d records of the layer, %d rows instead of %d", seen, len(rep.Tables[0].Rows), layers)
	}
	if s := strings.Join(rep.Findings, "\n"); strings.Contains(s, "naive at") || !strings.Contains(s, "At 1 layer one technique alone was measured") {
		t.Error(s)
	}
}

// TestLongestSequenceMissing: the paper's 175 is of one sequence of 65,536 steps. Without it nothing
// is said about that number.
func TestLongestSequenceMissing(t *testing.T) {
	const claim = "an LS-LSTM trains up to 175 times"
	all := reportWithout(t, "martin-fig1", func(record.Record) bool { return false })
	if got := outcomes(all, claim); len(got) != 1 || got[0] == study.Unmeasured {
		t.Errorf("with all records: %v", got)
	}
	rep := reportWithout(t, "martin-fig1", func(r record.Record) bool { return r.Point.Batch == 1 && r.Point.Steps == 65536 })
	if got := outcomes(rep, claim); len(got) != 1 || got[0] != study.Unmeasured {
		t.Errorf("without the longest: %v", got)
	}
}

// TestPanelsInOrder: panels go from few sequences to many, in whichever order points were measured.
func TestPanelsInOrder(t *testing.T) {
	e, err := experiments.Lookup("appleyard-fig2")
	if err != nil {
		t.Fatal(err)
	}
	recs := recordsOf(e.Parts(study.Full, gpu))
	slices.Reverse(recs)
	rep, err := e.Report(recs, gpu)
	if err != nil {
		t.Fatal(err)
	}
	var titles []string
	for _, p := range rep.Figures[0].Figure.(*plots.Chart).Panels {
		titles = append(titles, strings.TrimPrefix(p.Title, "minibatch "))
	}
	if !slices.Equal(titles, []string{"32", "64", "128", "256"}) {
		t.Errorf("panels are %q", titles)
	}
}

// TestNoEmptyPanel: a table of networks of which none was measured has a note, not an empty panel.
func TestNoEmptyPanel(t *testing.T) {
	rep := reportWithout(t, "diamos-speech", func(r record.Record) bool { return r.Point.Hidden == 1152 })
	ch := rep.Figures[0].Figure.(*plots.Chart)
	if len(ch.Panels) != 1 || !slices.Contains(ch.Notes, "No network of Table 3 was measured.") {
		t.Errorf("%d panels, notes %q", len(ch.Panels), ch.Notes)
	}
}
