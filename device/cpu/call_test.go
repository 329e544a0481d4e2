package cpu

import (
	"fmt"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// totals returns a schedule that adds an input to a total on each of some streams, and then adds up
// the totals.
func totals(t *testing.T, streams, rows, cols int) (s *schedule.Schedule, in, out *schedule.Matrix) {
	t.Helper()
	b := schedule.NewBuilder(streams)
	in, out = b.Matrix("in", rows, cols), b.Matrix("out", rows, cols)
	add := func(stream int, to, x, y *schedule.Matrix) {
		b.Do(stream, schedule.Map{Op: cell.Add, Out: to.All(), A: x.All(), B: y.All()})
	}
	for stream := range streams {
		total := b.Matrix(fmt.Sprint("total", stream), rows, cols)
		add(stream, total, total, in)
		add(0, out, out, total)
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, in, out
}

// TestCallsAreRuns: calls give the same results as a write and a run each, by one team and by
// several, on one worker and on more. Runs may follow calls.
func TestCallsAreRuns(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		d, err := Open(Options{Threads: workers})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for _, size := range [][2]int{{1, 3}, {64, 700}} { // an operation of the first size is not shared
			for _, teams := range []int{1, 2} {
				if teams > workers {
					continue
				}
				s, in, out := totals(t, 3, size[0], size[1])
				var k knob.Params
				if workers > 1 {
					k = knob.Params{"teams": teams}
				}
				made, err := d.Compile(s, k)
				if err != nil {
					t.Fatal(err)
				}
				defer made.Close()
				p := made.(*program)
				if alone := workers == 1 || teams == 1 && size[0] == 1; (p.awake == 1) != alone {
					t.Errorf("%d workers, %d teams, %v: %d awake", workers, teams, size, p.awake)
				}
				inputs := make([]float32, 2*in.Elements())
				for i := range inputs {
					inputs[i] = float32(1 + i/in.Elements())
				}
				want := float32(0)
				for i, total := 0, float32(0); i < 12; i++ { // calls, then one run, then calls
					total += []float32{1, 2, 1, 2, 1, 1, 1, 2, 1, 2, 1, 2}[i]
					want += 3 * total
				}
				call := func(n int) {
					t.Helper()
					c := device.Calls{In: in, Inputs: inputs, Each: in.Elements(), Out: out, Read: size[1], N: n}
					got, err := device.Call(p, c)
					if err != nil || len(got.Wall) != n || len(got.Run) != n || slices.Min(got.Run) <= 0 || slices.Min(got.Wall) < slices.Min(got.Run) {
						t.Fatal(got, err)
					}
				}
				call(5)
				if _, err := p.Run(1); err != nil {
					t.Fatal(err)
				}
				call(6)
				got := make([]float32, out.Elements())
				if err := p.Read(out, got); err != nil || slices.Min(got) != want || slices.Max(got) != want {
					t.Errorf("%d workers, %d teams, %v: %v to %v, want %v (%v)", workers, teams, size, slices.Min(got), slices.Max(got), want, err)
				}
			}
		}
	}
}

// TestCallsFail: calls fail if an input is invalid, a matrix cannot be read or the program is
// closed. Valid calls succeed afterwards.
func TestCallsFail(t *testing.T) {
	d, err := Open(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b := schedule.NewBuilder(1)
	index, table, out := b.Matrix("index", 2, 1), b.Matrix("table", 9, 40), b.Matrix("out", 2, 40)
	scratch := b.Scratch("scratch", 2, 40)
	b.Do(0, schedule.Gather{Table: table.All(), Index: index.All(), Out: scratch.All()})
	b.Do(0, schedule.Map{Op: cell.Copy, Out: out.All(), A: scratch.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(from *schedule.Matrix, read int, rows ...float32) error {
		_, err := device.Call(p, device.Calls{In: index, Inputs: rows, Each: 2, Out: from, Read: read, N: 3})
		return err
	}
	for _, c := range []struct {
		from *schedule.Matrix
		read int
		rows []float32
		ok   bool
	}{
		{out, 80, []float32{0, 8}, true}, {out, 80, []float32{0, 8, 9, 1}, false}, {scratch, 80, []float32{0, 8}, false},
		{out, 41, []float32{0, 8}, false}, {out, 120, []float32{0, 8}, false}, {out, 40, []float32{7, 8}, true},
	} {
		if err := call(c.from, c.read, c.rows...); (err == nil) != c.ok {
			t.Errorf("%s, %d values, rows %v: %v", c.from.Name, c.read, c.rows, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := call(out, 80, 0, 8); err == nil {
		t.Error("a closed program accepts calls")
	}
}
