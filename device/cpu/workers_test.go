package cpu

import (
	"errors"
	"strings"
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestSomeWorkersRunAProgram: only as many workers run as the knob says, and the results are the
// same.
func TestSomeWorkersRunAProgram(t *testing.T) {
	const all = 7
	d, err := Open(Options{Threads: all})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a := newLayer(t, cell.LSTM, true, 9, 100, 3, 11, []int{0, 1, 0, 1}, nil)
	want, _ := a.run(t, d, nil)
	for _, n := range []int{1, 2, 5, all} {
		k := knob.Params{"workers": n}
		got, _ := a.run(t, d, k)
		agree(t, got, want)
		prog, err := d.Compile(a.s, k)
		if err != nil {
			t.Fatal(err)
		}
		p := prog.(*program)
		if len(p.seats) != n || len(p.scratch) != n || p.device.pool != d.pool {
			t.Errorf("workers=%d: %d seats", n, len(p.seats))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	more, err := d.Memory(a.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if less, err := d.Memory(a.s, knob.Params{"workers": 1}); err != nil || less >= more {
		t.Errorf("one worker needs %d bytes, seven %d (%v)", less, more, err)
	}
	if slow, err := d.Predict(a.s, knob.Params{"workers": 1}); err != nil || slow.Seconds <= 0 {
		t.Errorf("%+v, %v", slow, err)
	}
}

// TestMoreTeamsThanWorkersAreDeclined: teams without workers cannot run.
func TestMoreTeamsThanWorkersAreDeclined(t *testing.T) {
	d, err := Open(Options{Threads: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	a := newLayer(t, cell.RNNTanh, false, 9, 40, 1, 5, []int{0, 1, 0, 1}, nil)
	if _, err := d.Compile(a.s, knob.Params{"workers": 1, "teams": 2}); !errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), "more teams than workers (1)") {
		t.Error(err)
	}
	for _, k := range []knob.Params{{"workers": 2, "teams": 2}, {"workers": 1, "teams": 1}, {"workers": 3, "teams": 2}} {
		prog, err := d.Compile(a.s, k)
		if err != nil {
			t.Fatal(k, err)
		}
		if _, err := prog.Run(3); err != nil {
			t.Error(k, err)
		}
		if err := prog.Close(); err != nil {
			t.Error(err)
		}
	}
}
