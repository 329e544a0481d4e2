package tuner_test

import (
	"context"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/tuner"
)

// A besideHost is a GPU with much memory, beside so many bytes of the host's.
type besideHost struct {
	*cpu.Device
	host int64
}

func (d besideHost) Info() device.Info {
	i := d.Device.Info()
	i.Name, i.Memory, i.Host = "cuda:0", 1<<40, d.host
	return i
}

// TestHostMemory: a point for a GPU is declined if the host has too little memory for its schedule,
// before it is laid out, or for its inputs and the check. If the host's memory is unknown, or there
// is enough, it is not.
func TestHostMemory(t *testing.T) {
	for _, c := range []struct {
		name         string
		steps, batch int
		host         int64
		declined     bool
	}{
		{"a long schedule", 20000, 1, 40 << 20, true},
		{"a short schedule with large inputs", 10, 40000, 2 << 20, true},
		{"enough", 10, 1, 1 << 30, false},
		{"unknown", 10, 1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := small()
			p.Hidden, p.Input, p.Layers, p.Batch, p.Steps = 1, 1, 1, c.batch, c.steps
			most := 0
			s := &tuner.Sweep{Device: besideHost{open(t), c.host}, Settings: quick()}
			for _, tech := range impl.All() {
				s.Techniques = append(s.Techniques, counting{tech, &most})
			}
			recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "naive"))
			if err != nil {
				t.Fatal(err)
			}
			r := recs[0]
			if !c.declined {
				if r.Status != record.OK {
					t.Errorf("%s, %v", r.Status, r.Reason)
				}
				return
			}
			if r.Status != record.Skipped || *r.ReasonCode != record.ReasonMemory || !strings.Contains(*r.Reason, "of the host's memory, but only") {
				t.Errorf("%s, %v", r.Status, *r.Reason)
			}
			if c.steps > 10000 && most == c.steps {
				t.Errorf("all %d steps were laid out", most)
			}
		})
	}
}
