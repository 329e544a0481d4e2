package main

import (
	"encoding/json"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/explain"
)

const onH200 = "explain --machine h200 --point cell=lstm,H=512,B=16,T=100 --precision bf16"

// TestExplainMachine: without a GPU, explain says which kernel runs a layer on one, which others
// could run, and why they do not.
func TestExplainMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, onH200+" --impl persistent").want(t, exit.Done, []string{
		"persistent_mma_lstm_512", "units per warp: 8, ", "registers and spills are unknown: without a GPU, kernels are not compiled", "predicted time of the persistent layers: ",
		"floor: a run takes at least 30.0 µs, by exchange", "floor: exchange: 100 steps of 300 ns take 30.0 µs", "floor: multiply-adds: 6.71 GFLOP at 781 TFLOP/s", "Variants for an lstm layer of 512 units, 16 sequences, 100 steps", "runs", "expected to be ", "runner-up mma-poll: a group is ",
		"does not fit: whole rows of 512 columns", "resident=3 asks for it",
		"cluster 16", "spread 64", "source of mma: device/cuda/persistent/kernels/mma.cu, mma_layer", "(100 steps of ", " to start and end) by the model",
	}, nil)
	if out := rnnbench(t, onH200+" --impl persistent").out; strings.Contains(out, "each worker") || strings.Contains(out, "bands of units") {
		t.Errorf("a GPU is explained by the model of a CPU: %s", out)
	}
	rnnbench(t, onH200+" --impl persistent:resident=2").want(t, exit.Done, []string{"runner-up mma: a group is 64 blocks", "resident=2 (grid) rules it out"}, nil)
	rnnbench(t, onH200+" --impl persistent --passes").want(t, exit.Done, []string{"elements", "matrices stored as", "layers", "mma 16×256", "nothing"}, nil)
	rnnbench(t, "explain --machine h200 --point H=64,B=2,T=3 --impl naive,cudnnstyle,scc").want(t, exit.Done, []string{"Kernels of one run", "library"}, nil)
	rnnbench(t, "explain --machine h200 --point H=8192,B=16,T=3 --precision fp32 --impl persistent").want(t, exit.Done, []string{"declined: ", "does not fit: ", "no groups of blocks fit"}, nil)
	rnnbench(t, "explain --machine h200 --point cell=gilr,H=64,B=2,T=3 --impl scan -o dump").want(t, exit.Done, []string{"matrix"}, nil)
}

// TestExplainJSON: the JSON output says the same.
func TestExplainJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, onH200+" --pass train --impl persistent -o json")
	var all []explain.Explanation
	if err := json.Unmarshal([]byte(o.out), &all); err != nil || len(all) != 1 {
		t.Fatalf("%v of %s", err, o.out)
	}
	e := all[0]
	if len(e.Choices) != 2 || e.Choices[0].Runs.Variant != "mma" || e.Choices[1].Runs.Variant != "backward-mma" || e.Choices[1].Others[0].Step == nil {
		t.Errorf("choices are %+v", e.Choices)
	}
	for _, c := range e.Choices {
		if c.Runs.Group == nil || c.Runs.Source == nil || c.Runs.Start == nil {
			t.Errorf("what runs is %+v", c.Runs)
		}
	}
	if e.Expected == nil || e.Expected.Part != record.PartPersistent || e.Floor == nil || e.Floor.Seconds >= e.Expected.Seconds || e.Floor.Bound != "exchange" || e.Floor.Error == nil {
		t.Errorf("%+v is expected, and the floor is %v", e.Expected, *e.Floor)
	}
	launches := 0
	for _, k := range e.Kernels {
		if k.Variant != nil && (*k.Variant == "mma" || *k.Variant == "backward-mma") {
			if launches += k.Launches; k.Registers != nil || k.Grid == nil || k.Shared == nil {
				t.Errorf("a kernel is %+v", k)
			}
		}
	}
	if launches != 2 || len(e.Passes) == 0 {
		t.Errorf("%d persistent kernels among %+v; passes %+v", launches, e.Kernels, e.Passes)
	}
}

// TestExplainRefuses: invalid combinations of flags are errors.
func TestExplainRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ line, why string }{
		{onH200 + " --device cpu", "omit one of them"},
		{"explain --machine h20 --point H=8", `did you mean h200?`},
		{onH200 + " --run", "--run measures operations on CPUs only, not on cuda:0"},
		{"explain --point H=8,B=1,T=2 --impl naive --run -o dump", "--run goes with -o summary and -o json"},
		{"explain --point H=8,B=1,T=2 --impl naive --no-limits --passes", "name a GPU with --device cuda:0 or --machine h200"},
	} {
		rnnbench(t, c.line).want(t, exit.Usage, nil, []string{c.why})
	}
}

// TestExplainBeside: a last table compares several techniques, but not one, and not passes.
func TestExplainBeside(t *testing.T) {
	const at = "explain --no-limits --point H=8,B=2,T=3 --impl "
	o := rnnbench(t, at+"naive,cudnnstyle:fused=0,scan")
	o.want(t, exit.Done, []string{"Side by side", "declined: "}, nil)
	_, beside, _ := strings.Cut(o.out, "Side by side")
	for _, name := range []string{"naive", "cudnnstyle:fused=0"} {
		if !strings.Contains(beside, name) {
			t.Errorf("%s is not among\n%s", name, beside)
		}
	}
	if strings.Contains(beside, "scan") {
		t.Errorf("what is declined is set beside what runs:\n%s", beside)
	}
	for _, line := range []string{at + "naive", at + "naive,scan", onH200 + " --impl persistent,cudnnstyle --passes"} {
		if o := rnnbench(t, line); o.code != exit.Done || strings.Contains(o.out, "Side by side") {
			t.Errorf("%s: exit code %d: %s", line, o.code, o.out)
		}
	}
}

// TestExplainRun: --run measures the operations of each technique that runs.
func TestExplainRun(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = "explain --no-limits --run --point H=8,B=2,T=3 --threads 1 --impl naive,cudnnstyle,scan"
	rnnbench(t, line).want(t, exit.Done, []string{"declined: ", "Measured time of operations", "gemm 2×8×8", "outside", "Side by side"}, nil)
	var all []explain.Explanation
	if err := json.Unmarshal([]byte(rnnbench(t, line+" -o json").out), &all); err != nil || len(all) != 3 {
		t.Fatal(err, len(all))
	}
	for i, e := range all {
		if (e.Measured != nil) != (i < 2) {
			t.Errorf("%s: %+v", e.Label, e.Measured)
		}
	}
}

// TestInterpreted: a sweep and an explanation say that cells run without assembly.
func TestInterpreted(t *testing.T) {
	t.Chdir(t.TempDir())
	const at = " -H 8 -B 2 -T 3 --simd generic --impl naive,cudnnstyle"
	rnnbench(t, "explain --no-limits"+at).want(t, exit.Done, []string{"interpreted: the steps of lstm run operation by operation, without assembly of their own"}, nil)
	o := rnnbench(t, "sweep"+at+quickly)
	o.want(t, exit.Done, []string{"Interpreted (cells that run operation by operation, without assembly of their own): cudnnstyle."}, nil)
	rnnbench(t, "show -o jsonl --where impl=cudnnstyle").want(t, exit.Done, []string{`"interpreted"`}, nil)
	if o := rnnbench(t, "show -o jsonl --where impl=naive"); strings.Contains(o.out, `"interpreted"`) {
		t.Errorf("operations without cells are interpreted: %s", o.out)
	}
}
