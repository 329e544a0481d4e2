package smoke_test

import (
	"context"
	"errors"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
	"rnnbench/train/smoke"
)

// TestSmoke: every technique learns each cell in each precision as double precision does. With
// -short every other cell has one precision, which differs from cell to cell.
func TestSmoke(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	precisions := []rnn.Precision{rnn.FP32, rnn.BF16, rnn.FP16}
	for i, c := range cell.All() {
		for j, precision := range precisions {
			if testing.Short() && (i%2 != 0 || i/2%len(precisions) != j) {
				continue
			}
			band, ran := smoke.NewBand(c, precision), 0
			for _, tech := range impl.Own() {
				curve, err := smoke.Train(context.Background(), d, tech, c, precision)
				if errors.Is(err, schedule.ErrUnsupported) {
					continue
				}
				if err == nil {
					err = band.Check(curve)
				}
				if err != nil {
					t.Errorf("%s, %v in %v: %v", tech.Name(), c, precision, err)
				}
				ran++
			}
			if ran == 0 {
				t.Errorf("no technique trains %v in %v", c, precision)
			}
		}
	}
}

// TestFaultsShow: a gradient that is 1 % too large puts the curve outside the band, whichever
// parameter's it is.
func TestFaultsShow(t *testing.T) {
	for i, c := range cell.All() {
		if testing.Short() && i%4 != 0 {
			continue
		}
		band := smoke.NewBand(c, rnn.FP32)
		if err := band.Check(smoke.Reference(c, nil)); err != nil {
			t.Errorf("%v: double precision itself: %v", c, err)
		}
		for _, name := range smoke.Parameters(c) {
			curve := smoke.Reference(c, func(n string, grad []float64) {
				for i := range grad {
					if n == name {
						grad[i] *= 1.01
					}
				}
			})
			if band.Outside(curve) == 0 {
				t.Errorf("%v: with the gradient of %s 1 %% too large, the curve lies within the band", c, name)
			}
		}
	}
}
