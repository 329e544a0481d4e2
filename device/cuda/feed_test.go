package cuda_test

import (
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// feedings are the settings that differ in how a run is started.
func feedings() []knob.Params { return []knob.Params{{"graph": 0}, {"graph": 1}} }

// TestFed: the next values travel during a run.
func TestFed(t *testing.T) {
	d, _ := emulated(t)
	devicetest.Feeding(t, d, feedings()...)
	misread(t, d)
}

// TestGPUFed is the same on a GPU.
func TestGPUFed(t *testing.T) {
	d := openGPU(t, time.Minute)
	devicetest.Feeding(t, d, feedings()...)
	misread(t, d)
}

// misread: Wait returns the error of a started run's kernel, once.
func misread(t *testing.T, d device.Device) {
	b := schedule.NewBuilder(1)
	at, out := b.Matrix("at", 3, 1), b.Matrix("out", 3, 4)
	b.Do(0, schedule.Gather{Index: at.All(), Table: b.Matrix("table", 5, 4).All(), Out: out.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f := p.(device.Fed)
	for i, index := range []float32{4, 5, 0} {
		if err := f.Feed(device.Filled{Matrix: at, Values: []float32{0, index, 1}}); err != nil {
			t.Fatal(err)
		}
		if err := f.Start(); err != nil {
			t.Fatal(err)
		}
		if err := f.Wait(); (err == nil) == (index == 5) {
			t.Errorf("run %d, with index %v of a table of 5: %v", i, index, err)
		}
	}
}
