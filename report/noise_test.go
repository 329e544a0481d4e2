package report

import (
	"bytes"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// TestNoise: a page of records whose intervals overlap claims no speed-up, and its summary ends with
// advice.
func TestNoise(t *testing.T) {
	recs := grid(1, 2, 2, 1)
	write := func() string {
		var page bytes.Buffer
		if err := Write(&page, []record.Set{set("run", recs)}, recs, Options{}); err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(page.String(), "<nav")
		return head
	}
	if head := write(); !strings.Contains(head, "as fast as naive") || strings.Contains(head, "noisy") {
		t.Errorf("clear records: %s", head)
	}
	for i := range recs {
		if s := recs[i].Stats; s != nil {
			lo, hi := 0.1*s.Median, 10*s.Median
			s.Lo, s.Hi = &lo, &hi
			recs[i].Warnings = []string{record.WarnNoisy}
		}
	}
	head := write()
	if strings.Contains(head, "as fast as") || !strings.Contains(head, "The fastest is not clearly faster than naive at any of 4 points.") {
		t.Errorf("a speed-up of noisy records: %s", head)
	}
	if !strings.HasSuffix(strings.TrimSpace(head), "<p>0 of 4 winners are clear; 11 of 11 records are noisy: run rnnbench doctor.</p>") {
		t.Errorf("the last line of the summary: %s", head)
	}
}

// TestReproductionsNoise: the page and the table of experiments say how many records are noisy.
func TestReproductionsNoise(t *testing.T) {
	recs := grid(1, 2, 2, 1)
	e, err := experiments.Lookup("appleyard-table1")
	if err != nil {
		t.Fatal(err)
	}
	list := []Reproduction{{Experiment: e, Report: &study.Report{}, Set: set("run", recs)}}
	write := func() string {
		var page bytes.Buffer
		if err := WriteReproductions(&page, "all", list); err != nil {
			t.Fatal(err)
		}
		return page.String()
	}
	if strings.Contains(write(), "noisy") {
		t.Error("records without a warning are called noisy")
	}
	recs[0].Warnings = []string{record.WarnNoisy}
	page := write()
	for _, want := range []string{"1 of 11 records noisy; 4 of 4 winners clear", "noisy records: appleyard-table1 1 of 11"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
