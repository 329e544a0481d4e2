package main

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/bench"
)

// TestUnsureLimits: a run whose limits were disturbed says so, its manifest names them, and no record
// has a percentage of them.
func TestUnsureLimits(t *testing.T) {
	t.Chdir(t.TempDir())
	usual := bench.LimitsOf
	t.Cleanup(func() { bench.LimitsOf = usual })
	bench.LimitsOf = func(device.Meter, device.Info) (device.Limits, error) {
		return device.Limits{FLOPS: 5e9, Copy: 0.19e9, Unsure: []string{device.LimitFLOPS, device.LimitCopy}}, nil
	}
	o := rnnbench(t, tiny+" --threads 1 --out run")
	o.want(t, exit.Done, nil, []string{"disturbed the measurement of the machine's limits (peak, copy)"})
	m, recs, _, err := record.Read("run")
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Devices[0]; d.Peak == nil || *d.Peak != 5e9 || !slices.Equal(d.Unsure, []string{"peak", "copy"}) || d.PeakRate() != 0 || d.CopyRate() != 0 {
		t.Errorf("the manifest has %+v", d)
	}
	for _, r := range recs {
		if r.PeakFLOPS() != 0 || r.Rate != nil && r.Rate.Percent != nil {
			t.Errorf("a record has the peak %g", r.PeakFLOPS())
		}
	}
	if o := rnnbench(t, "plot --kind roofline -f x.svg run"); o.code == exit.Done || !strings.Contains(o.errors, "needs the machine's peak") {
		t.Errorf("a roofline of unsure limits: %d, %s", o.code, o.errors)
	}
}

// TestImpossibleTimes: records of times that cannot be true are kept, shown and counted as failures.
func TestImpossibleTimes(t *testing.T) {
	t.Chdir(t.TempDir())
	usual := bench.LimitsOf
	t.Cleanup(func() { bench.LimitsOf = usual })
	bench.LimitsOf = func(device.Meter, device.Info) (device.Limits, error) { return device.Limits{FLOPS: 1e3}, nil }
	rnnbench(t, tiny+" --threads 1 --out run").want(t, exit.Error, nil, []string{"no point succeeded: 4 impossible", "4 records in run"})
	_, recs, warnings, err := record.Read("run")
	if err != nil || len(recs) != 4 || warnings != nil {
		t.Fatalf("%d records, %v, %v", len(recs), warnings, err)
	}
	for _, r := range recs {
		if r.Status != record.Impossible || *r.ReasonCode != record.ReasonPeak {
			t.Errorf("%s is %s: %s", r.Impl.Label, r.Status, *r.ReasonCode)
		}
	}
	rnnbench(t, "show run -o csv").want(t, exit.Done, []string{"impossible"}, nil)
}
