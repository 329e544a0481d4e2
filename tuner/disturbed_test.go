package tuner_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/record/around"
	"rnnbench/tuner"
)

// A held machine has a quota that stopped the program for another millisecond whenever it is asked.
type held struct {
	files fstest.MapFS
	asked int
}

func (h *held) Open(name string) (fs.File, error) {
	if name == "sys/fs/cgroup/cpu.stat" {
		h.asked++
		return fstest.MapFS{name: {Data: fmt.Appendf(nil, "throttled_usec %d\n", 1000*h.asked)}}.Open(name)
	}
	return h.files.Open(name)
}

func onHeld() *around.Reader {
	return around.NewReader(&held{files: fstest.MapFS{
		"proc/self/stat":        {Data: []byte("10 (rnnbench) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0")},
		"sys/fs/cgroup/cpu.max": {Data: []byte("50000 100000\n")},
	}}, record.CPU{Affinity: "0-1"})
}

// TestDisturbed: records of sweeps and of tunes say what disturbed them, and only those with a time do.
func TestDisturbed(t *testing.T) {
	s := &tuner.Sweep{Device: open(t), Settings: quick(), Around: onHeld()}
	recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive", "scan"))
	if err != nil {
		t.Fatal(err)
	}
	u, kept := tune(t, open(t))
	u.Around = onHeld()
	if _, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle"), record.Impl{}); err != nil {
		t.Fatal(err)
	}
	for _, r := range kept {
		recs = append(recs, *r)
	}
	timed := 0
	for _, r := range recs {
		d := r.Disturbance
		switch {
		case r.Stats == nil && d != nil:
			t.Errorf("%s is %s, and was disturbed: %+v", r.Impl.Label, r.Status, d)
		case r.Stats != nil && (d == nil || d.Stopped == nil || *d.Stopped != 1 || *d.Quota != 0.5 || !slices.Contains(r.Warnings, record.WarnQuota)):
			t.Errorf("%s has %v and %+v", r.Impl.Label, r.Warnings, d)
		}
		if r.Stats != nil {
			timed++
		}
	}
	if timed < 3 {
		t.Errorf("%d records have a time", timed)
	}
}

// launched is a device whose launches take a microsecond longer each time they are asked for.
type launched struct {
	device.Device
	asked *int
}

func (d launched) LaunchTime() (float64, error) {
	*d.asked++
	return float64(*d.asked) * 1e-6, nil
}

// TestLaunchTimes: each group of forms that take turns has the time of a launch just before it, in sweeps and in tunes.
// Where a device has no launches, records have none.
func TestLaunchTimes(t *testing.T) {
	other := small()
	other.Hidden *= 2
	on := launched{open(t), new(int)}
	s := &tuner.Sweep{Device: on, Settings: quick()}
	recs, err := sweep(t, s, t.Context(), []record.Point{small(), other}, specs(t, "naive", "cudnnstyle"))
	if err != nil {
		t.Fatal(err)
	}
	u, kept := tune(t, on)
	u.Device = on
	if _, err := u.Tune(t.Context(), small(), specs(t, "naive", "cudnnstyle"), record.Impl{}); err != nil {
		t.Fatal(err)
	}
	groups := map[float64]int{}
	for _, r := range recs {
		if r.Launch == nil {
			t.Fatalf("%v %s has no launch", r.Point, r.Impl.Label)
		}
		groups[*r.Launch]++
	}
	for _, r := range kept {
		if r.Stats != nil && (r.Launch == nil || *r.Launch != 3e-6) {
			t.Errorf("%s of a tune has launch %v", r.Impl.Label, r.Launch)
		}
	}
	if len(recs) != 4 || groups[1e-6] != 2 || groups[2e-6] != 2 || *on.asked != 3 || len(kept) == 0 {
		t.Errorf("%d records in groups %v, %d of a tune; asked %d times", len(recs), groups, len(kept), *on.asked)
	}
	s = &tuner.Sweep{Device: open(t), Settings: quick()}
	if recs, err = sweep(t, s, t.Context(), []record.Point{small()}, specs(t, "naive")); err != nil || recs[0].Launch != nil {
		t.Errorf("without launches: %+v, %v", recs, err)
	}
}
