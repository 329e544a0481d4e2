package rival_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/device"
	"rnnbench/internal/python"
	"rnnbench/rival"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// adapter is one of the rivals that come with the program.
type adapter struct {
	cells      []string
	precisions []rnn.Precision
	directions []rnn.Direction
	lengths    bool     // sequences may have lengths of their own
	projects   []string // cells that may have a projection
	resets     bool     // sequences may begin anew
	heads      bool     // layers may have heads
	norms      []string // cells whose products may be normalised
	inference  bool     // it runs no training
	calls      bool     // layers may be called step by step
	other      string   // a knob that has calls made in another way; "": none
	knobs      knob.Params
	command    []string
}

// TestPyTorch compares rivals/pytorch.py with the reference, where PyTorch is installed.
func TestPyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("loading PyTorch takes seconds")
	}
	p := python.Torch()
	if p == "" {
		t.Skip(python.NoTorch)
	}
	hold(t, adapter{
		cells: []string{"rnn-tanh", "rnn-relu", "gru", "lstm"}, precisions: []rnn.Precision{rnn.FP32, rnn.BF16},
		directions: []rnn.Direction{rnn.FromFirst, rnn.BothWays}, lengths: true, projects: []string{"lstm"}, resets: true, norms: []string{"lstm", "gru", "rnn-tanh"},
		calls: true, other: "layers", command: []string{p, "../rivals/pytorch.py"},
	})
}

// TestVersion: a version of PyTorch says so where it multiplies by a generic BLAS, unless a fast one is loaded in its place.
func TestVersion(t *testing.T) {
	if exec.Command("python3", "-c", "pass").Run() != nil {
		t.Skip("there is no python3 here")
	}
	for args, want := range map[string]string{
		`"2.11.0", "BLAS_INFO=mkl, LAPACK_INFO=mkl", []`:                                                     "2.11.0",
		`"1.13.0", "BLAS_INFO=generic, USE_CUDA=OFF", ["/usr/lib/x/blas/libblas.so.3"]`:                      "1.13.0 (generic BLAS)",
		`"1.13.0", "BLAS_INFO=generic, USE_CUDA=OFF", ["/usr/lib/x/openblas-pthread/libblas.so.3", "/libc"]`: "1.13.0",
	} {
		cmd := exec.Command("python3", "-c", "import sys; sys.path.insert(0, '../rivals'); sys.dont_write_bytecode = True; import protocol; print(protocol.version("+args+"))")
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %s, %v, want %s", args, out, err, want)
		}
	}
}

// standIn is the command of an adapter whose package is a stand-in: it computes on a processor, by PyTorch.
func standIn(t *testing.T, adapter string) []string {
	if testing.Short() {
		t.Skip("loading PyTorch takes seconds")
	}
	p := python.Torch()
	if p == "" {
		t.Skip(python.NoTorch)
	}
	return []string{p, "testdata/standins/run.py", adapter}
}

// TestSaid: an exception of a compiler is told by its message, not by the program that it quotes.
func TestSaid(t *testing.T) {
	if exec.Command("python3", "-c", "pass").Run() != nil {
		t.Skip("there is no python3 here")
	}
	for program, want := range map[string]string{
		`e = ValueError("two\nlines")`:                                    "ValueError: two\nlines",
		`e = ValueError("at 3:4:\n  x = load(p)\n      ^\nno such type")`: "ValueError: no such type (at 3:4: x = load(p))",
		`e = ValueError("at 3:4:\n  x = tanh(p)\n      ^"); e.__cause__ = ValueError("at 1:2:\n  y = exp(p)\n      ^\nfp32 only")`: "ValueError: fp32 only (at 1:2: y = exp(p))",
		`e = ValueError("at 3:4:\n  x = tanh(p)\n      ^")`:                                                                        "ValueError: no message (at 3:4: x = tanh(p))",
	} {
		cmd := exec.Command("python3", "-c", "import sys; sys.path.insert(0, '../rivals'); sys.dont_write_bytecode = True; import protocol; "+program+"; print(protocol.said(e), end='')")
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: %q, want %q (%v)", program, out, want, err)
		}
	}
}

