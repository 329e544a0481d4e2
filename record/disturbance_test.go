package record

import (
	"slices"
	"testing"
)

// TestDisturbance: what is worth a word is neither lost nor said of a quiet machine.
func TestDisturbance(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	n := func(x int64) *int64 { return &x }
	for _, c := range []struct {
		name  string
		d     *Disturbance
		onGPU bool
		want  []string
	}{
		{"nothing is known", nil, false, nil},
		{"nor with a reading", &Disturbance{Seconds: 1, Processors: 2}, false, nil},
		{"quiet", &Disturbance{Seconds: 1, Processors: 2, Own: v(2), Others: v(0.05), Stolen: v(0.01), Heat: n(0)}, false, nil},
		{"others on processors that it needs", &Disturbance{Seconds: 1, Processors: 2, Own: v(1.1), Others: v(0.9)}, false, []string{WarnDisturbed}},
		{"others beside it", &Disturbance{Seconds: 1, Processors: 2, Own: v(1), Others: v(0.4)}, false, []string{WarnDisturbed}},
		{"one program on a large machine", &Disturbance{Seconds: 2, Processors: 64, Own: v(8), Others: v(1)}, false, nil},
		{"the same, and the machine is full", &Disturbance{Seconds: 20, Processors: 64, Own: v(63), Others: v(1)}, false, []string{WarnDisturbed}},
		{"others beside a GPU", &Disturbance{Seconds: 1, Processors: 16, Own: v(1), Others: v(4)}, true, nil},
		{"a full host of a GPU", &Disturbance{Seconds: 1, Processors: 16, Own: v(1), Others: v(15)}, true, []string{WarnDisturbed}},
		{"less than the counters resolve", &Disturbance{Seconds: 0.1, Processors: 2, Own: v(1.6), Others: v(0.4)}, false, nil},
		{"a hypervisor", &Disturbance{Seconds: 1, Processors: 2, Stolen: v(0.3)}, false, []string{WarnDisturbed}},
		{"a quota", &Disturbance{Seconds: 1, Processors: 2, Quota: v(0.5), Stopped: v(0.31)}, false, []string{WarnQuota}},
		{"a quota that never acts", &Disturbance{Seconds: 1, Processors: 2, Quota: v(1), Stopped: v(0)}, false, nil},
		{"heat", &Disturbance{Seconds: 1, Processors: 2, Heat: n(3)}, false, []string{WarnThrottled}},
		{"heat of the host of a GPU", &Disturbance{Seconds: 1, Processors: 2, Heat: n(3)}, true, nil},
		{"no time", &Disturbance{Processors: 2, Others: v(2), Own: v(0)}, false, nil},
	} {
		r := Record{Device: "cpu-x", Warnings: []string{WarnNoisy}}
		if c.onGPU {
			r.Device = "cuda-x"
		}
		r.Disturb(c.d)
		r.Disturb(c.d) // says nothing twice
		if got := r.Warnings[1:]; !slices.Equal(got, c.want) || r.Disturbance != c.d {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
