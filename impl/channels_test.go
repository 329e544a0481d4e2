package impl_test

import (
	"fmt"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/device/cpu/simd"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestScanOfFewChannels compares scans of few channels in many sequences with the reference, with
// gradients and at each instruction set. Some sequences do not fill a vector, and some are more than
// a worker runs at a time. Steps are one block or several, and sequences may begin anew.
func TestScanOfFewChannels(t *testing.T) {
	sizes := []struct{ hidden, batch, steps, resets int }{
		{1, 13, 9, 0}, {3, 37, 5, 0}, {2, 33, 6, 30}, {2, 270, 3, 0}, {5, 9, 40, 0}, {7, 4, 11, 20}, {8, 70, 3, 0}, {1, 2, 5, 0}, {4, 5, 3, 0},
	}
	for l := simd.Generic; l <= simd.Detect().Base(); l++ {
		d, err := cpu.Open(cpu.Options{Threads: 1 + int(l)%2, Level: &l, InTurn: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Run(l.String(), func(t *testing.T) { scanFewChannels(t, d, int(l), sizes) })
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// scanFewChannels runs half of the sizes with each cell, the other half at the next level; with -short a third.
func scanFewChannels(t *testing.T, d *cpu.Device, level int, sizes []struct{ hidden, batch, steps, resets int }) {
	for i, c := range cell.All() {
		if c.Recurrence == nil && c.Scanned == nil || c.Recurrent > 0 && c.Surrogate == nil {
			continue
		}
		for j, s := range sizes {
			every, at := 2, i+j+level
			if testing.Short() {
				every, at = 3, i+j
			}
			if at%every > 0 {
				continue
			}
			p := rnn.Problem{Cell: c, Input: 2, Hidden: s.hidden, Layers: 1 + j%2, Batch: s.batch, Steps: s.steps}
			if c.Window == 1 && c.Recurrent == 0 {
				p.Resets = s.resets
			}
			for _, p.Pass = range []rnn.Pass{rnn.Forward, rnn.Train} {
				t.Run(fmt.Sprint(p.Resets), func(t *testing.T) {
					impltest.Run(t, d, impl.Lookup("scan"), []rnn.Problem{p})
				})
			}
		}
	}
}
