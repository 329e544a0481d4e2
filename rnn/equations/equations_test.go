package equations

import (
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
			if !slices.Equal(p[0], p[1]) {
				t.Logf("%v: \n%v\n%v", want, p[0], p[1])
			}
		}
		if (got.Recurrence == nil) != (want.Recurrence == nil) || (got.Surrogate == nil) != (want.Surrogate == nil) || (got.Scanned == nil) != (want.Scanned == nil) {
			t.Errorf("%v: other parts", want)
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
