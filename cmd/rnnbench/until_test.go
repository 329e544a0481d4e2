package main

import (
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// TestUntilClear: a run that is resumed with --until clear measures the points again whose winner is
// open, and only those.
func TestUntilClear(t *testing.T) {
	t.Chdir(t.TempDir())
	// One sample each: no winner is clear.
	rnnbench(t, "sweep -H 8 -B 2 -T 3 --impl naive,cudnnstyle --rounds 1 --max-rounds 1 --warmup 0s --min-time 1us").want(t, exit.Done, nil, nil)
	m, recs, _, err := record.Read("out")
	if err != nil || len(recs) != 2 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	rnnbench(t, "sweep --resume out").want(t, exit.Done, nil, nil)
	if _, same, _, err := record.Read("out"); err != nil || same[0].Seq != recs[0].Seq {
		t.Errorf("without --until clear, measured again: %v", err)
	}
	rnnbench(t, "sweep --resume out --until clear --rounds 8 --max-rounds 8").want(t, exit.Done, nil, nil)
	now, after, _, err := record.Read("out")
	if err != nil || now.Run != m.Run {
		t.Fatalf("run %s, was %s: %v", now.Run, m.Run, err)
	}
	newest := map[string]*record.Record{}
	for i := range after {
		newest[after[i].Key()] = &after[i]
	}
	for i := range recs {
		r := newest[recs[i].Key()]
		if r.Seq <= recs[i].Seq || r.Stats.N != 8 {
			t.Errorf("%s was not measured again: record %d, was %d", r.Label(), r.Seq, recs[i].Seq)
		}
	}
}
