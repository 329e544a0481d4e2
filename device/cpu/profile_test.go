package cpu

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestProfile: a profile counts every operation once and its times fit into those of its runs. The
// program computes the same before, while and after it is profiled.
func TestProfile(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 24, Hidden: 64, Layers: 2, Batch: 16, Steps: 6, Pass: rnn.Train}
	data := rnn.NewData(p, 1, p.Batch, "normal")
	for _, threads := range []int{1, 3} {
		d, err := Open(Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		several, within := false, 0
		for _, tech := range impl.Direct() {
			if _, _, err := rnn.Layout(tech, p, nil); errors.Is(err, schedule.ErrUnsupported) {
				continue // it runs other cells
			}
			t.Run(fmt.Sprintf("%s on %d workers", tech.Name(), threads), func(t *testing.T) {
				prog, found := profiled(t, d, tech, data)
				several = several || prog.teams > 1
				within += checkGroups(t, found, prog.schedule)
				if found.Workers != threads || found.Teams != prog.teams {
					t.Errorf("%d workers, %d teams", found.Workers, found.Teams)
				}
				checkRuns(t, found)
			})
		}
		if several != (threads > 1) || within == 0 {
			t.Errorf("%d workers: several teams: %v; %d operations within others", threads, several, within)
		}
	}
}

// profiledRuns is how many runs the tests profile.
const profiledRuns = 3

// profiled profiles tech on d, in teams where it can, and checks that this changes no answer.
func profiled(t *testing.T, d *Device, tech rnn.Technique, data *rnn.Data) (*program, device.Profile) {
	t.Helper()
	plan, s, err := rnn.Layout(tech, data.Problem, knob.Params{})
	if err != nil {
		t.Fatal(err)
	}
	var k knob.Params
	if d.Info().Workers > 1 && knob.Find(d.Knobs(s), "teams") != nil {
		k = knob.Params{"teams": 2}
	}
	made, err := d.Compile(s, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Close() })
	prog := made.(*program)
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		t.Fatal(err)
	}
	answer := func() []oracle.Tensor {
		got, _, err := oracle.ReadDistinct(plan, prog, data)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if _, err := prog.Run(2); err != nil {
		t.Fatal(err)
	}
	want, nodes := answer(), slices.Clone(prog.nodes)
	found, err := prog.Profile(profiledRuns)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "profiled", answer(), want)
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	same(t, "afterwards", answer(), want)
	for i := range nodes {
		if _, ok := prog.nodes[i].work.(*watchedNode); ok || prog.nodes[i].pieces != nodes[i].pieces {
			t.Fatalf("operation %d is still measured", i)
		}
	}
	return prog, found
}

// checkGroups checks that all operations of s are in one group each. It returns how many are measured
// as parts of others.
func checkGroups(t *testing.T, found device.Profile, s *schedule.Schedule) (within int) {
	t.Helper()
	count, flops, bytes := 0, int64(0), int64(0)
	for _, g := range found.Groups {
		count += g.Count + g.Within
		within += g.Within
		flops, bytes = flops+g.FLOPs, bytes+g.Bytes
		if g.Count == 0 || !(g.Predicted > 0) {
			t.Errorf("%+v", g)
		}
	}
	if count != len(s.Nodes) || flops != s.FLOPs() || bytes != s.Traffic() {
		t.Errorf("%d operations of %d FLOP and %d B are measured; %d of %d and %d run", count, flops, bytes, len(s.Nodes), s.FLOPs(), s.Traffic())
	}
	return within
}

// checkRuns checks that the times of operations fit into those of their runs.
func checkRuns(t *testing.T, found device.Profile) {
	t.Helper()
	if len(found.Runs) != profiledRuns {
		t.Errorf("%d runs", len(found.Runs))
	}
	for _, r := range found.Runs {
		var taken, busy time.Duration
		for g := range found.Groups {
			if taken, busy = taken+r.Taken[g], busy+r.Busy[g]; r.Taken[g] <= 0 || r.Busy[g] <= 0 {
				t.Errorf("%s takes %v, busy for %v", found.Groups[g].Name, r.Taken[g], r.Busy[g])
			}
		}
		if taken > r.Wall*time.Duration(found.Teams) || busy > r.Wall*time.Duration(found.Workers) || found.Workers == 1 && busy != taken {
			t.Errorf("operations take %v and workers are busy for %v in a run of %v", taken, busy, r.Wall)
		}
	}
}

// same compares two answers bit by bit.
func same(t *testing.T, what string, got, want []oracle.Tensor) {
	t.Helper()
	for i := range want {
		if !slices.Equal(got[i].Values, want[i].Values) {
			t.Errorf("%s: %s differs", what, want[i].Name)
		}
	}
}

// TestProfileNamesProducts: products of different sizes are different groups.
func TestProfileNamesProducts(t *testing.T) {
	b := schedule.NewBuilder(1)
	x, y, z := b.Matrix("x", 4, 5), b.Matrix("y", 5, 6), b.Matrix("z", 4, 6)
	g := schedule.Gemm{A: x.All(), B: y.All(), C: z.All()}
	if got := groupName(g); got != "gemm 4×6×5" {
		t.Error(got)
	}
	if got := groupName(schedule.Map{Op: cell.Add, Out: x.All(), A: x.All(), B: x.All()}); got != "add" {
		t.Error(got)
	}
}