// TestFlashRNN compares rivals/flash_rnn.py with the reference: the layouts of each backend, the order of
// gates, heads, gradients, and an slstm whose states begin where FlashRNN's do not. Each backend declines what
// it cannot do.
func TestFlashRNN(t *testing.T) {
	a := adapter{
		cells: []string{"lstm", "gru", "rnn-tanh", "slstm"}, precisions: []rnn.Precision{rnn.FP32, rnn.BF16}, directions: []rnn.Direction{rnn.FromFirst},
		heads: true, command: standIn(t, "flash_rnn.py"), knobs: knob.Params{"backend": 1},
	}
	hold(t, a)
	r := opened(t, rival.Options{Name: "flashrnn", Command: a.command, On: device.Info{Name: "cpu", Key: "cpu-test", Workers: 1}})
	holdForms(t, r, rnn.Problem{Input: 7, Hidden: 12, Layers: 2, Batch: 3, Steps: 6, Heads: 3, Precision: rnn.BF16}, []form{
		{knob.Params{"backend": 0}, []*cell.Cell{cell.LSTM, cell.RNNTanh, cell.SLSTM}, []*cell.Cell{cell.GRU}, "cuda_fused has no gru: it would run cuda in its place"},
		{knob.Params{"backend": 2}, []*cell.Cell{cell.LSTM, cell.SLSTM}, []*cell.Cell{cell.GRU, cell.RNNTanh}, "triton_fused has lstm and slstm alone"},
		{knob.Params{"backend": 1, "given": 1}, nil, []*cell.Cell{cell.LSTM}, "the product of an upper layer is not given"},
	})
	holdForms(t, r, rnn.Problem{Input: 7, Hidden: 5, Layers: 1, Batch: 1, Steps: 3}, []form{
		{knob.Params{"backend": 0}, nil, []*cell.Cell{cell.LSTM}, "cuda_fused rounds factors of float32 to tf32: ask for tf32"},
		{knob.Params{"backend": 1, "given": 1}, []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh, cell.SLSTM}, nil, ""},
	})
}

// TestTorchRL compares rivals/torch_rl.py with the reference, with resets and without.
func TestTorchRL(t *testing.T) {
	a := adapter{
		cells: []string{"gru", "lstm"}, precisions: []rnn.Precision{rnn.FP32, rnn.BF16}, directions: []rnn.Direction{rnn.FromFirst},
		resets: true, command: standIn(t, "torch_rl.py"),
	}
	hold(t, a)
	r := opened(t, rival.Options{Name: "torchrl", Command: a.command, On: device.Info{Name: "cpu", Key: "cpu-test", Workers: 1}})
	both := []*cell.Cell{cell.GRU, cell.LSTM}
	p := rnn.Problem{Input: 6, Hidden: 10, Layers: 2, Batch: 4, Steps: 9, Resets: 20}
	holdForms(t, r, p, []form{
		{knob.Params{"backend": 1}, both, nil, ""},
		{knob.Params{"backend": 2}, both, nil, ""},
		{knob.Params{"ieee": 1}, both, nil, ""},
		{knob.Params{"narrow": 1}, nil, both, "narrow is for triton in bf16"},
		{knob.Params{"backend": 1, "graph": 1}, nil, both, "pad reads resets on the host, which no CUDA graph can"},
	})
	p.Precision = rnn.BF16
	holdForms(t, r, p, []form{
		{knob.Params{"backend": 1}, both, nil, ""},
		{knob.Params{"narrow": 1}, both, nil, ""},
		{knob.Params{"ieee": 1}, nil, both, "ieee is for triton's fp32 products"},
	})
}

