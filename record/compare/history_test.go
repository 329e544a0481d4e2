package compare

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"rnnbench/record"
)

// A course says how a machine's runs differ, and how its state wanders from run to run.
type course struct {
	moment
	wander float64 // by which the state of all points moves from one run to the next
	stray  float64 // by which the state of each point moves
	keeps  float64 // share of the state that the next run keeps
}

// courses are the moments, and states that outlast a run.
func courses() (list []course) {
	for _, m := range moments {
		list = append(list, course{moment: m})
	}
	return append(list,
		course{moment{name: "slow states of all points", shift: 0.005, point: 0.005}, 0.03, 0, 0.7},
		course{moment{name: "slow states of each point", shift: 0.005, point: 0.005}, 0, 0.02, 0.7},
		course{moment{name: "random walk of all points", shift: 0.002, point: 0.005}, 0.02, 0, 1},
		course{moment{name: "random walk of each point", shift: 0.002, point: 0.005}, 0, 0.02, 1})
}

// history simulates n runs. slow gives the true ratio of a point in a run.
func (c course) history(rng *rand.Rand, n, points int, slow func(run, i int) float64) []record.Set {
	all, each := 0.0, make([]float64, points)
	var sets []record.Set
	for run := range n {
		all = c.keeps*all + c.wander*rng.NormFloat64()
		for i := range each {
			each[i] = c.keeps*each[i] + c.stray*rng.NormFloat64()
		}
		one, _ := c.sides(rng, 1, points, 1, flat)
		s := one.Runs[0]
		s.Label = fmt.Sprint(run)
		s.Manifest.Started = time.Unix(int64(1000*run), 0)
		for i := range s.Records {
			f := slow(run, i) * math.Exp(all+each[i]+c.drift*float64(run))
			r := &s.Records[i]
			r.Stats.Median *= f
			for j := range r.Samples.Wall {
				r.Samples.Wall[j] *= f
			}
		}
		sets = append(sets, s)
	}
	return sets
}

func constant(int, int) float64 { return 1 }

// followed returns the history of simulated runs.
func followed(t *testing.T, sets []record.Set) History {
	t.Helper()
	list, err := Histories(sets, ByDate, forHistory())
	if err != nil || len(list) != 1 {
		t.Fatal(len(list), err)
	}
	return list[0]
}

// TestHistoryWithoutSteps follows programs that never changed. Whatever the machine does, at most one
// history of a hundred may have a step.
func TestHistoryWithoutSteps(t *testing.T) {
	histories := 50 // of 200, 4 of 2,400 had a step
	if testing.Short() {
		histories = 10
	}
	all, bad := 0, 0
	for _, c := range courses() {
		wrong := 0
		for seed := range histories {
			h := followed(t, c.history(rand.New(rand.NewPCG(11, uint64(seed))), 20, 40, constant))
			if len(h.Stepped()) > 0 {
				wrong++
			}
		}
		t.Logf("%s: %d of %d histories have a step", c.name, wrong, histories)
		if all, bad = all+histories, bad+wrong; wrong > 1+histories/50 {
			t.Errorf("%s: %d of %d histories have a step, and nothing changed", c.name, wrong, histories)
		}
	}
	if 100*bad > all {
		t.Errorf("%d of %d histories have a step, and nothing changed", bad, all)
	}
}

// TestHistoryWithSteps plants a step at four of 40 points. Where it is plain it is found, at the right run.
func TestHistoryWithSteps(t *testing.T) {
	histories := 50
	if testing.Short() {
		histories = 10
	}
	for _, c := range []struct {
		course
		size  float64
		found float64 // share of the steps that must be found; 0: any, since the machine is too noisy
	}{
		{course{moment: moments[0]}, 1.05, 0.95}, {course{moment: moments[1]}, 1.05, 0.6}, {course{moment: moments[1]}, 1.2, 0.99},
		{course{moment: moments[3]}, 1.2, 0.8}, {course{moment: moments[5]}, 1.2, 0},
	} {
		found, placed, others := 0, 0, 0
		for seed := range histories {
			at := 5 + seed%11
			h := followed(t, c.history(rand.New(rand.NewPCG(12, uint64(seed))), 20, 40, func(run, i int) float64 {
				if i%10 == 3 && run >= at {
					return c.size
				}
				return 1
			}))
			for i := range h.Lines {
				steps := h.Lines[i].Steps
				switch {
				case i%10 != 3:
					others += len(steps)
				case len(steps) > 0:
					found++
					if len(steps) == 1 && steps[0].At == at && steps[0].Ratio.Lo < c.size && c.size < steps[0].Ratio.Hi {
						placed++
					}
				}
			}
		}
		t.Logf("%s, %.2f: %d of %d found, %d where they are, %d others", c.name, c.size, found, 4*histories, placed, others)
		if float64(found) < c.found*float64(4*histories) || c.found > 0 && float64(placed) < 0.8*float64(found) || others > 1+histories/50 {
			t.Errorf("%s, %.2f: %d of %d found, %d where they are, %d others", c.name, c.size, found, 4*histories, placed, others)
		}
	}
}

