package impl_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestBuiltInCellsAsFiles: each technique lays out a built-in cell and its file of equations alike, but
// for temporaries, whose number depends on the order of equations.
func TestBuiltInCellsAsFiles(t *testing.T) {
	for _, c := range cell.BuiltIn() {
		path := filepath.Join("../rnn/equations/testdata/builtin", c.Name+equations.Extension)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := equations.Parse(path, "file", string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, pass := range []rnn.Pass{rnn.Forward, rnn.Train} {
			for _, tech := range impl.Direct() {
				p := rnn.Problem{Cell: c, Input: 5, Hidden: 19, Layers: 2, Batch: 3, Steps: 6, Pass: pass}
				_, want, wantErr := rnn.Layout(tech, p, knob.Params{})
				p.Cell = file
				_, got, err := rnn.Layout(tech, p, knob.Params{})
				switch {
				case errors.Is(err, schedule.ErrUnsupported) && errors.Is(wantErr, schedule.ErrUnsupported):
				case err != nil || wantErr != nil:
					t.Errorf("%s of %v: %v as a file, %v built in", tech.Name(), c, err, wantErr)
				case p.FLOPs() == 0 || len(got.Nodes) != len(want.Nodes) || got.FLOPs() != want.FLOPs() || got.Traffic() != want.Traffic():
					t.Errorf("%s of %v, %v: %d operations, %d FLOPs, %d bytes moved; built in %d, %d, %d", tech.Name(), c, pass,
						len(got.Nodes), got.FLOPs(), got.Traffic(), len(want.Nodes), want.FLOPs(), want.Traffic())
				}
			}
		}
	}
}
