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

// finding returns the report's finding that begins with head.
func finding(t *testing.T, rep *study.Report, head string) string {
	t.Helper()
	i := slices.IndexFunc(rep.Findings, func(f string) bool { return strings.HasPrefix(f, head) })
	if i < 0 {
		t.Fatalf("no finding begins with %q: %q", head, rep.Findings)
	}
	return rep.Findings[i]
}

// TestReportsNameWrongAnswers: a report says which answers were wrong, and the figure has a cross
// where they would be.
func TestReportsNameWrongAnswers(t *testing.T) {
	e, err := experiments.Lookup("diamos-speech")
	if err != nil {
		t.Fatal(err)
	}
	recs := recordsOf(e.Parts(study.Full, gpu))
	wrong := 0
	for i := range recs {
		if r := &recs[i]; r.Impl.Name == "persistent" && r.Point.Layers >= 72 && r.Point.Hidden < 1152 {
			r.Status, r.Stats = record.Incorrect, nil
			r.Verify = &record.Verify{Tensor: "dx", Error: 0.056, Tolerance: 0.00059}
			wrong++
		}
	}
	if wrong != 2 {
		t.Fatalf("%d wrong answers", wrong)
	}
	rep, err := e.On(record.Device{Key: "cuda-test", Name: "H100"}, recs)
	if err != nil {
		t.Fatal(err)
	}
	found := finding(t, rep, "Wrong answers")
	for _, want := range []string{"persistent, graph at rnn-crelu", "train H=544 B=4 T=350 L=72", "H=480", "dx", "0.056", "0.00059"} {
		if !strings.Contains(found, want) {
			t.Errorf("%q lacks %q", found, want)
		}
	}
	ch := rep.Figures[0].Figure.(*plots.Chart)
	crosses := 0
	for _, s := range ch.Panels[0].Series {
		for _, pt := range s.Points {
			if pt.Missing {
				crosses++
			}
		}
	}
	if crosses != 2 || !slices.Contains(ch.Notes, "No result: 2 wrong answers.") {
		t.Errorf("%d crosses, notes %q", crosses, ch.Notes)
	}
}

// TestReportsLimitWrongAnswers: of many wrong answers, some are named and the others are counted.
func TestReportsLimitWrongAnswers(t *testing.T) {
	e, err := experiments.Lookup("diamos-fig3")
	if err != nil {
		t.Fatal(err)
	}
	recs := recordsOf(e.Parts(study.Full, gpu))
	for i := range recs[:40] {
		recs[i].Status, recs[i].Stats = record.Incorrect, nil
	}
	rep, err := e.On(record.Device{Key: "cuda-test", Name: "H100"}, recs)
	if err != nil {
		t.Fatal(err)
	}
	if f := finding(t, rep, "Wrong answers"); !strings.Contains(f, "and 34 more") {
		t.Errorf("%q", f)
	}
}

// TestReportsNameFailures: a report names the records that failed or took too long, each with its reason.
func TestReportsNameFailures(t *testing.T) {
	e, err := experiments.Lookup("diamos-fig3")
	if err != nil {
		t.Fatal(err)
	}
	recs := recordsOf(e.Parts(study.Full, gpu))
	for i, status := range []record.Status{record.Failed, record.Timeout, record.Skipped} {
		reason := fmt.Sprint("reason ", i)
		recs[i].Status, recs[i].Stats, recs[i].Reason = status, nil, &reason
	}
	rep, err := e.On(record.Device{Key: "cuda-test", Name: "H100"}, recs)
	if err != nil {
		t.Fatal(err)
	}
	if f := finding(t, rep, "Failed or took too long"); !strings.Contains(f, recs[0].Impl.Label+" at ") || !strings.Contains(f, "(reason 0)") || !strings.Contains(f, "(reason 1)") || strings.Contains(f, "reason 2") {
		t.Errorf("%q", f)
	}
}

// TestReportsGroupFailures: records that failed for the same cause share one quotation of it, which is short and
// without what the program printed besides.
func TestReportsGroupFailures(t *testing.T) {
	e, err := experiments.Lookup("diamos-fig3")
	if err != nil {
		t.Fatal(err)
	}
	recs := recordsOf(e.Parts(study.Full, gpu))
	long := "lib failed during prepare: CompilationError: " + strings.Repeat("line = load(pointer) ", 30)
	for i, reason := range []string{long, long + "; it printed: ninja: no work to do.", "out of memory", long} {
		recs[i].Status, recs[i].Stats, recs[i].Reason = record.Failed, nil, &reason
	}
	rep, err := e.On(record.Device{Key: "cuda-test", Name: "H100"}, recs)
	if err != nil {
		t.Fatal(err)
	}
	f := finding(t, rep, "Failed or took too long")
	if strings.Count(f, "CompilationError") != 1 || strings.Count(f, " at ") != 4 || strings.Contains(f, "ninja") || len(f) > 700 || !strings.Contains(f, "(out of memory)") {
		t.Errorf("%d characters: %q", len(f), f)
	}
}
