package tuner_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

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
