package cpu

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestProfile: a profile counts every operation once and its times fit into those of its runs. The
// program computes the same before, while and after it is profiled.
func TestProfile(t *testing.T) {
	const runs = 3
	p := rnn.Problem{Cell: cell.LSTM, Input: 24, Hidden: 64, Layers: 2, Batch: 16, Steps: 6, Pass: rnn.Train}
	data := rnn.NewData(p, 1, p.Batch, "normal")
	for _, threads := range []int{1, 3} {
		d, err := Open(Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		several, within := false, 0
		for _, tech := range impl.Own() {
			if tech.Name() == "scan" {
				continue
			}
			name := fmt.Sprintf("%s on %d workers", tech.Name(), threads)
			plan, s, err := rnn.Layout(tech, p, knob.Params{})
			if err != nil {
				t.Fatal(name, err)
			}
			var k knob.Params
			if threads > 1 && knob.Find(d.Knobs(s), "teams") != nil {
				k = knob.Params{"teams": 2}
			}
			made, err := d.Compile(s, k)
			if err != nil {
				t.Fatal(name, err)
			}
			defer made.Close()
			prog := made.(*program)
			several = several || prog.teams > 1
			if err := plan.Write(prog, data); err != nil {
				t.Fatal(name, err)
			}
			if err := prog.Prepare(); err != nil {
				t.Fatal(name, err)
			}
			answer := func() []rnn.Tensor {
				got, _, err := plan.ReadDistinct(prog, data)
				if err != nil {
					t.Fatal(name, err)
				}
				return got
			}
			if _, err := prog.Run(2); err != nil {
				t.Fatal(name, err)
			}
			want, nodes := answer(), slices.Clone(prog.nodes)
			found, err := prog.Profile(runs)
			if err != nil {
				t.Fatal(name, err)
			}
			same(t, name+", profiled", answer(), want)
			if _, err := prog.Run(1); err != nil {
				t.Fatal(name, err)
			}
			same(t, name+", afterwards", answer(), want)
			for i := range nodes {
				if _, ok := prog.nodes[i].work.(*watchedNode); ok || prog.nodes[i].pieces != nodes[i].pieces {
					t.Fatalf("%s: operation %d is still measured", name, i)
				}
			}
			count, flops, bytes := 0, int64(0), int64(0)
			for _, g := range found.Groups {
				count += g.Count + g.Within
				within += g.Within
				flops, bytes = flops+g.FLOPs, bytes+g.Bytes
				if g.Count == 0 || !(g.Predicted > 0) {
					t.Errorf("%s: %+v", name, g)
				}
			}
			if as := prog.schedule; count != len(as.Nodes) || flops != as.FLOPs() || bytes != as.Traffic() {
				t.Errorf("%s: %d operations of %d FLOP and %d B are measured; %d of %d and %d run", name, count, flops, bytes, len(as.Nodes), as.FLOPs(), as.Traffic())
			}
			if len(found.Runs) != runs || found.Workers != threads || found.Teams != prog.teams {
				t.Errorf("%s: %d runs, %d workers, %d teams", name, len(found.Runs), found.Workers, found.Teams)
			}
			for _, r := range found.Runs {
				var taken, busy time.Duration
				for g := range found.Groups {
					if taken, busy = taken+r.Taken[g], busy+r.Busy[g]; r.Taken[g] <= 0 || r.Busy[g] <= 0 {
						t.Errorf("%s: %s takes %v, busy for %v", name, found.Groups[g].Name, r.Taken[g], r.Busy[g])
					}
				}
				if taken > r.Wall*time.Duration(found.Teams) || busy > r.Wall*time.Duration(threads) || threads == 1 && busy != taken {
					t.Errorf("%s: operations take %v and workers are busy for %v in a run of %v", name, taken, busy, r.Wall)
				}
			}
		}
		if several != (threads > 1) || within == 0 {
			t.Errorf("%d workers: several teams: %v; %d operations within others", threads, several, within)
		}
	}
}

// same compares two answers bit by bit.
func same(t *testing.T, what string, got, want []rnn.Tensor) {
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
