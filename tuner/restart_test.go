package tuner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// A tardy is a device whose blocks give up waiting in so many runs, after so many that end well. Then all
// matrices have lost their values.
type tardy struct {
	device.Device
	well, stuck int
}

func (d *tardy) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return &tardyProgram{p, d, s}, err
}

type tardyProgram struct {
	device.Program
	device   *tardy
	schedule *schedule.Schedule
}

func (p *tardyProgram) Run(n int) (device.Sample, error) {
	d := p.device
	if d.well--; d.well >= 0 || d.stuck == 0 {
		return p.Program.Run(n)
	}
	d.stuck--
	for _, m := range p.schedule.Matrices {
		if !m.Private() {
			if err := p.Write(m, make([]float32, m.Elements())); err != nil {
				return device.Sample{}, err
			}
		}
	}
	return device.Sample{}, fmt.Errorf("test: %w", device.ErrStuck)
}

// TestRestarts: runs whose blocks gave up waiting are started again with weights and inputs written anew, up to three
// times for a technique at a point. The record says so, and has no sample of them.
func TestRestarts(t *testing.T) {
	for _, well := range []int{0, 6} { // before the first check, and while samples are taken
		for _, stuck := range []int{1, 3, 4} {
			d, err := cpu.Open(cpu.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			s := &tuner.Sweep{Device: &tardy{d, well, stuck}, Settings: quick()}
			recs, err := sweep(t, s, context.Background(), []record.Point{small()}, specs(t, "naive"))
			if err != nil || len(recs) != 1 {
				t.Fatalf("%d records, %v", len(recs), err)
			}
			r := recs[0]
			if !slices.Contains(r.Warnings, record.WarnRestarted) {
				t.Errorf("stuck %d times after %d runs: warnings are %v", stuck, well, r.Warnings)
			}
			switch {
			case stuck <= 3 && (r.Status != record.OK || !r.Verify.OK || r.Stats.N != 6):
				t.Errorf("stuck %d times after %d runs: %s, %+v", stuck, well, r.Status, r.Reason)
			case stuck > 3 && (r.Status != record.Failed || !strings.Contains(*r.Reason, "though they were started again 3 times")):
				t.Errorf("stuck %d times after %d runs: %s, %+v", stuck, well, r.Status, r.Reason)
			}
		}
	}
}
