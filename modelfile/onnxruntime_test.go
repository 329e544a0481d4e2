package modelfile

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/oracle"
)

// updateONNX writes the models of testdata/onnx anew, with the answers of ONNX Runtime:
//
//	npm install --ignore-scripts onnxruntime-node
//	RNNBENCH_ONNXRUNTIME=$PWD/node_modules go test ./modelfile -run TestONNXRuntime -update-onnx
var updateONNX = flag.Bool("update-onnx", false, "rewrite testdata/onnx")

// An onnxAnswer is what ONNX Runtime was given and computed.
type onnxAnswer struct {
	In, Out map[string][]float32
}

// TestONNXRuntime: the reference with a layer's tensors computes what ONNX Runtime computed. Where the
// environment variable RNNBENCH_ONNXRUNTIME names a folder node_modules with onnxruntime-node, it
// also runs models of random sizes.
func TestONNXRuntime(t *testing.T) {
	const folder = "testdata/onnx"
	modules := os.Getenv("RNNBENCH_ONNXRUNTIME")
	if *updateONNX {
		writeONNX(t, folder, rand.New(rand.NewPCG(1, 1)), func(*rand.Rand) onnxSizes { return onnxSizes{3, 2, 3, 5} })
		runONNX(t, folder, modules)
	}
	checkONNX(t, folder)
	if modules == "" {
		t.Log("RNNBENCH_ONNXRUNTIME is not set: only the stored models were checked")
		return
	}
	for seed := range uint64(8) {
		dir := t.TempDir()
		writeONNX(t, dir, rand.New(rand.NewPCG(seed, 2)), func(rng *rand.Rand) onnxSizes {
			return onnxSizes{1 + rng.IntN(9), 1 + rng.IntN(5), 1 + rng.IntN(40), 1 + rng.IntN(40)}
		})
		runONNX(t, dir, modules)
		checkONNX(t, dir)
	}
}

