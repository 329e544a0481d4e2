package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/internal/python"
	"rnnbench/rnn/torch"
)

func TestLookInside(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "explain -H 8 -B 2 -T 3 --layers 2 --no-limits")
	o.want(t, exit.Done, []string{"naive · lstm", "cudnnstyle · lstm", "critical path", "streams: 2"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3").want(t, exit.Done, []string{"lower bounds: "}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -o dump").want(t, exit.Done, []string{"matrix x 6×8", "s0"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -o dot").want(t, exit.Done, []string{"digraph"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -S 4").want(t, exit.Done, []string{"declined: naive runs on one stream"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -S 4 -o dot").want(t, exit.Error, nil, []string{"naive runs on one stream"})
	for _, line := range []string{"export -H 8 -B 2 -T 3 -f a.npz", "export -H 8 -B 2 -T 3 --pass train --impl reference -o b.npz", "export --point H=4,B=1,T=2 --cell gru --impl cudnnstyle:fused=0 -f c.npz"} {
		rnnbench(t, line).want(t, exit.Done, nil, []string{"wrote "})
	}
	for _, file := range []string{"a.npz", "b.npz", "c.npz"} {
		if data, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
			t.Errorf("%s: %v", file, err)
		}
	}
	rnnbench(t, "export -H 512 -B 1 -T 3 -f d.npz --max-memory 1MiB").want(t, exit.Error, nil, []string{"needs"})
}

// TestExportOfTheReference: the reference's answer is exported of networks alone that some technique computes. Of
// others it has none, or panics.
func TestExportOfTheReference(t *testing.T) {
	before, err := os.ReadFile("../../cells/gru-before.cell")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("gru-before.cell", before, 0o644); err != nil { // flags are split at spaces, as of a path
		t.Fatal(err)
	}
	for flags, why := range map[string]string{
		"--pass train --cell lstm-c --norm layer":                   "no layer of lstm-c with normalised products is published",
		"--pass train --cell ./gru-before.cell --norm layer":        "with normalised products is published",
		"--cell lstm --norm batch --lengths 1+3":                    "norm=batch goes with no lengths",
		"--cell gru --direction alternate --lookahead 2 --layers 2": "direction alternate reads later steps already",
		"--cell qrnn2 --onehot=true --pass train":                   "one-hot input supports only one",
	} {
		rnnbench(t, "export --impl reference -H 4 -B 2 -T 3 -f a.npz "+flags).want(t, exit.Usage, nil, []string{"reference: unsupported: ", why})
	}
}

// TestExportOfNewton: an iterative technique iterates until its states settle, as naive computes them. If the
// user's number of iterations is too few for that, nothing is written.
func TestExportOfNewton(t *testing.T) {
	t.Chdir(t.TempDir())
	const point = " --point H=9,I=7,B=3,T=23 --gain 200% "
	outputs := map[string][]float32{}
	for _, impl := range []string{"naive", "newton"} {
		rnnbench(t, "export --impl "+impl+" --cell rnn-tanh -f a.npz"+point).want(t, exit.Done, nil, []string{"by " + impl})
		data, err := os.ReadFile("a.npz")
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float32, 23*3*9)
		err = torch.ReadNPZ(bytes.NewReader(data), int64(len(data)), []torch.Place{{Name: "output", Shape: []int{23, 3, 9}, Values: values}})
		if err != nil {
			t.Fatal(err)
		}
		outputs[impl] = values
	}
	for i, want := range outputs["naive"] {
		if got := outputs["newton"][i]; math.Abs(float64(got-want)) > 1e-5 {
			t.Fatalf("output %d is %g, not %g", i, got, want)
		}
	}
	rnnbench(t, "export --impl newton:iterations=3 --cell rnn-tanh -f b.npz"+point).want(t, exit.Error, nil, []string{"after 3 iterations the states of newton still change", "leave iterations out"})
	if _, err := os.Stat("b.npz"); err == nil {
		t.Error("b.npz was written")
	}
}

// TestExportForPyTorch: scripts/check-pytorch.py agrees with exports of networks that torch.nn has, of those that it
// has not, of other cells and of 16 bits.
func TestExportForPyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("loading PyTorch takes seconds")
	}
	p := python.Torch()
	if p == "" {
		t.Skip(python.NoTorch)
	}
	script, err := filepath.Abs("../../scripts/check-pytorch.py")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	args := []string{"-B", script, "--files"}
	for i, flags := range []string{
		"--cell lstm --point H=8,I=5,B=3,T=6,L=2,O=4 --direction both --lengths 6+2+4 --impl cudnnstyle",
		"--cell gru --point H=8,I=5,B=3,T=6,L=3,O=4 --direction alternate --symbols 6 --embedding 3 --skip 1",
		"--cell rnn-relu --point H=8,I=5,B=3,T=6,L=2 --direction both --norm batch --impl persistent",
		"--cell lstm --point H=8,I=5,B=3,T=6,L=2 --norm layer",
		"--cell lstm-peephole --point H=8,I=5,B=3,T=6,L=2 --projection 5 --lengths 6+2+4",
		"--cell slstm --point H=8,I=5,B=3,T=6 --heads 2 --direction reverse",
		"--cell qrnn2 --point H=8,I=9,B=3,T=12,L=2,O=5 --conv 2x3x4/2 --lookahead 3 --skip 1 --dense 7 --transcript 4 --impl reference",
		"--cell lstm --point H=8,I=5,B=3,T=6 --precision bf16 --impl cudnnstyle",
	} {
		file := fmt.Sprintf("%d.npz", i)
		rnnbench(t, "export --pass train -f "+file+" "+flags).want(t, exit.Done, nil, []string{"wrote "})
		args = append(args, file)
	}
	if out, err := exec.Command(p, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "8 of 8 answers agree") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestExportInterrupted: an interrupted export leaves no partial file, and an existing file as it
// was.
func TestExportInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.npz", []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, strings.Fields("export -H 8 -B 2 -T 3 -f a.npz"), strings.NewReader(""), &stdout, &stderr); code != exit.Interrupted || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d:\n%s", code, &stderr)
	}
	if data, err := os.ReadFile("a.npz"); err != nil || string(data) != "before" {
		t.Errorf("the file has %d bytes now, %v", len(data), err)
	}
	if all, err := os.ReadDir("."); err != nil || len(all) != 1 {
		t.Errorf("left: %v, %v", all, err)
	}
}
