package tuner

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl/naive"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A meter adds up watts over a clock of its own, and shows joules tick by tick.
type meter struct {
	at    time.Duration // on its clock
	watts float64
	tick  time.Duration // 0: it never ticks
	err   error
}

func (m *meter) Power() (device.Power, error) {
	p := device.Power{Source: "test", Watts: 130, Clock: 1e9, Temperature: 40}
	if m.tick > 0 {
		p.Joules = m.watts * m.at.Truncate(m.tick).Seconds()
	}
	return p, m.err
}

func (m *meter) windows() windows {
	return windows{
		Count: 3, More: 9, Length: 3 * time.Second, Settle: 300 * time.Millisecond, Chunk: 25 * time.Millisecond, Rest: 3 * time.Second,
		now: func() time.Time { return time.Unix(0, int64(m.at)) },
	}
}

// TestWindow: the energy of a run is right within a chunk's length, whenever the counter ticks.
func TestWindow(t *testing.T) {
	for _, tick := range []time.Duration{20 * time.Millisecond, 98 * time.Millisecond, 1 * time.Millisecond} {
		for _, chunk := range []time.Duration{time.Millisecond, 25 * time.Millisecond, 4 * time.Second} {
			m := &meter{watts: 100, tick: tick}
			w, err := m.windows().of(t.Context(), m, func() (int, error) { m.at += chunk; return 4, nil })
			if err != nil {
				t.Fatal(err)
			}
			each := 100 * chunk.Seconds() / 4
			if off := math.Abs(w.joules/float64(w.runs)/each - 1); off > (chunk+tick).Seconds()/w.seconds || w.seconds < 3 || w.polled != 130 || w.temperature != 40 {
				t.Errorf("tick %v, runs of %v: %+v, %.1f %% off", tick, chunk, w, 100*off)
			}
		}
	}
}

// TestWindowEnds: a counter that stops or cannot be read ends a window, and so does a failed run.
func TestWindowEnds(t *testing.T) {
	broken := errors.New("broken")
	for want, c := range map[string]struct {
		m     *meter
		run   error
		watts float64
	}{
		"does not tick":    {m: &meter{}},
		"cannot be read":   {m: &meter{tick: 1, err: broken}},
		"broken":           {m: &meter{tick: time.Millisecond, watts: 1}, run: broken},
		"did not increase": {m: &meter{tick: time.Millisecond, watts: -1}},
	} {
		_, err := c.m.windows().of(t.Context(), c.m, func() (int, error) { c.m.at += 10 * time.Millisecond; return 1, c.run })
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, errCounter) == (c.run != nil) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &meter{tick: 1}
	if _, err := m.windows().of(ctx, m, func() (int, error) { return 1, nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// metered is a processor with a meter whose clock advances at each reading.
type metered struct {
	*cpu.Device
	*meter
}

func (d metered) Power() (device.Power, error) {
	d.at += 20 * time.Millisecond
	return d.meter.Power()
}

// TestEnergies: records have the energy counted, or the reason why there is none.
func TestEnergies(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, m := range map[string]*meter{"": {watts: 100, tick: 20 * time.Millisecond}, "broken": {err: errors.New("broken")}, "does not tick": {}} {
		r := withEnergy(t, metered{d, m}, m)
		e := r.Energy
		switch {
		case r.Status != record.OK || e == nil:
			t.Errorf("%q: %+v", name, r)
		case name != "":
			if e.Reason == nil || !strings.Contains(*e.Reason, name) || e.Joules != nil {
				t.Errorf("%q: %+v", name, e)
			}
		default:
			if e.Reason != nil || len(e.Windows) != 3 || math.Abs(*e.Joules/2-1) > 0.05 || math.Abs(*e.Net) > 0.1 || math.Abs(*e.Watts/100-1) > 0.05 ||
				math.Abs(*e.Idle/100-1) > 0.05 || *e.Polled != 130 || *e.Clock != 1e9 || e.Source != "test" || !slices.Contains(r.Warnings, record.WarnEnergy) {
				t.Errorf("%+v: of a run of 20 ms at 100 W, and at rest as well", e)
			}
		}
	}
}

// TestEnergyUnsteady: a technique whose windows differ gets more windows, and one whose windows agree does not.
func TestEnergyUnsteady(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for drift, want := range map[float64]int{0: 3, 1.3: 12} {
		m := &meter{watts: 100, tick: 20 * time.Millisecond}
		r := withEnergy(t, drifting{metered{d, m}, drift}, m)
		if e := r.Energy; e == nil || e.Reason != nil || len(e.Windows) != want {
			t.Errorf("drift %v: %+v, want %d windows", drift, e, want)
		}
	}
}

// drifting takes more power over time, by so many watts a second.
type drifting struct {
	metered
	watts float64
}

func (d drifting) Power() (device.Power, error) {
	d.at += 20 * time.Millisecond
	p, err := d.meter.Power()
	p.Joules += d.watts / 2 * d.at.Truncate(d.tick).Seconds() * d.at.Truncate(d.tick).Seconds()
	return p, err
}

// A faulty device fails every run after the first reading of its meter.
type faulty struct{ metered }

func (d faulty) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.metered.Compile(s, k)
	return faultyProgram{p, d.meter}, err
}

type faultyProgram struct {
	device.Program
	meter *meter
}

func (p faultyProgram) Run(n int) (device.Sample, error) {
	if p.meter.at > 0 {
		return device.Sample{}, device.ErrFault
	}
	return p.Program.Run(n)
}

// TestEnergyFails: a technique that fails while its energy is counted keeps its times.
func TestEnergyFails(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m := &meter{watts: 100, tick: 20 * time.Millisecond}
	r := withEnergy(t, faulty{metered{d, m}}, m)
	if r.Status != record.OK || r.Stats == nil || r.Energy == nil || r.Energy.Joules != nil || r.Energy.Reason == nil {
		t.Errorf("%v, %+v, %+v", r.Status, r.Stats, r.Energy)
	}
}

// withEnergy is the record of a technique whose energy is counted on d.
func withEnergy(t *testing.T, d device.Device, m *meter) record.Record {
	t.Helper()
	settings := config.Default()
	settings.Rounds, settings.MaxRounds, settings.Warmup, settings.MinTime, settings.Energy = 1, 1, 0, 0, true
	var got []record.Record
	s := Sweep{
		Device: d, Techniques: []rnn.Technique{naive.Technique{}}, Settings: settings, energies: energies{windows: m.windows()},
		Emit: func(r *record.Record) error { got = append(got, *r); return nil },
	}
	s.energies.windows.Chunk = 0
	p := record.Point{Cell: "gru", Pass: "forward", Hidden: 4, Input: 4, Batch: 1, Steps: 2, Layers: 1, Precision: "fp32"}
	if err := s.Run(t.Context(), []Task{{p, []grid.Spec{{Name: "naive", Label: "naive"}}}}); err != nil || len(got) != 1 {
		t.Fatalf("%d records, %v", len(got), err)
	}
	return got[0]
}
