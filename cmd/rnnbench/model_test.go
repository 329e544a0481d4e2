package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/tuner/bench"
)

// TestModel predicts for built-in machines, one from a file, and this one.
func TestModel(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "model titanx -H 1152 -B 4 --variant all").want(t, exit.Done, []string{"24×1", "registers", "latency", "fp16"}, nil)
	dir, was := t.TempDir(), bench.MachinesFolder
	bench.MachinesFolder = func() string { return dir }
	defer func() { bench.MachinesFolder = was }()
	rnnbench(t, "doctor --threads 2 --machine here.toml").want(t, exit.Done, []string{"barrier", "L2", "products"}, []string{"wrote here.toml"})
	if kept, err := filepath.Glob(filepath.Join(dir, "cpu-*-2t-*.toml")); err != nil || len(kept) != 1 {
		t.Errorf("doctor kept %v for the floors of sweeps, %v", kept, err)
	}
	machines := []string{"here.toml", "", "here", "--threads 1"}
	if testing.Short() {
		machines = machines[:2] // the others measure this machine once more
	}
	for _, machine := range machines {
		rnnbench(t, "model "+machine+" --cell lstm -H 64,4096 -B 1").want(t, exit.Done, []string{"lstm", "DRAM"}, nil)
	}
	o := rnnbench(t, "model h200 -H 512 -B 1,16 --precision bf16 -o json")
	var rows []struct {
		Batch                                     int
		Resident                                  bool
		Step, Compute, Weights, Exchange, Latency float64
		FLOPS                                     float64 `json:"flops_per_s"`
		Seconds                                   float64 `json:"step_s"`
	}
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%v: %s", err, o.out)
	}
	for _, r := range rows {
		if flops := 2 * 512 * 512 * float64(r.Batch); !r.Resident || r.FLOPS*r.Seconds < 0.999*flops || r.FLOPS*r.Seconds > 1.001*flops {
			t.Errorf("%+v", r)
		}
	}
	for line, want := range map[string]string{
		"model titany":                  "unknown machine or file",
		"model titanx k40":              "takes one machine",
		"model titanx --variant halv":   "did you mean",
		"model titanx -H 0":             "hidden",
		"model titanx --cell gilr -H 8": "no recurrent product",
	} {
		rnnbench(t, line).want(t, exit.Usage, nil, []string{want})
	}
	if err := os.WriteFile("bad.toml", []byte("name = \"x\"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "model bad.toml").want(t, exit.Usage, nil, []string{"flops is 0", "bad.toml"})
	text, err := os.ReadFile("here.toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("cut.toml", text[:bytes.LastIndex(text, []byte("x = "))], 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "model cut.toml").want(t, exit.Usage, nil, []string{"level DRAM has no m", "cut.toml"})
	rnnbench(t, "doctor --machine no/such/folder.toml").want(t, exit.Error, nil, []string{"cannot write"})
}
