package worker_test

import (
	"errors"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// adding returns a schedule that adds x to sum in each run; both are 2 × 3.
func adding(t testing.TB) (s *schedule.Schedule, x, sum *schedule.Matrix) {
	b := schedule.NewBuilder(1)
	x, sum = b.Matrix("x", 2, 3), b.Matrix("sum", 2, 3)
	b.Do(0, schedule.Map{Op: cell.Add, Out: sum.All(), A: sum.All(), B: x.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, x, sum
}

// TestCalls: every call gets its input, in rotation, and is timed, in this process and in a worker.
func TestCalls(t *testing.T) {
	here, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	devices := map[string]device.Device{"here": here}
	for _, name := range []string{"window", "pipe"} {
		d, err := open(t, "serve", "cpu")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if name == "pipe" {
			d.Unshare()
		}
		devices[name] = d
	}
	for name, d := range devices {
		t.Run(name, func(t *testing.T) {
			s, x, sum := adding(t)
			p, err := d.Compile(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			c := device.Calls{In: x, Inputs: []float32{1, 1, 1, 2, 3, 4}, Each: 3, Out: sum, Read: 3, N: 5}
			took, err := device.Call(p, c)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, 3)
			if err := p.Read(sum, got); err != nil || [3]float32(got) != [3]float32{7, 9, 11} {
				t.Errorf("after five calls the sum is %v: %v", got, err)
			}
			if len(took.Wall) != 5 || len(took.Run) != 5 {
				t.Fatalf("times of %d and %d calls", len(took.Wall), len(took.Run))
			}
			for i := range took.Wall {
				if took.Run[i] <= 0 || took.Wall[i] < took.Run[i] {
					t.Errorf("call %d took %v, its run %v", i, took.Wall[i], took.Run[i])
				}
			}
			c.N = 1<<13 + 3 // more than one request may have
			if took, err = device.Call(p, c); err != nil || len(took.Wall) != c.N {
				t.Errorf("%d of %d calls: %v", len(took.Wall), c.N, err)
			}
			for _, bad := range []device.Calls{
				{In: x, Inputs: c.Inputs, Each: 4, Out: sum, Read: 3, N: 1}, {In: x, Inputs: c.Inputs[:3], Each: 6, Out: sum, Read: 3, N: 1},
				{In: x, Inputs: c.Inputs, Each: 3, Out: sum, Read: 4, N: 1}, {In: x, Inputs: c.Inputs, Each: 3, Out: sum, Read: 9, N: 1},
				{In: x, Inputs: c.Inputs, Each: 3, Out: sum, Read: 3},
			} {
				if _, err := device.Call(p, bad); err == nil || errors.Is(err, device.ErrFault) {
					t.Errorf("%d values in, %d out, %d calls: %v", bad.Each, bad.Read, bad.N, err)
				}
			}
		})
	}
}
