package bench

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/grid"
)

// TestModels: the weights of every file that package modelfile is tested with fit the problems of their
// layers, whose cells are known, and a layer sets every axis of grid.ModelAxes.
func TestModels(t *testing.T) {
	tried := 0
	err := filepath.WalkDir("../../modelfile/testdata", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".onnx", ".pt", ".safetensors"}, filepath.Ext(path)) {
			return err
		}
		layers, err := readModels([]string{path}, nil)
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, l := range layers {
			tried++
			if cell.Lookup(l["cell"]) == nil || !slices.Contains(rnn.KnownWeights(), l["weights"]) {
				t.Errorf("%s: cell %s or weights %s are not known", path, l["cell"], l["weights"])
			}
			for _, name := range grid.ModelAxes() {
				if l[name] == "" {
					t.Errorf("%s: %s is not set", path, name)
				}
			}
			if _, err := grid.New(grid.Request{Models: []string{path}, Impl: []string{"naive"}}, Words()); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if err != nil || tried == 0 {
		t.Errorf("%d layers, %v", tried, err)
	}
}

// TestUnknownModels: a layer that is not there, a file that is no model and weights without a model are
// refused.
func TestUnknownModels(t *testing.T) {
	model := "../../modelfile/testdata/onnx/lstm.onnx"
	for want, r := range map[string]grid.Request{
		"unknown layer":        {Models: []string{model}, Layers: []string{"nothing"}},
		"no such file":         {Models: []string{"nothing.onnx"}},
		"there are no weights": {Axes: map[string]string{"weights": "a:b@c"}},
		"model_test.go is no":  {Models: []string{"model_test.go"}},
	} {
		r.Impl = []string{"naive"}
		if _, err := grid.New(r, Words()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
