package modelfile_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/python"
	"rnnbench/modelfile"
	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
)

// A truth is an input of a model's recurrent layer, and PyTorch's output for it.
type truth struct {
	Cell         string
	Steps, Batch int
	Input        []float32
	Output       []float64
}

// TestPyTorch: the layers of files that PyTorch wrote compute what it computes. testdata/models.py
// wrote them.
func TestPyTorch(t *testing.T) {
	if n := holdModels(t, "testdata"); n != 5 {
		t.Errorf("there are %d files, not 5", n)
	}
}

// TestPyTorchForms is TestPyTorch for every form and every kind of file, where PyTorch is.
func TestPyTorchForms(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	p := python.Torch()
	if p == "" {
		t.Skip(python.NoTorch)
	}
	dir := t.TempDir()
	if out, err := exec.Command(p, "testdata/models.py", dir, "all").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := holdModels(t, dir); n != 40*6+20 {
		t.Errorf("there are %d files, not %d", n, 40*6+20)
	}
}

// holdModels compares the files of a folder with what PyTorch computed, and returns their number.
func holdModels(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.pt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(strings.TrimSuffix(file, ".pt") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var want truth
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		l := only(t, file)
		if l.Name != "rnn.layer" {
			t.Errorf("%s: the layer is called %q", file, l.Name)
		}
		switch module := strings.HasPrefix(filepath.Base(file), "module"); {
		case module && (l.Point.Cell != want.Cell || l.Operator == "" || strings.Contains(l.Note, "tanh")):
			t.Errorf("%s: cell %s of operator %q, %s", file, l.Point.Cell, l.Operator, l.Note)
		case want.Cell == "rnn-relu":
			l.Point.Cell = want.Cell // no other file says it
		}
		if got := outputOf(t, l, want); len(got) != len(want.Output) {
			t.Errorf("%s: the output has %d values, not %d", file, len(got), len(want.Output))
		} else {
			for i, v := range got {
				if !(math.Abs(v-want.Output[i]) <= 1e-5) {
					t.Errorf("%s: output %d is %g, not %g", file, i, v, want.Output[i])
					break
				}
			}
		}
	}
	return len(files)
}

// outputOf computes the output of a layer for an input, from states of 0.
func outputOf(t *testing.T, l modelfile.Layer, in truth) []float64 {
	t.Helper()
	p := problemOf(t, l.Point)
	p.Steps, p.Batch = in.Steps, in.Batch
	d := rnn.NewData(p, 1, p.Batch, "normal")
	d.ClearStates()
	own := map[string][]float32{"x": in.Input}
	for _, v := range l.Tensors {
		own[v.Name] = v.Values
	}
	for _, v := range d.Tensors {
		if values, ok := own[v.Name]; ok {
			if n := copy(v.Values, values); n != len(v.Values) || n != len(values) {
				t.Fatalf("%s has %d values, not %d", v.Name, len(values), len(v.Values))
			}
			delete(own, v.Name)
		}
	}
	if len(own) > 0 {
		t.Fatalf("%v are not of the problem", own)
	}
	output := p.Named("h", p.Layers-1)
	if p.Direction == rnn.BothWays {
		output = "y"
	}
	for _, v := range oracle.Reference(d) {
		if v.Name == output {
			return v.Values
		}
	}
	t.Fatalf("the answer has no %s", output)
	return nil
}
