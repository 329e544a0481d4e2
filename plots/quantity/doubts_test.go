package quantity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/record"
)

// TestDoubts: unchecked and partly checked techniques are named once, and a long list is cut.
func TestDoubts(t *testing.T) {
	newRecord := func(label string, status record.Status, warnings ...string) *record.Record {
		return &record.Record{Impl: record.Impl{Name: label, Label: label}, Status: status, Warnings: warnings}
	}
	if got := Doubts([]*record.Record{newRecord("naive", record.OK, record.WarnNoisy)}); got != nil {
		t.Errorf("what was checked is in doubt: %q", got)
	}
	recs := []*record.Record{
		newRecord("scc", record.OK, record.WarnPart), newRecord("naive", record.OK, record.WarnNoisy, record.WarnUnverified), newRecord("naive", record.OK, record.WarnUnverified),
		newRecord("scan", record.Failed, record.WarnUnverified),
	}
	want := []string{"Unverified (answers may be wrong): naive.", "Partly checked (not at every step of the timed run): scc."}
	if got := Doubts(recs); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	recs = []*record.Record{newRecord("scc", record.OK, record.WarnPart), newRecord("scc, graph", record.OK, record.WarnPart)}
	if got := Doubts(recs); len(got) != 1 || !strings.HasSuffix(got[0], ": scc; scc, graph.") {
		t.Errorf("labels run together: %q", got)
	}
	recs = nil
	for i := range 12 {
		recs = append(recs, newRecord(fmt.Sprintf("scan:scanchunk=%d", i), record.OK, record.WarnPart))
	}
	if got := Doubts(recs); len(got) != 1 || !strings.HasSuffix(got[0], "4 more.") {
		t.Errorf("%q", got)
	}
}