func writeONNX(t *testing.T, dir string, rng *rand.Rand, sizes func(*rand.Rand) onnxSizes) {
	t.Helper()
	for _, s := range onnxSpecs {
		if err := os.WriteFile(filepath.Join(dir, s.name+".onnx"), s.build(rng, sizes(rng)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range foldModels {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("fold-%d.onnx", i)), foldModel(rng), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func runONNX(t *testing.T, dir, modules string) {
	t.Helper()
	out, err := exec.Command("node", "testdata/onnx/run.js", dir, modules).Output()
	if err != nil {
		text := ""
		if e, ok := err.(*exec.ExitError); ok {
			text = string(e.Stderr)
		}
		t.Fatalf("%v: %s", err, text)
	}
	if err := os.WriteFile(filepath.Join(dir, "answers.json"), out, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkONNX compares all models of a folder.
func checkONNX(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]onnxAnswer
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	if n := len(onnxSpecs) + foldModels; len(answers) != n {
		t.Errorf("%s has answers to %d models, not %d", dir, len(answers), n)
	}
	checkFolds(t, dir, answers)
	for _, s := range onnxSpecs {
		t.Run(s.name, func(t *testing.T) {
			f, err := Read(filepath.Join(dir, s.name+".onnx"))
			if err != nil {
				t.Fatal(err)
			}
			l := f.Layers[0]
			if s.name == "inside-function" {
				l = f.Layers[1] // the first is the call without biases
			}
			compareONNX(t, l, answers[s.name])
		})
	}
}

// compareONNX holds the reference for l to an answer.
func compareONNX(t *testing.T, l Layer, a onnxAnswer) {
	t.Helper()
	if l.Declined != "" {
		t.Fatalf("%s is declined: %s", l.Name, l.Declined)
	}
	p := onnxProblem(t, l)
	d := rnn.NewData(p, 1, p.Batch, "normal")
	d.ClearStates()
	copy(d.Get("x"), a.In["X"])
	if len(d.Get("x")) != len(a.In["X"]) {
		t.Fatalf("the input has %d values, not %d", len(d.Get("x")), len(a.In["X"]))
	}
	for i := range p.Reads() { // what a user gives
		for _, s := range p.Cell.States {
			if first := a.In["initial_"+s]; first != nil {
				copy(d.Get(p.Named(s+"0", i)), first[i*p.Batch*p.Hidden:])
			}
		}
	}
	own := map[string]rnn.Tensor{}
	for _, x := range l.Tensors {
		own[x.Name] = x
	}
	for i, x := range d.Tensors {
		if o, ok := own[x.Name]; ok {
			if o.PerSequence && o.Rows == 1 { // for all sequences
				o.Rows, o.Values = x.Rows, slices.Repeat(o.Values, x.Rows)
			}
			if o.Rows != x.Rows || o.Cols != x.Cols || o.PerSequence != x.PerSequence {
				t.Fatalf("%s is %d×%d, not %d×%d", x.Name, o.Rows, o.Cols, x.Rows, x.Cols)
			}
			d.Tensors[i] = o
		} else if !x.PerSequence {
			t.Fatalf("the layer has no %s", x.Name)
		}
		delete(own, x.Name)
	}
	if len(own) > 0 {
		t.Fatalf("the layer has tensors that the problem has not: %v", own)
	}
	have := map[string][]float64{}
	for _, x := range oracle.Reference(d) {
		have[x.Name] = x.Values
	}
	ways, row, compared := p.Ways(), p.Batch*p.Hidden, 0
	for i := range ways {
		h := have[p.Named("h", i)]
		for s := range p.Steps {
			compared += nearAnswer(t, "Y", h[s*row:(s+1)*row], answerOf(a.Out, "Y", "Out")[(s*ways+i)*row:])
		}
		last := p.Steps - 1
		if p.Backwards(i) {
			last = 0
		}
		compared += nearAnswer(t, "Y_h", h[last*row:(last+1)*row], answerOf(a.Out, "Y_h", "Out_h")[i*row:])
		if c := have[p.Named("c", i)]; c != nil {
			compared += nearAnswer(t, "Y_c", c[last*row:(last+1)*row], a.Out["Y_c"][i*row:])
		}
	}
	all := 0
	for _, v := range a.Out {
		all += len(v)
	}
	if compared != all {
		t.Errorf("%d values were compared, but there are %d", compared, all)
	}
}

func answerOf(of map[string][]float32, names ...string) []float32 {
	for _, name := range names {
		if of[name] != nil {
			return of[name]
		}
	}
	return nil
}

// nearAnswer compares values with the first of want, and returns how many they were.
func nearAnswer(t *testing.T, what string, have []float64, want []float32) int {
	t.Helper()
	for i, v := range have {
		if !(math.Abs(v-float64(want[i])) <= 1e-5*max(1, math.Abs(v))) {
			t.Fatalf("%s: value %d is %.8g, ONNX Runtime has %.8g", what, i, v, want[i])
		}
	}
	return len(have)
}

// onnxProblem is the problem of a layer at the sizes of its input.
func onnxProblem(t *testing.T, l Layer) rnn.Problem {
	t.Helper()
	c := cell.Lookup(l.Point.Cell)
	if c == nil {
		var err error
		if c, err = equations.Load("../cells/" + l.Point.Cell + ".cell"); err != nil {
			t.Fatal(err)
		}
	}
	p := rnn.Problem{Cell: c, Input: l.Point.Input, Hidden: l.Point.Hidden, Layers: l.Point.Layers, Batch: l.Batch, Steps: l.Steps}
	switch l.Point.Direction {
	case "reverse":
		p.Direction = rnn.FromLast
	case "both":
		p.Direction = rnn.BothWays
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestONNXNames: layers of the stored models are called and described as expected.
func TestONNXNames(t *testing.T) {
	for name, want := range map[string]string{
		"lstm":            "layer",
		"inside-if":       "If_0/then_branch/GRU_0 other",
		"inside-loop":     "loop/body/RNN_0",
		"inside-function": "Local_0/LSTM_0 Local_1/LSTM_0",
	} {
		f, err := Read("testdata/onnx/" + name + ".onnx")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range f.Layers {
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); got != want || f.Format != "ONNX" {
			t.Errorf("%s: %s has the layers %s, want %s", name, f.Format, got, want)
		}
	}
}
