package worker_test

import (
	"testing"

	"rnnbench/device"
	"rnnbench/device/devicetest"
)

// TestFed: a program in the worker is fed while it runs, by memory that both share and through the
// pipe, if the device there can.
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
		t.Error("a program is fed whose device cannot")
	}
}

// TestFedKilled: a worker that dies while a run is under way is told as such.
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
		t.Errorf("the feed says %v", err)
	}
	if err := f.Wait(); !is(err, device.ErrLost) {
		t.Errorf("the run says %v", err)
	}
}
