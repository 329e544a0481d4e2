package bench

import (
	"os"
	"testing"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/record"
)

// benches makes a folder for what is measured of machines, and returns a function for benches of two threads.
func benches(t *testing.T) func(l device.Limits, env record.Environment) *Bench {
	t.Helper()
	dir, was := t.TempDir(), MachinesFolder
	MachinesFolder = func() string { return dir }
	t.Cleanup(func() { MachinesFolder = was })
	return func(l device.Limits, env record.Environment) *Bench {
		return &Bench{Hardware: Hardware{Info: device.Info{Name: "cpu", Key: "cpu-x-2t", Libraries: map[string]string{"simd": "avx2"}}, place: placeOf(env), Limits: l}}
	}
}

// TestLimitsAreRecalled: a disturbed measurement takes the best rates that were measured before, and
// leaves them as they are. Rates that are unsure are not kept.
func TestLimitsAreRecalled(t *testing.T) {
	make, env := benches(t), record.Environment{}
	rate := func(v float64) []device.Rate { return []device.Rate{{Name: "bf16 products", Value: v, Unit: "FLOP/s"}} }
	b := make(device.Limits{FLOPS: 460e9, Copy: 2e9, More: rate(900e9), Unsure: []string{device.LimitCopy}}, env)
	b.recallLimits()
	if b.Limits.Copy != 2e9 || b.slowed != "" {
		t.Errorf("the first measurement became %+v, %q", b.Limits, b.slowed)
	}
	b = make(device.Limits{FLOPS: 450e9, Copy: 50e9, More: rate(890e9)}, env)
	b.recallLimits()
	if b.Limits.FLOPS != 460e9 || b.Limits.Copy != 50e9 || b.Limits.More[0].Value != 900e9 || b.slowed != "" {
		t.Errorf("the second measurement became %+v, %q", b.Limits, b.slowed)
	}
	b = make(device.Limits{FLOPS: 200e9, Copy: 0.19e9, More: rate(950e9), Unsure: []string{device.LimitFLOPS, device.LimitCopy}}, env)
	b.recallLimits()
	if b.Limits.FLOPS != 460e9 || b.Limits.Copy != 50e9 || b.Limits.More[0].Value != 950e9 || len(b.Limits.Unsure) != 0 {
		t.Errorf("a disturbed measurement became %+v", b.Limits)
	}
	if want := "peak 200 GFLOP/s, 460 GFLOP/s before; copy 190 MB/s, 50.0 GB/s before"; b.slowed != want || b.Record().Facts[slowedFact] != want {
		t.Errorf("%q is slower, want %q", b.slowed, want)
	}
}

// TestLimitsOfAnotherPlace: threads, instruction set, affinity, quota and processor each have limits
// of their own.
func TestLimitsOfAnotherPlace(t *testing.T) {
	make, half := benches(t), 0.5
	env := record.Environment{CPU: record.CPU{Model: "x", Affinity: "0-1"}}
	make(device.Limits{FLOPS: 460e9}, env).recallLimits()
	b := make(device.Limits{FLOPS: 1e9}, env)
	quota, pinned, model := env, env, env
	quota.CPU.Quota, pinned.CPU.Affinity, model.CPU.Model = &half, "0", "y"
	threads, level := *b, *b
	threads.Info.Key = "cpu-x-16t"
	level.Info.Libraries = map[string]string{"simd": "generic"}
	for name, other := range map[string]*Bench{
		"quota": make(b.Limits, quota), "affinity": make(b.Limits, pinned), "model": make(b.Limits, model), "threads": &threads, "level": &level,
	} {
		if other.recallLimits(); other.Limits.FLOPS != 1e9 {
			t.Errorf("another %s has the peak %g of the first", name, other.Limits.FLOPS)
		}
	}
	if b.recallLimits(); b.Limits.FLOPS != 460e9 {
		t.Errorf("the same place has the peak %g", b.Limits.FLOPS)
	}
	path := b.savedPath(".limits.json")
	if err := os.WriteFile(path, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	b = make(device.Limits{FLOPS: 1e9}, env)
	if b.recallLimits(); b.Limits.FLOPS != 1e9 {
		t.Errorf("a broken file gave the peak %g", b.Limits.FLOPS)
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
		if b.Machine, err = model.Load("xeon"); err != nil {
			t.Fatal(err)
		}
		b.Machine.Unsure = c.unsure
		b.SaveMachine()
		if warns := b.Disturbed(); (len(warns) == 1) != (c.unsure != nil) {
			t.Errorf("unsure %v: %v", c.unsure, warns)
		}
		later := make(device.Limits{}, record.Environment{})
		if got := later.FloorMachine() != nil; got != c.floor {
			t.Errorf("after one that is unsure in %v, there are floors: %v", c.unsure, got)
		}
	}
}
