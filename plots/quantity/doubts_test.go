package quantity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/results"
)

// TestDoubts: unchecked and partly checked techniques are named once, and a long list is cut.
func TestDoubts(t *testing.T) {
	record := func(label string, status results.Status, warnings ...string) *results.Record {
		return &results.Record{Impl: results.Impl{Name: label, Label: label}, Status: status, Warnings: warnings}
	}
	if got := Doubts([]*results.Record{record("naive", results.OK, results.WarnNoisy)}); got != nil {
		t.Errorf("what was checked is in doubt: %q", got)
	}
	recs := []*results.Record{
		record("scc", results.OK, results.WarnPart), record("naive", results.OK, results.WarnNoisy, results.WarnUnverified), record("naive", results.OK, results.WarnUnverified),
		record("scan", results.Failed, results.WarnUnverified),
	}
	want := []string{"Unverified (answers may be wrong): naive.", "Partly checked (not at every step of the timed run): scc."}
	if got := Doubts(recs); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	recs = []*results.Record{record("scc", results.OK, results.WarnPart), record("scc, graph", results.OK, results.WarnPart)}
	if got := Doubts(recs); len(got) != 1 || !strings.HasSuffix(got[0], ": scc; scc, graph.") {
		t.Errorf("labels run together: %q", got)
	}
	recs = nil
	for i := range 12 {
		recs = append(recs, record(fmt.Sprintf("scan:scanchunk=%d", i), results.OK, results.WarnPart))
	}
	if got := Doubts(recs); len(got) != 1 || !strings.HasSuffix(got[0], "4 more.") {
		t.Errorf("%q", got)
	}
}
