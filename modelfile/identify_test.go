package modelfile

import (
	"regexp"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/axis"
)

// TestIdentify: IDs name the file, the layer and its contents. A layer is picked by its name, its short
// name or its number.
func TestIdentify(t *testing.T) {
	layers := []Layer{
		{Name: "If_0/then/rnn/LSTM", Point: axis.Point{Hidden: 1}},
		{Name: "If_0/else/rnn/LSTM", Point: axis.Point{Hidden: 1}, Tensors: []rnn.Tensor{{Name: "bias_ih_l0", Rows: 1, Cols: 1, Values: []float32{3}}}},
		{Name: "a name, which is so long that it would fill the column of a table"},
		{Name: "GRU_7", Declined: "it has a clip"},
	}
	identify("/a/my model.onnx", layers)
	for i, want := range []string{`my_model:then/rnn/LSTM@`, `my_model:else/rnn/LSTM@`, `my_model:3@`, `my_model:GRU_7@`} {
		if got := layers[i].ID; !regexp.MustCompile("^" + want + "[0-9a-f]{8}$").MatchString(got) {
			t.Errorf("layer %d is %s, want %s and a hash", i+1, got, want)
		}
	}
	if a, b := layers[0].ID, layers[1].ID; a[len(a)-8:] == b[len(b)-8:] {
		t.Errorf("%s and %s have one hash", a, b)
	}
	files := []*File{{Layers: layers}}
	for name, want := range map[string]int{"If_0/else/rnn/LSTM": 1, "else/rnn/LSTM": 1, "2": 1, "3": 2, layers[2].Name: 2} {
		if got, err := Pick(files, []string{name}); err != nil || len(got) != 1 || got[0].Name != layers[want].Name {
			t.Errorf("%s picks %v, %v", name, got, err)
		}
	}
	if got, err := Pick(files, nil); err != nil || len(got) != 3 {
		t.Errorf("no name picks %d layers, %v", len(got), err)
	}
	for name, want := range map[string]string{"GRU_7": "it has a clip", "GRU_8": "did you mean GRU_7", "9": "unknown layer"} {
		if _, err := Pick(files, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
