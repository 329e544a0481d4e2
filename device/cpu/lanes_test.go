package cpu_test

import (
	"errors"
	"fmt"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/impl/scan"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// eachLevel calls f with devices of every level of this machine and several numbers of workers.
func eachLevel(t *testing.T, f func(t *testing.T, d *cpu.Device)) {
	for level := simd.Generic; level <= simd.Detect().Base(); level++ {
		for _, threads := range []int{1, 3} {
			d, err := cpu.Open(cpu.Options{Threads: threads, Level: &level, InTurn: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%v/threads=%d", level, threads), func(t *testing.T) { f(t, d) })
			d.Close()
		}
	}
}

// TestScanInLanesIsRight computes h = a∘h + x and its gradients with time cut into lanes: as many as
// are chosen, none, whole vectors of them, and odd numbers, also more than there are steps.
func TestScanInLanesIsRight(t *testing.T) {
	sizes := [][3]int{{1, 1, 1}, {63, 1, 1}, {64, 1, 1}, {4099, 1, 1}, {517, 3, 2}, {300, 2, 5}, {131, 5, 7}, {67, 2, 37}}
	eachLevel(t, func(t *testing.T, d *cpu.Device) {
		for _, size := range sizes {
			r := newRecurrence(t, size[0], size[1], size[2], true)
			for _, lanes := range []int{0, 1, 2, 7, 8, 16, 48, 64} {
				t.Run(fmt.Sprintf("%v/lanes=%d", size, lanes), func(t *testing.T) { r.check(t, d, knob.Params{"scanlanes": lanes}) })
			}
		}
	})
}

// TestLayersInLanes compares layers of few channels with the float64 reference: every kind of linear
// recurrence, both directions, whose outputs lie between each other, sequences of several lengths,
// and resets, which run without lanes.
func TestLayersInLanes(t *testing.T) {
	cells := []*cell.Cell{cell.GILR, cell.SRU, cell.QRNN2, cell.LSLSTM, cell.MinGRU, cell.RGLRU, unassembled(cell.SRU)}
	eachLevel(t, func(t *testing.T, d *cpu.Device) {
		for i, c := range cells {
			for _, p := range []rnn.Problem{
				{Cell: c, Input: 3, Hidden: 1 + i%3, Layers: 1, Batch: 1, Steps: 131},
				{Cell: c, Input: 2, Hidden: 2, Layers: 2, Batch: 3, Steps: 101, Direction: rnn.BothWays},
				{Cell: c, Input: 2, Hidden: 3, Layers: 1, Batch: 2, Steps: 140, Resets: 2},
				{Cell: c, Input: 2, Hidden: 1, Layers: 1, Batch: 4, Steps: 200, Lengths: "uniform:50%@7"},
			} {
				for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
					p.Pass = pass
					t.Run(fmt.Sprint(p), func(t *testing.T) { checkLayer(t, d, p) })
				}
			}
		}
	})
}

// checkLayer compares a layer that runs as scans with the reference.
func checkLayer(t *testing.T, d *cpu.Device, p rnn.Problem) {
	data := rnn.NewData(p, 1, 1, "normal")
	plan, s, err := rnn.Layout(scan.Technique{}, p, knob.Params{"inputbatch": 0})
	if errors.Is(err, schedule.ErrUnsupported) { // resets of some cells
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	prog, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, data), prog.Prepare()); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	deviation, _, err := oracle.Check(plan, prog, oracle.Reference(data))
	if err != nil || !deviation.OK() {
		t.Fatal(err, deviation)
	}
}