// forHistory is how the command follows runs.
func forHistory() Options {
	o := Usual()
	o.Alpha = 0.01
	return o
}

// TestHistoryThatEnds: a change that was taken back is two steps. One in the last two runs is too late.
func TestHistoryThatEnds(t *testing.T) {
	h := followed(t, course{moment: moments[0]}.history(rand.New(rand.NewPCG(13, 0)), 20, 40, func(run, i int) float64 {
		switch {
		case i == 7 && run >= 6 && run < 12, i == 9 && run >= 18:
			return 1.2
		}
		return 1
	}))
	for i := range h.Lines {
		l := &h.Lines[i]
		switch {
		case i == 7:
			if len(l.Steps) != 2 || l.Steps[0].At != 6 || l.Steps[1].At != 12 || !(l.Steps[0].Ratio.Value > 1.15 && l.Steps[1].Ratio.Value < 0.87) {
				t.Errorf("taken back: %+v", l.Steps)
			}
		case len(l.Steps) > 0:
			t.Errorf("line %d: %+v", i, l.Steps)
		case (i == 9) != l.Late.Known():
			t.Errorf("line %d: late %v", i, l.Late)
		}
	}
}

// TestHistoryOfAll: what moves all points alike is one step of the common line.
func TestHistoryOfAll(t *testing.T) {
	h := followed(t, course{moment: moments[0]}.history(rand.New(rand.NewPCG(14, 0)), 20, 40, func(run, _ int) float64 {
		if run >= 10 {
			return 1.1
		}
		return 1
	}))
	if list := h.Stepped(); len(list) != 1 || list[0] != h.Common || list[0].Steps[0].At != 10 {
		t.Errorf("%d lines have a step", len(list))
	}
}

func TestHistoryWithGaps(t *testing.T) {
	sets := course{moment: moments[0]}.history(rand.New(rand.NewPCG(15, 0)), 20, 10, func(run, i int) float64 {
		if i == 2 && run >= 10 {
			return 1.3
		}
		return 1
	})
	sets[10].Records = sets[10].Records[3:] // the first run with the change lacks the point
	sets[4].Records[2] = fail(sets[4].Records[2], record.Failed, record.ReasonError, "no")
	sets[5].Records = nil
	h := followed(t, sets)
	if len(h.Runs) != 19 {
		t.Errorf("%d runs", len(h.Runs))
	}
	list := h.Stepped()
	if len(list) != 1 || list[0].Record.Point.Hidden != 3 || list[0].Steps[0].At != 10 {
		t.Errorf("%+v", list)
	}
	if _, err := Histories(sets[:1], ByDate, Usual()); !errors.Is(err, ErrAlone) {
		t.Errorf("one run: %v", err)
	}
	if h := followed(t, sets[:3]); len(h.Stepped()) > 0 || !math.IsInf(h.Lines[0].Visible, 1) {
		t.Errorf("three runs: %v", h.Lines[0].Visible)
	}
	// Many points, but few in each run: nothing tells what moved all of a run alike.
	few := course{moment: moments[0]}.history(rand.New(rand.NewPCG(15, 1)), 10, 20, constant)
	for i := range few {
		few[i].Records = few[i].Records[i%4*5:][:5]
	}
	if h := followed(t, few); h.Common != nil || len(h.Lines) != 20 {
		t.Errorf("%d lines", len(h.Lines))
	}
	for i := range few {
		for j, r := range few[i].Records {
			few[i].Records[j] = fail(r, record.Failed, record.ReasonError, "no")
		}
	}
	if _, err := Histories(few, ByDate, Usual()); !errors.Is(err, ErrNoTime) {
		t.Errorf("all have failed: %v", err)
	}
	// Commits come by when they were made, whenever they were measured.
	for i := range sets {
		sets[i].Manifest.Environment.Tool.Time = time.Unix(int64(-i), 0).UTC().Format(time.RFC3339)
	}
	list2, err := Histories(sets, ByCommit, Usual())
	if err != nil || list2[0].Runs[0].Label != "19" {
		t.Errorf("%v: %v", list2[0].Runs[0].Label, err)
	}
}

// TestResemblance computes the bounds of resemblance from simulated lines.
func TestResemblance(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 0))
	for _, n := range []int{15, 20, 40, 100} {
		for _, keeps := range []float64{0, 0.6, 1} {
			var lines [][]float64
			for range 1000 {
				v, x := make([]float64, n), 0.0
				for i := range v {
					x = keeps*x + rng.NormFloat64()
					v[i] = x
				}
				lines = append(lines, widest(v).residuals(v))
			}
			if got, _ := resemblance(lines, n); math.Abs(got-keeps) > 0.25 {
				t.Errorf("%d runs that keep %.1f of their state: %.2f", n, keeps, got)
			}
		}
	}
}
