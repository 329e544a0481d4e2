package training_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/record"
	"rnnbench/tuner/agenda"
)

// diagonal is networks of a diagonal recurrence.
func diagonal(t *testing.T, iterations int, names ...string) []agenda.Network {
	t.Helper()
	c, err := cells.Load("gru-diag")
	if err != nil {
		t.Fatal(err)
	}
	list := networks(iterations, names...)
	for i := range list {
		list[i].Point.Cell, list[i].Point.Steps = c.Name, 200
		list[i].Training.Data, list[i].Training.Optimizer = "copy:delay=150:length=2:symbols=3", "adam:lr=0.3"
	}
	return list
}

// TestNewton: records say how many iterations Newton's method took, and when they became more. Its losses are
// those of a serial kernel until rounding grows. A training that was killed goes on bit for bit.
func TestNewton(t *testing.T) {
	list := diagonal(t, 40, "newton", "persistent")
	whole := newJob(t, "", list)
	left := filepath.Join(t.TempDir(), "left")
	whole.Tell = func(r *record.Record) { // which is not on file yet
		if r.Impl.Name == "newton" && r.Training.Iterations == 20 {
			if err := os.CopyFS(left, os.DirFS(whole.Run.Dir())); err != nil {
				t.Error(err)
			}
		}
	}
	if err := whole.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	rest := newJob(t, left, list)
	if err := rest.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, got := read(t, whole), read(t, rest)
	if len(want) != 8 || len(got) != 8 {
		t.Fatalf("%d records, %d after a kill", len(want), len(got))
	}
	for i := range want {
		a, b := want[i], got[i]
		if a.Training.Loss != b.Training.Loss || *a.Training.HeldOut != *b.Training.HeldOut {
			t.Errorf("record %d is %+v, %+v after a kill", i, a.Training, b.Training)
		}
		x, y := a.Training.Convergence, b.Training.Convergence
		if x == nil && y == nil && i >= 4 {
			continue
		}
		if x == nil || y == nil || i >= 4 || !slices.Equal(x.Taken, y.Taken) || x.Residual != y.Residual {
			t.Fatalf("record %d: %+v, %+v after a kill", i, x, y)
		}
		if i > 0 && x.Taken[len(x.Taken)-1].Iterations > want[0].Training.Convergence.Taken[0].Iterations && a.Work.Bytes <= want[4].Work.Bytes {
			t.Errorf("record %d: %+v move %d bytes", i, x.Taken, a.Work.Bytes)
		}
	}
	if taken := want[3].Training.Convergence.Taken; len(taken) < 2 {
		t.Errorf("the iterations do not grow: %+v", taken)
	}
}

// TestNotConverged: a training that Newton's method cannot go on with ends with a record that says so, and is
// not tried again.
func TestNotConverged(t *testing.T) {
	list := diagonal(t, 20, "newton", "persistent")
	for i := range list {
		list[i].Point.Gain, list[i].Training.Optimizer = 3200, "adam:lr=0.001"
	}
	j := newJob(t, "", list)
	if err := j.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	recs := read(t, j)
	r, serial := list[0].Latest(recs), list[1].Latest(recs)
	if r == nil || r.Status != record.NotConverged || !list[0].Finished(r) || !strings.Contains(*r.Reason, "after 32 iterations on a minibatch the states still change by") {
		t.Errorf("%+v", r)
	}
	if serial == nil || serial.Status != record.OK {
		t.Errorf("the serial kernel: %+v", serial)
	}
}
