package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/record"
)

// benches makes a folder for what is measured of machines, and returns a function for benches of two threads.
func benches(t *testing.T) func(l device.Limits, env record.Environment) *bench {
	t.Helper()
	dir, was := t.TempDir(), machinesFolder
	machinesFolder = func() string { return dir }
	t.Cleanup(func() { machinesFolder = was })
	return func(l device.Limits, env record.Environment) *bench {
		return &bench{info: device.Info{Name: "cpu", Key: "cpu-x-2t", Libraries: map[string]string{"simd": "avx2"}}, place: placeOf(env), limits: l}
	}
}

// TestLimitsAreRecalled: a disturbed measurement takes the best rates that were measured before, and
// leaves them as they are. Rates that are unsure are not kept.
func TestLimitsAreRecalled(t *testing.T) {
	make, env := benches(t), record.Environment{}
	rate := func(v float64) []device.Rate { return []device.Rate{{Name: "bf16 products", Value: v, Unit: "FLOP/s"}} }
	b := make(device.Limits{FLOPS: 460e9, Copy: 2e9, More: rate(900e9), Unsure: []string{device.LimitCopy}}, env)
	recallLimits(b)
	if b.limits.Copy != 2e9 || b.slowed != "" {
		t.Errorf("the first measurement became %+v, %q", b.limits, b.slowed)
	}
	b = make(device.Limits{FLOPS: 450e9, Copy: 50e9, More: rate(890e9)}, env)
	recallLimits(b)
	if b.limits.FLOPS != 460e9 || b.limits.Copy != 50e9 || b.limits.More[0].Value != 900e9 || b.slowed != "" {
		t.Errorf("the second measurement became %+v, %q", b.limits, b.slowed)
	}
	b = make(device.Limits{FLOPS: 200e9, Copy: 0.19e9, More: rate(950e9), Unsure: []string{device.LimitFLOPS, device.LimitCopy}}, env)
	recallLimits(b)
	if b.limits.FLOPS != 460e9 || b.limits.Copy != 50e9 || b.limits.More[0].Value != 950e9 || len(b.limits.Unsure) != 0 {
		t.Errorf("a disturbed measurement became %+v", b.limits)
	}
	if want := "peak 200 GFLOP/s, 460 GFLOP/s before; copy 190 MB/s, 50.0 GB/s before"; b.slowed != want || b.record().Facts[slowedFact] != want {
		t.Errorf("%q is slower, want %q", b.slowed, want)
	}
}

// TestLimitsOfAnotherPlace: threads, instruction set, affinity, quota and processor each have limits
// of their own.
func TestLimitsOfAnotherPlace(t *testing.T) {
	make, half := benches(t), 0.5
	env := record.Environment{CPU: record.CPU{Model: "x", Affinity: "0-1"}}
	recallLimits(make(device.Limits{FLOPS: 460e9}, env))
	b := make(device.Limits{FLOPS: 1e9}, env)
	quota, pinned, model := env, env, env
	quota.CPU.Quota, pinned.CPU.Affinity, model.CPU.Model = &half, "0", "y"
	threads, level := *b, *b
	threads.info.Key = "cpu-x-16t"
	level.info.Libraries = map[string]string{"simd": "generic"}
	for name, other := range map[string]*bench{
		"quota": make(b.limits, quota), "affinity": make(b.limits, pinned), "model": make(b.limits, model), "threads": &threads, "level": &level,
	} {
		if recallLimits(other); other.limits.FLOPS != 1e9 {
			t.Errorf("another %s has the peak %g of the first", name, other.limits.FLOPS)
		}
	}
	if recallLimits(b); b.limits.FLOPS != 460e9 {
		t.Errorf("the same place has the peak %g", b.limits.FLOPS)
	}
	path := b.savedPath(".limits.json")
	if err := os.WriteFile(path, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	b = make(device.Limits{FLOPS: 1e9}, env)
	if recallLimits(b); b.limits.FLOPS != 1e9 {
		t.Errorf("a broken file gave the peak %g", b.limits.FLOPS)
	}
}

// TestNoFloorOfAnUnsureMachine: floors never rest on rates that were disturbed, and a disturbed
// measurement never replaces another.
func TestNoFloorOfAnUnsureMachine(t *testing.T) {
	make := benches(t)
	for _, c := range []struct {
		unsure []string
		floor  bool
	}{{[]string{"L1"}, false}, {nil, true}, {[]string{"L1"}, true}} {
		b := make(device.Limits{}, record.Environment{})
		var err error
		if b.machine, err = model.Load("xeon"); err != nil {
			t.Fatal(err)
		}
		b.machine.Unsure = c.unsure
		b.saveMachine()
		if warns := disturbed(b); (len(warns) == 1) != (c.unsure != nil) {
			t.Errorf("unsure %v: %v", c.unsure, warns)
		}
		later := make(device.Limits{}, record.Environment{})
		if got := later.floorMachine() != nil; got != c.floor {
			t.Errorf("after one that is unsure in %v, there are floors: %v", c.unsure, got)
		}
	}
}

// TestUnsureLimits: a run whose limits were disturbed says so, its manifest names them, and no record
// has a percentage of them.
func TestUnsureLimits(t *testing.T) {
	t.Chdir(t.TempDir())
	usual := limitsOf
	t.Cleanup(func() { limitsOf = usual })
	limitsOf = func(device.Meter, device.Info) (device.Limits, error) {
		return device.Limits{FLOPS: 5e9, Copy: 0.19e9, Unsure: []string{device.LimitFLOPS, device.LimitCopy}}, nil
	}
	o := rnnbench(t, tiny+" --threads 1 --out run")
	o.want(t, exitDone, nil, []string{"disturbed the measurement of the machine's limits (peak, copy)"})
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
	if o := rnnbench(t, "plot --kind roofline -f x.svg run"); o.code == exitDone || !strings.Contains(o.errors, "needs the machine's peak") {
		t.Errorf("a roofline of unsure limits: %d, %s", o.code, o.errors)
	}
}
