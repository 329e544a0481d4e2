package tuner

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// TestSummarizeProfile: times are means over the faster half of the runs.
func TestSummarizeProfile(t *testing.T) {
	run := func(ms ...time.Duration) device.ProfileRun {
		r := device.ProfileRun{Wall: ms[0] * time.Millisecond}
		for _, v := range ms[1:] {
			r.Taken, r.Busy = append(r.Taken, v*time.Millisecond), append(r.Busy, 2*v*time.Millisecond)
		}
		return r
	}
	p := summarizeProfile(device.Profile{
		Workers: 4, Teams: 2, Groups: []device.ProfileGroup{{Name: "a", Count: 1}, {Name: "b", Count: 2}},
		Runs: []device.ProfileRun{run(500, 100, 1), run(10, 4, 6), run(14, 6, 8), run(90, 80, 9)},
	}, 0.010)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	near("a run", p.Run, 0.012)
	near("a run without", p.Plain, 0.010)
	near("a", p.Groups[0].Taken, 0.005)
	near("b", p.Groups[1].Taken, 0.007)
	near("all operations", p.Operations(), 0.012)
	near("outside", p.Outside(), 0.006)       // of each of two teams
	near("idle", p.Idle(), 1-0.024/(0.012*4)) // of four workers
	if p.Runs != 4 {
		t.Errorf("%d runs", p.Runs)
	}
}

// TestNewProfile: a layout is profiled on a CPU. A device that cannot measure operations says so.
func TestNewProfile(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l, err := LayOut(d, impl.All(), record.Point{Cell: "gru", Pass: "train", Hidden: 16, Input: 16, Batch: 2, Steps: 3, Layers: 1, Precision: "fp32"}, grid.Spec{Name: "cudnnstyle", Label: "cudnnstyle"})
	if err != nil || l.Reason != "" {
		t.Fatal(err, l.Reason)
	}
	p, err := NewProfile(context.Background(), d, l, config.Default())
	if err != nil {
		t.Fatal(err)
	}
	if p.Runs < profileLeast || p.Workers != 1 || len(p.Groups) < 3 || !(p.Plain > 0) || p.Operations() > p.Run {
		t.Errorf("%+v", p)
	}
	if _, err := NewProfile(context.Background(), untimed{d}, l, config.Default()); !errors.Is(err, ErrNoProfile) {
		t.Errorf("without the times of operations: %v", err)
	}
	over, cancel := context.WithCancel(context.Background())
	if cancel(); second(NewProfile(over, d, l, config.Default())) == nil {
		t.Error("it does not end with its context")
	}
}

func second(_ *Profile, err error) error { return err }

// untimed is a device whose programs cannot measure operations.
type untimed struct{ device.Device }

func (u untimed) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := u.Device.Compile(s, k)
	return struct{ device.Program }{p}, err
}
