package tuner_test

import (
	"context"
	"testing"

	"rnnbench/record"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// deepNetwork is a network of so many normalised layers as Diamos et al. have, narrow, whose check covers few steps.
func deepNetwork(layers int) record.Point {
	return record.Point{Cell: "rnn-relu", Pass: "train", Input: 9, Hidden: 20, Layers: layers, Batch: 4, Steps: 20, Precision: "fp32", Skip: 4, Lookahead: 3, Norm: "batch", Output: 7, Transcript: 4}
}

// TestDeepNormalisedNetworks: networks of 72 and 88 normalised layers, which amplify rounding, are found right by
// checks of three steps.
func TestDeepNormalisedNetworks(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 1e6)
	for _, layers := range []int{72, 88} {
		if testing.Short() && layers > 72 {
			continue
		}
		recs, err := sweep(t, once(&tuner.Sweep{Device: open(t)}), context.Background(), []record.Point{deepNetwork(layers)}, specs(t, "cudnnstyle", "persistent"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			if r.Status != record.OK || r.Verify.Steps != 3 || r.Verify.Method != record.VerifyShorter {
				t.Errorf("%d layers by %s: %s, %+v", layers, r.Impl.Label, r.Status, r.Verify)
			}
		}
	}
}

// TestFaultsOfDeepNetworks: faults of a hundredth in one of 72 layers are found.
func TestFaultsOfDeepNetworks(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 1e6)
	scale := func(_ *schedule.Matrix, v []float32) {
		for i := range v {
			v[i] *= 1.01
		}
	}
	for matrix, spoil := range map[string]func(*schedule.Matrix, []float32){
		"h40": scale, "dW40": scale, "dR70": scale, "dx": scale,
		"h71": func(_ *schedule.Matrix, v []float32) { v[len(v)-1] += 0.01 },
	} {
		d := &faulty{Device: open(t), matrix: matrix, spoil: spoil}
		recs, err := sweep(t, once(&tuner.Sweep{Device: d}), context.Background(), []record.Point{deepNetwork(72)}, specs(t, "persistent"))
		if err != nil {
			t.Fatal(err)
		}
		if r := recs[0]; r.Status != record.Incorrect {
			t.Errorf("a fault in %s is %s: %+v", matrix, r.Status, r.Verify)
		}
	}
}
