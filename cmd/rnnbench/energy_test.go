package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/worker"
	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
	"rnnbench/tuner/wisdom"
)

// meterVariable makes the worker that --isolate on starts count energy. A run takes less energy
// the more operations its schedule has, so that slow techniques are thrifty.
const meterVariable = "RUNS_TAKE_JOULES"

// A metered device is the CPU with a counter that ticks every 2 ms.
type metered struct {
	*cpu.Device
	mu            sync.Mutex
	start         time.Time
	joules, shown float64
	tick          int64
}

func (d *metered) Power() (device.Power, error) {
	const tick, rest = 2 * time.Millisecond, 0.1 // W: what runs wait for on a busy machine hardly counts
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := int64(time.Since(d.start) / tick); now > d.tick {
		d.shown, d.tick = d.joules+rest*float64(now)*tick.Seconds(), now
	}
	return device.Power{Source: "test", Joules: d.shown}, nil
}

func (d *metered) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return meteredProgram{p, d, 1 / float64(len(s.Nodes))}, err
}

type meteredProgram struct {
	device.Program
	on   *metered
	each float64
}

func (p meteredProgram) Run(n int) (device.Sample, error) {
	s, err := p.Program.Run(n)
	p.on.mu.Lock()
	defer p.on.mu.Unlock()
	p.on.joules += float64(n) * p.each
	return s, err
}

// serveMetered runs the worker with a metered device.
func serveMetered() int {
	err := worker.Serve(os.Stdin, os.Stdout, func(string) (device.Device, error) {
		c, err := cpu.Open(cpu.Options{Threads: 1})
		return &metered{Device: c, start: time.Now()}, err
	}, func() { os.Exit(exit.Error) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exit.Error
	}
	return exit.Done
}

// TestTuneEnergy tunes for energy and for time. Each has its own wisdom, and auto follows the
// wisdom of --objective.
func TestTuneEnergy(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a counter; the suite without -short runs it")
	}
	t.Chdir(t.TempDir())
	t.Setenv(meterVariable, "1")
	const at = " -H 16 -B 2 -T 12 --threads 1 --isolate on --wisdom w.toml"
	const tune = "tune --impl naive,cudnnstyle --depth 0 --max-rounds 6 --min-time 2ms" + at
	rnnbench(t, tune+" --objective energy").want(t, exit.Done, []string{"least energy", "takes more by", "J ", "naive"}, []string{"least energy wins", "wisdom saved"})
	rnnbench(t, tune+" --objective energy").want(t, exit.Done, []string{"naive"}, []string{"0 samples", "all records were known already"})

	m, recs, _, err := record.Read("out")
	if err != nil || len(recs) != 2 || len(m.Winners) != 1 {
		t.Fatalf("%d records, %d winners, %v", len(recs), len(m.Winners), err)
	}
	for _, r := range recs {
		e := r.Energy
		if r.Mode.Objective != record.OfEnergy || e == nil || e.Joules == nil || len(e.Windows) != r.Stats.N || e.Source != "test" {
			t.Errorf("%s: %+v, %+v", r.Impl.Label, r.Mode, e)
		}
	}
	w := m.Winners[0]
	i := slices.IndexFunc(recs, func(r record.Record) bool { return r.Impl.Label == "naive" })
	if i < 0 || w.Label != "naive" || w.Joules <= 0 || w.Seconds <= 0 || w.Seconds != recs[i].Seconds() {
		t.Errorf("%+v", w)
	}
	const sweep = "sweep --impl auto,cudnnstyle " + at + quicklyIsolated
	rnnbench(t, sweep).want(t, exit.Done, nil, []string{"auto uses "}) // wisdom for energy does not count for time

	rnnbench(t, tune).want(t, exit.Done, []string{"fastest", "slower by"}, []string{"wisdom saved"})
	b, err := wisdom.Read("w.toml")
	if err != nil || len(b.Entries) != 2 {
		t.Fatalf("%d entries, %v", len(b.Entries), err)
	}
	for _, e := range b.Entries {
		if e.Objective == record.OfEnergy != (e.Joules > 0) || e.Seconds <= 0 || e.Objective == record.OfEnergy && math.Abs(e.Joules/w.Joules-1) > 0.2 {
			t.Errorf("%+v", e)
		}
	}
	rnnbench(t, sweep).want(t, exit.Done, nil, []string{"auto: tuned entries for 1 point"})
	rnnbench(t, sweep+" --objective energy").want(t, exit.Done, nil, []string{"auto: entries tuned for energy for 1 point"})
	rnnbench(t, "explain --impl auto --no-limits --objective energy"+explained).want(t, exit.Done, []string{"naive"}, []string{"auto: entries tuned for energy for 1 point"})
	rnnbench(t, "wisdom lookup --objective energy"+explained).want(t, exit.Done, []string{"naive", "the one with the least energy of 2"}, nil)
	rnnbench(t, "wisdom show --wisdom w.toml").want(t, exit.Done, []string{", least energy"}, nil)
	rnnbench(t, "tune --shard 1/1"+at+" --impl naive,cudnnstyle --depth 0 --objective energy --label s").want(t, exit.Done, nil, nil)
	rnnbench(t, "merge out/"+shardName(t)+" --wisdom merged.toml").want(t, exit.Done, nil, []string{"1 entry merged into merged.toml"})
	if b, err := wisdom.Read("merged.toml"); err != nil || len(b.Entries) != 1 || b.Entries[0].Objective != record.OfEnergy {
		t.Errorf("%+v, %v", b, err)
	}
}

const (
	quicklyIsolated = " --rounds 1 --max-rounds 1 --warmup 0s --min-time 0s --min-iters 1"
	explained       = " -H 16 -B 2 -T 12 --threads 1 --wisdom w.toml"
)

// shardName returns the folder of the only shard.
func shardName(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir("out")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if m, err := record.ReadManifest("out/" + e.Name()); err == nil && m.Scope.Shard != nil {
			return e.Name()
		}
	}
	t.Fatal("there is no shard")
	return ""
}

// TestTuneEnergyWithoutCounter: a device without a counter is refused before anything is
// measured. Some processors have one.
func TestTuneEnergyWithoutCounter(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = "tune -H 8 -B 1 -T 2 --impl naive --depth 0 --threads 1 --no-wisdom --objective energy"
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, counts := d.Power()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	dry := rnnbench(t, line+" --dry-run")
	dry.want(t, exit.Done, []string{"candidates"}, []string{"least energy wins"})
	if told := strings.Contains(dry.errors, "warning: this tune cannot run here"); told != (counts != nil) {
		t.Errorf("with a counter: %t, but a dry run says %q", counts == nil, dry.errors)
	}
	if counts == nil {
		t.Skip("this processor counts its energy")
	}
	rnnbench(t, line).want(t, exit.NoDevice, nil, []string{"--objective energy: energy cannot be counted: ", "hint: omit --objective to tune for time"})
	if _, err := os.Stat("out"); err == nil {
		t.Error("a run was made")
	}
}

// TestEnergyTakesNoTimeUncounted: without a counter, an estimate leaves out the time for energy.
func TestEnergyTakesNoTimeUncounted(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, c := range []struct {
		on   device.Device
		want bool
	}{{struct{ device.Device }{d}, false}, {&metered{Device: d, start: time.Now()}, true}} {
		b, err := bench.New(c.on, bench.Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Estimator(config.Measure{Energy: true}).Measure.Energy; got != c.want {
			t.Errorf("%T: time for energy: %t, want %t", c.on, got, c.want)
		}
	}
}
