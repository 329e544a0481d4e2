package cpu

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"rnnbench/device/allreduce"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// summed returns a schedule that sums a copy of a matrix over replicas and copies it back.
func summed(t *testing.T, streams, replicas int) (*schedule.Schedule, *schedule.Matrix) {
	b := schedule.NewBuilder(streams)
	x, g := b.Matrix("x", 3, 5), b.Matrix("g", 3, 5)
	b.Do(0, schedule.Map{Op: cell.Copy, Out: g.All(), A: x.All()})
	b.AllReduce([][]*schedule.Matrix{{g}}, replicas)
	b.Do(0, schedule.Map{Op: cell.Copy, Out: x.All(), A: g.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, x
}

// TestSumsDeclined: a sum over another number of replicas than there are is declined.
func TestSumsDeclined(t *testing.T) {
	d, err := Open(Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, _ := summed(t, 1, 2)
	if _, err := d.Compile(s, nil); !errors.Is(err, schedule.ErrDevice) || !strings.Contains(err.Error(), "this one is alone") {
		t.Errorf("alone: %v", err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	path, err := allreduce.Create(t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	g, err := allreduce.Join(path, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	one, err := Open(Options{Threads: 1, Group: g})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if _, err := one.Compile(s, nil); !errors.Is(err, schedule.ErrDevice) || !strings.Contains(err.Error(), "but there are 3") {
		t.Errorf("one of three: %v", err)
	}
}

// TestSumsInRuns: each run of a sample sums, with any number of workers and streams. If a replica's
// run fails, the other one fails as well, at once.
func TestSumsInRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	for _, c := range []struct{ threads, streams int }{{1, 1}, {2, 1}, {2, 2}} {
		path, err := allreduce.Create(t.TempDir(), 2)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for rank := range 2 {
			g, err := allreduce.Join(path, rank, 2)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open(Options{Threads: c.threads, Group: g})
			if err != nil {
				t.Fatal(err)
			}
			s, x := summed(t, c.streams, 2)
			made, err := d.Compile(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				defer d.Close()
				values := make([]float32, 15)
				for i := range values {
					values[i] = float32(i + rank)
				}
				if err := made.Write(x, values); err != nil {
					t.Error(err)
				}
				for range 2 {
					if _, err := made.Run(3); err != nil {
						t.Error(err)
					}
				}
				if err := made.Read(x, values); err != nil {
					t.Error(err)
				}
				for i, v := range values { // the first run adds two vectors, later ones double the sum
					if want := float32(2*i+1) * 32; v != want {
						t.Errorf("%+v, replica %d: value %d is %g, want %g", c, rank+1, i, v, want)
					}
				}
				p := made.(*program)
				if rank == 1 {
					p.nodes[0].work = broken{}
				}
				_, err := made.Run(1)
				if wrong := rank == 0 && !errors.Is(err, allreduce.ErrGone) || rank == 1 && (err == nil || !strings.Contains(err.Error(), "broken")); wrong {
					t.Errorf("%+v, replica %d: after a failure: %v", c, rank+1, err)
				}
			})
		}
		all.Wait()
	}
}

// broken is work that panics.
type broken struct{}

func (broken) share(int, int, *scratch) { panic("broken") }
