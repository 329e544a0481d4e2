package tuner

import (
	"runtime"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl/cudnnstyle"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
	"rnnbench/tuner/config"
)

// TestStepwiseMemory compares the estimated memory of the stepwise check of a long run with what it
// allocates.
func TestStepwiseMemory(t *testing.T) {
	SetReferenceFLOPs(t, 1e5)
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, p := range []rnn.Problem{
		{Cell: cell.LSTM, Input: 32, Hidden: 32, Layers: 2, Batch: 16, Steps: 500},
		{Cell: cell.GRU, Input: 16, Hidden: 32, Layers: 1, Batch: 8, Steps: 500, Pass: rnn.Train},
		{Cell: cell.LSTM, Input: 20, Hidden: 24, Layers: 1, Batch: 3, Steps: 500, OneHot: true, Output: 50, Pass: rnn.Train},
	} {
		plan, s, err := rnn.Layout(cudnnstyle.Technique{}, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := newVerification(p, config.Measure{Seed: 1, Data: "normal"}, new(answers))
		c := &candidate{Layout: &Layout{Problem: p, Plan: plan, Schedule: s}, input: v.data}
		w := &Sweep{Device: d}
		if err := w.load(c); err != nil {
			t.Fatal(err)
		}
		if _, err := c.prog.Run(1); err != nil {
			t.Fatal(err)
		}
		if err := v.checkStepwise(w, c, true); err != nil { // its measure of errors is oracle.MeasureBytes
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := v.checkStepwise(w, c, true); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		c.close()
		took, said := float64(after.TotalAlloc-before.TotalAlloc), float64(oracle.StepwiseBytes(p, v.data.Distinct)+oracle.LargestBytes(p))
		if said < took/2 || said > 2*took {
			t.Errorf("%v: %.3g bytes were allocated, and %.3g estimated", p, took, said)
		}
	}
}
