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

// seed is that of the suite.
const seed = 5

// banded returns the training of a cell, and where its losses may lie.
func banded(t *testing.T, c *cell.Cell, precision rnn.Precision) (smoke.Case, smoke.Band) {
	t.Helper()
	k, err := smoke.Of(c, precision, seed)
	if err != nil {
		t.Fatal(err)
	}
	band, err := k.Band()
	if err != nil {
		t.Fatal(err)
	}
	return k, band
}

// TestSmoke: every technique learns each cell in each precision as double precision does. With
// -short every other cell has one precision, which differs from cell to cell.
func TestSmoke(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
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
			k, band := banded(t, c, precision)
			ran := 0
			for _, tech := range impl.Own() {
				curve, err := k.Train(context.Background(), d, tech)
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

// TestTranscripts: so does it where the loss is that of transcripts.
func TestTranscripts(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	k, err := smoke.Of(cell.GRU, rnn.FP32, seed)
	if err != nil {
		t.Fatal(err)
	}
	k.Data = "speech:phonemes=1:hop=18:bands=7:utterances=100"
	k.Problem.Input, k.Problem.Output, k.Problem.Transcript, k.Problem.Steps, k.Problem.Batch = 7, 15, 1, 25, 4
	band, err := k.Band()
	if err != nil {
		t.Fatal(err)
	}
	for _, tech := range impl.Own() {
		curve, err := k.Train(context.Background(), d, tech)
		if errors.Is(err, schedule.ErrUnsupported) {
			continue
		}
		if err == nil {
			err = band.Check(curve)
		}
		if err != nil {
			t.Errorf("%s: %v", tech.Name(), err)
		}
	}
}

// TestFaultsShow: a gradient that is 1 % too large puts the curve outside the band, whatever its
// parameter.
func TestFaultsShow(t *testing.T) {
	for i, c := range cell.All() {
		if testing.Short() && i%4 != 0 {
			continue
		}
		k, band := banded(t, c, rnn.FP32)
		curve, err := k.Reference(nil)
		if err == nil {
			err = band.Check(curve)
		}
		if err != nil {
			t.Errorf("%v: double precision itself: %v", c, err)
		}
		names, err := k.Parameters()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			curve, err := k.Reference(func(n string, grad []float64) {
				for i := range grad {
					if n == name {
						grad[i] *= 1.01
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if band.Outside(curve) == 0 {
				t.Errorf("%v: with the gradient of %s 1 %% too large, the curve lies within the band", c, name)
			}
		}
	}
}