// A form is a setting of a rival's knobs, with cells that it computes and others that it declines.
type form struct {
	knobs     knob.Params
	does, not []*cell.Cell
	why       string
}

// holdForms checks both passes of p in each form.
func holdForms(t *testing.T, r *rival.Rival, p rnn.Problem, forms []form) {
	for _, f := range forms {
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			p.Pass = pass
			for _, c := range f.does {
				p.Cell = c
				if dev, err := compute(r, p, f.knobs); err != nil || !dev.OK() {
					t.Errorf("%v, %v: %v, %v", p, f.knobs, dev, err)
				}
			}
			for _, c := range f.not {
				p.Cell = c
				if _, err := compute(r, p, f.knobs); !errors.Is(err, schedule.ErrLibrary) || !strings.Contains(err.Error(), f.why) {
					t.Errorf("%v, %v: %v", p, f.knobs, err)
				}
			}
		}
	}
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
	before := cells.Inners()[0] // the one that ONNX has
	hold(t, adapter{
		cells: []string{"rnn-tanh", "rnn-relu", "gru", before.Name, "lstm", "lstm-peephole"}, precisions: []rnn.Precision{rnn.FP32},
		directions: []rnn.Direction{rnn.FromFirst, rnn.FromLast, rnn.BothWays}, lengths: true, inference: true, calls: true, command: command,
	})
}

// hold checks every cell of an adapter at odd sizes, in both passes and called step by step. The adapter
// must decline cells, passes, directions, lengths, resets, heads, projections and calls that it does not list.
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
	for _, c := range slices.Concat(cell.All(), cells.Inners()) {
		for i, p := range []rnn.Problem{
			{Input: 1, Hidden: 1, Layers: 1, Batch: 1, Steps: 1},
			{Input: 13, Hidden: 17, Layers: 1, Batch: 3, Steps: 5},
			{Input: 19, Hidden: 19, Layers: 3, Batch: 2, Steps: 4},
			{Input: 7, Hidden: 33, Layers: 2, Batch: 5, Steps: 3},
			{Input: 5, Hidden: 9, Layers: 2, Batch: 6, Steps: 7, Lengths: "1+2*3+5+2*7"},
			{Input: 3, Hidden: 8, Layers: 1, Batch: 1, Steps: 4, Lengths: "4"},
			{Input: 13, Hidden: 17, Projection: 5, Layers: 1, Batch: 3, Steps: 5},
			{Input: 4, Hidden: 9, Projection: 8, Layers: 3, Batch: 2, Steps: 1},
			{Input: 6, Hidden: 10, Layers: 2, Batch: 4, Steps: 9, Resets: 20},
			{Input: 3, Hidden: 7, Layers: 1, Batch: 1, Steps: 5, Resets: 100},
			{Input: 7, Hidden: 12, Layers: 2, Batch: 3, Steps: 6, Heads: 3},
			{Input: 5, Hidden: 9, Projection: 4, Layers: 2, Batch: 6, Steps: 7, Lengths: "1+2*3+5+2*7"},
			{Input: 13, Hidden: 17, Norm: rnn.NormLayer, Layers: 2, Batch: 3, Steps: 5},
		} {
			if i > 0 && !slices.Contains(a.cells, c.Name) {
				break // sizes do not matter
			}
			for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
				for j, precision := range slices.Repeat(a.precisions, 4) {
					p.Cell, p.Pass, p.Precision, p.Direction = c, pass, precision, rnn.Direction(j/len(a.precisions))
					if p.Norm != "" && c.Norm() != nil {
						p.Cell = c.Norm()
					}
					dev, err := compute(r, p, a.knobs)
					known := slices.Contains(a.cells, c.Name) && slices.Contains(a.directions, p.Direction) && (a.lengths || p.Lengths == "") && (a.resets || p.Resets == 0) && (a.heads || p.Heads == 0) && (pass == rnn.Forward || !a.inference)
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
