package equations

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/cell"
)

func parseFile(t *testing.T, path string) *cell.Cell {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(path, strings.TrimSuffix(filepath.Base(path), Extension), string(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBuiltInCells writes each built-in cell as a file. The file gives the same answers, counts and
// kinds of programs as the Go form.
func TestBuiltInCells(t *testing.T) {
	for _, want := range cell.BuiltIn() {
		got := parseFile(t, filepath.Join("testdata/builtin", want.Name+Extension))
		if len(got.Gates) != len(want.Gates) || got.Recurrent != want.Recurrent || got.Window != want.Window || got.Through != want.Through ||
			!slices.Equal(got.States, want.States) || !slices.Equal(got.Positive, want.Positive) || !slices.Equal(got.Fixed, want.Fixed) ||
			len(got.Peeps) != len(want.Peeps) || got.Saved != want.Saved || got.SplitGrad != want.SplitGrad {
			t.Errorf("%v: %+v", want, got)
		}
		for _, p := range [][2]cell.Program{{got.Inference, want.Inference}, {got.Forward, want.Forward}, {got.Backward, want.Backward}} {
			if a, b := p[0].FLOPs(), p[1].FLOPs(); a != b {
				t.Errorf("%v: %d FLOPs, want %d:\n%v\n%v", want, a, b, p[0], p[1])
			}
		}
		sameAnswers(t, got, want)
		if (got.Recurrence == nil) != (want.Recurrence == nil) || (got.Surrogate == nil) != (want.Surrogate == nil) || (got.Scanned == nil) != (want.Scanned == nil) {
			t.Errorf("%v: other parts", want)
		}
	}
}

// sameAnswers compares the equations of two cells at random inputs.
func sameAnswers(t *testing.T, got, want *cell.Cell) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	some := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = 2 * rng.NormFloat64()
		}
		return v
	}
	for range 100 {
		x, r, weights, prev := some(len(want.Gates)), some(want.Recurrent), some(len(want.Peeps)), some(len(want.States))
		for s := range prev {
			prev[s] = want.Start(s, prev[s])
		}
		a, b := make([]float64, len(prev)), make([]float64, len(prev))
		got.Equations(x, r, weights, prev, a)
		want.Equations(x, r, weights, prev, b)
		for s := range a {
			if math.Abs(a[s]-b[s]) > 1e-12*max(1, math.Abs(b[s])) {
				t.Errorf("%v: state %s is %v as a file, and %v built in", want, want.States[s], a[s], b[s])
			}
		}
	}
}

// examples returns the texts of all files of equations in the repository.
func examples(t testing.TB) map[string]string {
	texts := map[string]string{}
	for _, dir := range []string{"testdata/builtin", "../../cells"} {
		files, err := filepath.Glob(filepath.Join(dir, "*"+Extension))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no files: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
	}
	return texts
}
