package tuner_test

import (
	"context"
	"testing"

	"rnnbench/record"
	"rnnbench/tuner"
)

// TestScansAlone: a scan that is timed without its products is checked like the pass, over several runs
// in sequence, and its copy moves as many bytes. FLOP/s count only products that a run computes.
func TestScansAlone(t *testing.T) {
	d := open(t)
	measure := func(p record.Point, names ...string) []record.Record {
		t.Helper()
		s := &tuner.Sweep{Device: d, Settings: quick()}
		s.Settings.Rounds, s.Settings.MaxRounds = 2, 2
		recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, names...))
		if err != nil || len(recs) != len(names) {
			t.Fatal(len(recs), err)
		}
		return recs
	}
	for name, bytes := range map[string]int64{"sru": 40, "ls-lstm": 64, "rg-lru": 36} { // bytes of the backward scans per unit and step
		p := record.Point{Cell: name, Pass: "train", Hidden: 33, Input: 200, Batch: 3, Steps: 21, Layers: 1, Precision: "fp32"}
		by := map[int]record.Record{}
		for _, r := range measure(p, "scan", "scan:alone=1:inputbatch=0", "scan:alone=2:inputbatch=0", "scan:alone=3:inputbatch=0", "scan:alone=4:inputbatch=0") {
			if by[r.Impl.Knobs["alone"]] = r; r.Status != record.OK || r.Verify == nil || !r.Verify.OK {
				t.Errorf("%s %v: %s", name, r.Impl.Knobs, r.Status)
			}
		}
		if by[1].Work.Flops > by[0].Work.Flops/100 || by[3].Work.Flops != 0 {
			t.Errorf("%s: %d and %d FLOP alone, of %d", name, by[1].Work.Flops, by[3].Work.Flops, by[0].Work.Flops)
		}
		for scan, copied := range map[int]int{1: 3, 2: 4} {
			first := int64(8 * p.Hidden * p.Batch * 3) // states, which a copy may leave out
			const row = 2 * 4 * 64                     // a copy has whole rows
			if d := by[scan].Work.Bytes - by[copied].Work.Bytes; d <= -row || d > first {
				t.Errorf("%s: alone=%d moves %d bytes, its copy %d", name, scan, by[scan].Work.Bytes, by[copied].Work.Bytes)
			}
		}
		values := int64(p.Hidden * p.Batch * p.Steps)
		if got := by[2].Work.Bytes; got < bytes*values || got > bytes*values+int64(4*p.Hidden*(12*p.Batch+8)) {
			t.Errorf("%s: the gradient moves %d bytes, want about %d", name, got, bytes*values)
		}
	}
	// Scans in several blocks, layers or 16 bits cannot be timed alone.
	p := record.Point{Cell: "gilr", Pass: "forward", Hidden: 4, Input: 4, Batch: 1, Steps: 900, Layers: 2, Precision: "fp32"}
	for _, r := range measure(p, "scan:alone=1:inputbatch=0", "scan:alone=2:inputbatch=0") {
		if r.Status != record.Skipped {
			t.Errorf("%v: %s", r.Impl.Knobs, r.Status)
		}
	}
}
