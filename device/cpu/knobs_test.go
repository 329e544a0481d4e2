package cpu_test

import (
	"errors"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestKnobsThatShareNothingAreDeclined: settings with which nothing can be shared are declined.
func TestKnobsThatShareNothingAreDeclined(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	layers := func(hidden, streams, batch int) *schedule.Schedule {
		b := schedule.NewBuilder(streams)
		all := func(rows, cols int) schedule.View { return b.Matrix("m", rows, cols).All() }
		for i := range streams {
			op := schedule.Persistent{Sequence: schedule.Sequence{Cell: cell.RNNTanh, Steps: 2, X: all(2*batch, hidden), BX: all(1, hidden), BR: all(1, hidden)}}
			op.State = []schedule.View{all(3*batch, hidden)}
			op.R = []schedule.View{b.Packed("packed", hidden, hidden).All()}
			b.Prepare(schedule.Pack{Src: all(hidden, hidden), Dst: op.R[0], Trans: true})
			b.Do(i, op)
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	scan := newRecurrence(t, 100, 1, 64, true).s
	for _, test := range []struct {
		s      *schedule.Schedule
		knobs  string
		reason string // why it is declined; "": it is accepted
	}{
		{layers(64, 1, 1), "bands=4", ""},
		{layers(64, 1, 1), "bands=1", ""},
		{layers(33, 1, 1), "bands=4", "33 units make at most 3 bands"},
		{layers(64, 2, 1), "bands=2", ""},
		{layers(64, 2, 1), "bands=2:teams=2", ""},
		{layers(64, 2, 1), "bands=3:teams=2", "a team has 2 workers"},
		{layers(64, 2, 1), "bands=4", ""},
		{layers(64, 1, 2), "bands=2:sequences=1", ""},
		{layers(64, 1, 2), "sequences=2", ""},
		{layers(64, 1, 2), "bands=2:sequences=2", "set sequences=1"},
		{scan, "scansplit=2", ""},
		{scan, "scansplit=3", ""},
		{scan, "scansplit=1024", ""},
		{scan, "scansplit=2:scanworkers=3", "scansplit=2: unsupported: it must divide the 3 workers"},
		{scan, "scansplit=2:scanchunk=8", ""},
		{scan, "scansplit=1:scanchunk=8", "set scansplit"},
		{scan, "scanworkers=1:scanchunk=8", "set scansplit"},
	} {
		k, err := knob.Parse(test.knobs)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Memory(test.s, k); errors.Is(err, schedule.ErrUnsupported) != (test.reason != "") { // the tuner and auto ask Memory first
			t.Errorf("%s: memory: %v", test.knobs, err)
		}
		prog, err := d.Compile(test.s, k)
		switch {
		case err == nil && test.reason == "":
			if _, err := prog.Run(1); err != nil {
				t.Errorf("%s: %v", test.knobs, err)
			}
		case test.reason == "" || !errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), test.reason):
			t.Errorf("%s: %v, not because %s", test.knobs, err, test.reason)
		}
		if err == nil {
			if err := prog.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
