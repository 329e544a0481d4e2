package worker_test

import (
	"errors"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/device/devicetest"
)

// TestFed: a program in the worker accepts values while it runs, through shared memory and through
// the pipe, if its device can do so.
func TestFed(t *testing.T) {
	for _, way := range []string{"window", "pipe"} {
		d, err := open(t, "fed", "cpu")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if way == "pipe" {
			d.Unshare()
		}
		t.Run(way, func(t *testing.T) { devicetest.Feeding(t, d, nil) })
	}
	d, err := open(t, "serve", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, _, _ := adding(t)
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, fed := p.(device.Fed); fed {
		t.Error("a program is a device.Fed, but its device has none")
	}
}

// TestFedKilled: if the worker is killed while a run is under way, the errors say so.
func TestFedKilled(t *testing.T) {
	d, err := open(t, "fed", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, x, _ := adding(t)
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f := p.(device.Fed)
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	d.Kill()
	if err := f.Feed(device.Filled{Matrix: x, Values: make([]float32, 6)}); !is(err, device.ErrKilled) {
		t.Errorf("Feed returned %v", err)
	}
	if err := f.Wait(); !is(err, device.ErrLost) {
		t.Errorf("Wait returned %v", err)
	}
}

// BenchmarkIteration measures the cost of one training iteration's calls to a worker: four small
// matrices, and a run that takes next to no time.
func BenchmarkIteration(b *testing.B) {
	for _, way := range []string{"written", "fed"} {
		b.Run(way, func(b *testing.B) {
			d, err := open(b, "fed", "cpu")
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			s, x, _ := adding(b)
			p, err := d.Compile(s, nil)
			if err != nil {
				b.Fatal(err)
			}
			f, values := p.(device.Fed), make([]float32, 6)
			all := slices.Repeat([]device.Filled{{Matrix: x, Values: values}}, 4)
			for b.Loop() {
				var err error
				if way == "fed" {
					err = errors.Join(f.Start(), f.Feed(all...), f.Wait())
				} else {
					err = errors.Join(p.Write(x, values), p.Write(x, values), p.Write(x, values), p.Write(x, values))
					_, ran := p.Run(1)
					err = errors.Join(err, ran)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
