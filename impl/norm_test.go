package impl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// normalisers lists the techniques that can normalise products.
var normalisers = []string{"naive", "cudnnstyle"}

// TestNorm runs layers that normalise their products by each technique that can.
func TestNorm(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range normalisers {
		t.Run(name, func(t *testing.T) { impltest.Run(t, d, impl.Lookup(name), impltest.Normal(rnn.FP32)) })
	}
	t.Run("bf16", func(t *testing.T) {
		impltest.Run(t, d, impl.Lookup("cudnnstyle"), impltest.Normal(rnn.BF16))
	})
}

// TestEmulatedNorm runs them on the CUDA device without a GPU.
func TestEmulatedNorm(t *testing.T) {
	d := emulated(t)
	for i, name := range normalisers {
		for j, precision := range []rnn.Precision{rnn.FP32, rnn.BF16, rnn.FP16} {
			if problems := impltest.Normal(precision); testing.Short() {
				impltest.Run(t, d, impl.Lookup(name), problems[i+j:][:1])
			} else {
				impltest.Run(t, d, impl.Lookup(name), problems)
			}
		}
	}
}

// batchNormalisers lists the techniques that can normalise input products over the minibatch.
var batchNormalisers = []string{"cudnnstyle", "persistent", "scan", "newton"}

// TestBatchNorm runs layers that normalise their input products over the minibatch.
func TestBatchNorm(t *testing.T) {
	one, two := openWorkers(t)
	var techs []rnn.Technique
	for _, name := range batchNormalisers {
		techs = append(techs, impl.Lookup(name))
	}
	impltest.RunShared(t, one, two, techs, slices.Concat(impltest.BatchNormal(rnn.FP32), impltest.BatchNormal(rnn.BF16)), nil)
}

// TestEmulatedBatchNorm runs them on the CUDA device without a GPU.
func TestEmulatedBatchNorm(t *testing.T) {
	d := emulated(t)
	for i, name := range batchNormalisers {
		var problems []rnn.Problem
		for j, p := range slices.Concat(impltest.BatchNormal(rnn.FP32), impltest.BatchNormal(rnn.BF16), impltest.BatchNormal(rnn.FP16)) {
			if !testing.Short() || (i+j)%8 == 0 {
				problems = append(problems, p)
			}
		}
		impltest.Run(t, d, impl.Lookup(name), problems)
	}
}

// TestNormDeclines: cells without a published layer, other techniques, and what does not go with a norm
// are declined.
func TestNormDeclines(t *testing.T) {
	plain := rnn.Problem{Cell: cell.LSTM.Norm(), Norm: rnn.NormLayer, Input: 4, Hidden: 6, Layers: 1, Batch: 1, Steps: 2}
	headed, narrow, sru, batch := plain, plain, plain, plain
	batch.Norm, batch.Cell = rnn.NormBatch, cell.LSTM
	headed.Heads, narrow.Projection, sru.Cell = 2, 3, cell.SRU
	for _, c := range []struct {
		technique string
		problem   rnn.Problem
		want      string
	}{
		{"naive", batch, "only cudnnstyle, persistent, scan and newton"},
		{"naive", sru, "no layer of sru with normalised products is published"},
		{"naive", headed, "would mix the heads"},
		{"cudnnstyle", narrow, "both a projection and normalised products"},
		{"persistent", plain, "only naive and cudnnstyle"},
		{"scan", plain, "only naive and cudnnstyle"},
		{"scc", plain, "only naive and cudnnstyle"},
		{"cudnn", plain, "only naive and cudnnstyle"},
	} {
		_, _, err := rnn.Layout(impl.Lookup(c.technique), c.problem, nil)
		if !errors.Is(err, schedule.ErrNorm) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v", c.technique, c.problem, err)
		}
	}
}
