package impl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// uncut is a technique that does not say where its backward pass begins.
type uncut struct{ rnn.Technique }

func (u uncut) Plan(p *rnn.Plan, _ knob.Params) error {
	p.Do(0, schedule.Map{Op: cell.Zero, Out: p.Layer[0].State[0].All()})
	return nil
}

// TestDirectionDeclines: a problem that cannot be laid out in a direction is declined with that
// reason.
func TestDirectionDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 3, Hidden: 4, Layers: 2, Batch: 2, Steps: 5, Output: 3, Direction: rnn.BothWays}
	wide, linear := p, p
	wide.Batch, wide.Steps, linear.Cell, linear.Layers = 1<<24+1, 1, cell.QRNN, 1
	naive := impl.Lookup("naive")
	for _, c := range []struct {
		tech rnn.Technique
		p    rnn.Problem
		k    knob.Params
		is   error
		want string
	}{
		{naive, wide, nil, schedule.ErrDirection, "orders at most 16777216 sequences, not 16777217"},
		{impl.Lookup("scan"), linear, knob.Params{"alone": 1, "inputbatch": 0}, schedule.ErrKnob, "timed alone only where all layers read from the first step"},
		{uncut{naive}, p, nil, schedule.ErrDirection, "lays out layers one by one"},
	} {
		if _, _, err := rnn.Layout(c.tech, c.p, c.k); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.tech.Name(), err, c.want)
		}
	}
	if _, _, err := rnn.LayoutTraining(naive, p, nil, rnn.Optimizer{Carry: true}); !errors.Is(err, schedule.ErrDirection) {
		t.Errorf("states that are carried: %v", err)
	}
	if _, _, err := rnn.LayoutForward(naive, p, nil, true); !errors.Is(err, schedule.ErrDirection) {
		t.Errorf("states that are carried: %v", err)
	}
}

// TestBothWaysRunSideBySide: with several streams no operation of one way of a layer waits for
// the other way's. Each has half of the streams.
func TestBothWaysRunSideBySide(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Direction: rnn.BothWays}
	for _, c := range []struct {
		tech          string
		streams, used int
	}{{"cudnnstyle", 1, 1}, {"cudnnstyle", 2, 2}, {"cudnnstyle", 4, 4}, {"persistent", 2, 2}} {
		_, s, err := rnn.Layout(impl.Lookup(c.tech), p, knob.Params{"streams": c.streams})
		if err != nil {
			t.Fatal(err)
		}
		used, waits := map[int]bool{}, 0
		for _, n := range s.Nodes {
			used[n.Stream] = true
			for _, w := range n.Wait {
				if half := (c.streams + 1) / 2; c.streams > 1 && (n.Stream < half) != (s.Nodes[w].Stream < half) {
					waits++
				}
			}
		}
		if len(used) != c.used || waits > 0 {
			t.Errorf("%s with %d streams uses %d and has %d waits of one way for the other", c.tech, c.streams, len(used), waits)
		}
	}
}

// TestManyRows runs more rows, steps times sequences, than a float32 counts exactly.
func TestManyRows(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a gigabyte")
	}
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := rnn.Problem{Cell: cell.RNNTanh, Input: 1, Hidden: 1, Layers: 1, Batch: 1<<15 + 1, Steps: 1 << 9, Direction: rnn.FromLast}
	plan, s, err := rnn.Layout(impl.Lookup("naive"), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	data := rnn.NewData(p, 1, 2, "normal")
	if err := plan.Write(prog, data); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	if dev, _, err := oracle.Check(plan, prog, oracle.Reference(data)); err != nil || !dev.OK() {
		t.Error(dev, err)
	}
}

// TestBothWaysBegin: on a device that launches operations, each way of a persistent layer has a
// stream by default. In all other directions defaults are the same on every device. So are the
// values that a tuner may try.
func TestBothWaysBegin(t *testing.T) {
	for _, c := range []struct {
		direction    rnn.Direction
		heads        int
		host, launch int // streams by default
	}{
		{rnn.FromFirst, 0, 1, 1}, {rnn.FromLast, 0, 1, 1}, {rnn.Alternating, 0, 1, 1}, {rnn.BothWays, 0, 1, 2},
		{rnn.FromFirst, 2, 12, 12}, {rnn.BothWays, 2, 8, 8}, {rnn.BothWays, 24, 64, 64},
	} {
		p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 24, Layers: 3, Batch: 2, Steps: 5, Direction: c.direction, Heads: c.heads}
		var values [2][]int
		for i, launched := range []bool{false, true} {
			v := knob.Find(rnn.KnobsOf(impl.Lookup("persistent"), p, launched), "streams").Values
			if want := []int{c.host, c.launch}[i]; v[0] != want {
				t.Errorf("%v: %d streams by default, want %d", p, v[0], want)
			}
			values[i] = slices.Sorted(slices.Values(v))
		}
		if !slices.Equal(values[0], values[1]) || len(slices.Compact(slices.Clone(values[0]))) != len(values[0]) {
			t.Errorf("%v: values %v, and %v where launched", p, values[0], values[1])
		}
	}
}

// TestBothWaysShareTheGPU: by default both ways of most layers fit an H200 together. Blocks that
// wait for each other start together, as a cluster or over the GPU. So neither way can hold part of
// what the other needs, and two kernels on two streams cannot deadlock.
func TestBothWaysShareTheGPU(t *testing.T) {
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const sms = 132 // multiprocessors of an H200
	sizes := []int{96, 128, 256, 384, 512, 768, 1024, 1536, 2048}
	if testing.Short() {
		sizes = []int{128, 512, 1536}
	}
	together, all := 0, 0
	for i, hidden := range sizes {
		for j, batch := range []int{1, 16, 64} {
			p := rnn.Problem{
				Cell: []*cell.Cell{cell.LSTM, cell.GRU}[(i+j)%2], Input: 60, Hidden: hidden, Layers: 1, Batch: batch, Steps: 100,
				Direction: rnn.BothWays, Pass: []rnn.Pass{rnn.Forward, rnn.Train}[i%2], Precision: []rnn.Precision{rnn.FP32, rnn.BF16}[j%2],
			}
			streams := knob.Find(rnn.KnobsOf(impl.Lookup("persistent"), p, true), "streams").Values[0]
			if all++; largestKernel(t, d, p, streams) <= sms/2 {
				together++
			}
		}
	}
	if together <= all/2 {
		t.Errorf("both ways fit together in %d of %d cases", together, all)
	}
}

// largestKernel returns the number of multiprocessors that p's largest persistent kernel takes with
// the given streams.
func largestKernel(t *testing.T, d *cuda.Device, p rnn.Problem, streams int) (most int) {
	t.Helper()
	_, s, err := rnn.Layout(impl.Lookup("persistent"), p, knob.Params{"streams": streams})
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.Explain(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range e.Kernels {
		if k.Group.Blocks == 0 {
			continue
		}
		most = max(most, k.Grid[0])
		if !k.Group.Spread && k.Group.Blocks > 1 && k.Cluster != k.Group.Blocks {
			t.Errorf("%v: the blocks of a group of %s may start one by one: %+v", p, k.Name, k.Group)
		}
	}
	if most == 0 {
		t.Errorf("%v: no kernel keeps weights on chip", p)
	}
	return most
}
