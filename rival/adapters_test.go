package rival_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/rival"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/schedule"
)

// adapter is one of the rivals that come with the program.
type adapter struct {
	cells      []string
	precisions []rnn.Precision
	directions []rnn.Direction
	lengths    bool       // sequences may have lengths of their own
	projects   []string   // cells that may have a projection
	norms      []string   // cells whose products may be normalised
	inference  bool       // it runs no training
	calls      bool       // layers may be called step by step
	other      string     // a knob that has calls made in another way; "": none
	file       *cell.Cell // a cell of a file of equations; nil: none
	command    []string
}

// tried are the cells that an adapter is asked for.
func (a adapter) tried() []*cell.Cell {
	list := slices.Concat(cell.All(), cell.Inners())
	if a.file != nil {
		list = append(list, a.file)
	}
	return list
}

// TestPyTorch compares rivals/pytorch.py with the reference, where PyTorch is installed.
func TestPyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("loading PyTorch takes seconds")
	}
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import torch, numpy").Run() == nil {
			hold(t, adapter{
				cells: []string{"rnn-tanh", "rnn-relu", "gru", "lstm"}, precisions: []rnn.Precision{rnn.FP32, rnn.BF16},
				directions: []rnn.Direction{rnn.FromFirst, rnn.BothWays}, lengths: true, projects: []string{"lstm"}, norms: []string{"lstm", "gru", "rnn-tanh"},
				calls: true, other: "layers", command: []string{python, "../rivals/pytorch.py"},
			})
			return
		}
	}
	t.Skip("no python3 here has PyTorch and NumPy: apt-get install python3-torch")
}

// TestJAX compares rivals/jax_scan.py with the reference, where JAX is installed.
func TestJAX(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling by XLA takes minutes")
	}
	if exec.Command("python3", "-c", "import jax, numpy").Run() != nil {
		t.Skip("python3 here has no JAX: pip install jax")
	}
	hold(t, adapter{
		cells:      []string{"rnn-tanh", "rnn-relu", "gru", "lstm", "gilr", "sru", "qrnn", "mingru", "rg-lru"},
		precisions: []rnn.Precision{rnn.FP32, rnn.BF16}, directions: []rnn.Direction{rnn.FromFirst, rnn.BothWays}, command: []string{"python3", "../rivals/jax_scan.py"},
	})
}

// TestOneDNN builds rivals/onednn and compares it with the reference, where oneDNN is installed.
func TestOneDNN(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling takes seconds")
	}
	header := exec.Command("c++", "-E", "-x", "c++", "-")
	header.Stdin = strings.NewReader("#include <oneapi/dnnl/dnnl.hpp>\n#include <omp.h>\n#if DNNL_VERSION_MAJOR != 2\n#error\n#endif\n")
	if err := header.Run(); err != nil {
		t.Skip("there is no C++ compiler, or no oneDNN 2.x: apt-get install g++ libdnnl-dev")
	}
	program := filepath.Join(t.TempDir(), "onednn")
	build := exec.Command("c++", "-std=c++17", "-O1", "-fopenmp", "-o", program, "../rivals/onednn/onednn.cpp", "-ldnnl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	hold(t, adapter{
		cells: []string{"rnn-tanh", "rnn-relu", "gru", "lstm", "lstm-peephole"}, precisions: []rnn.Precision{rnn.FP32}, directions: []rnn.Direction{rnn.FromFirst}, command: []string{program},
	})
}

// TestONNXRuntime compares rivals/onnx_runtime.py with the reference, where ONNX Runtime's library is.
func TestONNXRuntime(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of sessions take seconds")
	}
	command := []string{"python3", "../rivals/onnx_runtime.py"}
	r, err := rival.Open(rival.Options{Name: "adapter", Command: command, On: device.Info{Name: "cpu", Key: "cpu-test", Workers: 1}})
	if err != nil {
		t.Skip(err)
	}
	r.Close()
	const file = "../cells/gru-before.cell"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, err := equations.Parse(file, "gru-before", string(text))
	if err != nil {
		t.Fatal(err)
	}
	hold(t, adapter{
		cells: []string{"rnn-tanh", "rnn-relu", "gru", "gru-before", before.Name, "lstm", "lstm-peephole"}, precisions: []rnn.Precision{rnn.FP32},
		directions: []rnn.Direction{rnn.FromFirst, rnn.FromLast, rnn.BothWays}, lengths: true, inference: true, calls: true, file: before, command: command,
	})
}

// hold checks every cell of an adapter at odd sizes, in both passes and called step by step. The adapter
// must decline cells, passes, directions, lengths, projections and calls that it does not list.
func hold(t *testing.T, a adapter) {
	r, err := rival.Open(rival.Options{Name: "adapter", Command: a.command, On: device.Info{Name: "cpu", Key: "cpu-test", Workers: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Version() == "" {
		t.Error("it does not say its version")
	}
	holdCalls(t, r, a)
	for _, c := range a.tried() {
		for _, p := range []rnn.Problem{
			{Input: 1, Hidden: 1, Layers: 1, Batch: 1, Steps: 1},
			{Input: 13, Hidden: 17, Layers: 1, Batch: 3, Steps: 5},
			{Input: 19, Hidden: 19, Layers: 3, Batch: 2, Steps: 4},
			{Input: 7, Hidden: 33, Layers: 2, Batch: 5, Steps: 3},
			{Input: 5, Hidden: 9, Layers: 2, Batch: 6, Steps: 7, Lengths: "1+2*3+5+2*7"},
			{Input: 3, Hidden: 8, Layers: 1, Batch: 1, Steps: 4, Lengths: "4"},
			{Input: 13, Hidden: 17, Projection: 5, Layers: 1, Batch: 3, Steps: 5},
			{Input: 4, Hidden: 9, Projection: 8, Layers: 3, Batch: 2, Steps: 1},
			{Input: 5, Hidden: 9, Projection: 4, Layers: 2, Batch: 6, Steps: 7, Lengths: "1+2*3+5+2*7"},
			{Input: 13, Hidden: 17, Norm: rnn.NormLayer, Layers: 2, Batch: 3, Steps: 5},
		} {
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				for i, precision := range slices.Repeat(a.precisions, 4) {
					p.Cell, p.Pass, p.Precision, p.Direction = c, pass, precision, rnn.Direction(i/len(a.precisions))
					if p.Norm != "" && c.Norm() != nil {
						p.Cell = c.Norm()
					}
					dev, err := compute(r, p, nil)
					known := slices.Contains(a.cells, c.Name) && slices.Contains(a.directions, p.Direction) && (a.lengths || p.Lengths == "") && (pass == rnn.Forward || !a.inference)
					known = known && (p.Norm == "" || slices.Contains(a.norms, c.Name))
					switch known = known && (p.Projection == 0 || slices.Contains(a.projects, c.Name)); {
					case known && (err != nil || !dev.OK()):
						t.Errorf("%v: %v, %v", p, dev, err)
					case !known && !errors.Is(err, schedule.ErrUnsupported):
						t.Errorf("%v: it is not declined: %v", p, err)
					}
				}
			}
		}
	}
}
