package modelfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/axis"
)

// readProto reads a model that is in memory.
func readProto(model []byte) ([]Layer, error) {
	return readONNX(source{bytes.NewReader(model), int64(len(model)), "testdata/onnx/model.onnx"})
}

// oneLayer reads a model of one layer.
func oneLayer(t *testing.T, model []byte) Layer {
	t.Helper()
	layers, err := readProto(model)
	if err != nil || len(layers) != 1 {
		t.Fatalf("the model has %d layers: %v", len(layers), err)
	}
	return layers[0]
}

var oddSizes = onnxSizes{4, 2, 3, 5}

// TestONNXTensors: layers of all forms have the tensors of a problem, by name, size and order.
func TestONNXTensors(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, s := range onnxSpecs {
		layers, err := readProto(s.build(rng, oddSizes))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			l.Steps, l.Batch = max(l.Steps, 1), max(l.Batch, 1)
			var want, have []string
			for _, x := range rnn.NewData(onnxProblem(t, l), 1, 9, "zeros").Tensors {
				if !x.PerSequence {
					want = append(want, fmt.Sprintf("%s %d×%d", x.Name, x.Rows, x.Cols))
				}
			}
			for _, x := range l.Tensors {
				if len(x.Values) != x.Rows*x.Cols {
					t.Errorf("%s: %s is %d×%d and has %d values", s.name, x.Name, x.Rows, x.Cols, len(x.Values))
				}
				if !x.PerSequence {
					have = append(have, fmt.Sprintf("%s %d×%d", x.Name, x.Rows, x.Cols))
				}
			}
			if !slices.Equal(have, want) {
				t.Errorf("%s: the layer %s has the parameters\n%v, not\n%v", s.name, l.Name, have, want)
			}
		}
	}
}

// TestONNXDeclined: what cannot be measured says why, and its sizes are known all the same.
func TestONNXDeclined(t *testing.T) {
	for _, c := range []struct {
		onnxSpec
		why string
	}{
		{onnxSpec{op: "LSTM", attributes: []proto{attrFloat("clip", 3)}}, "it has the attribute clip"},
		{onnxSpec{op: "RNN", attributes: []proto{attrTexts("activations", "LeakyRelu"), attrFloats("activation_alpha", 0.1)}}, "it has the attribute activation_alpha"},
		{onnxSpec{op: "RNN", attributes: []proto{attrFloats("activation_beta", 0.1)}}, "it has the attribute activation_beta"},
		{onnxSpec{op: "RNN", attributes: []proto{attrTexts("activations", "Affine")}}, "its activation is Affine, and only Tanh and Relu are measured"},
		{onnxSpec{op: "LSTM", attributes: []proto{attrTexts("activations", "Sigmoid", "Relu", "Tanh")}}, "its activations are Sigmoid, Relu, Tanh, and only Sigmoid, Tanh, Tanh are measured"},
		{onnxSpec{op: "GRU", attributes: []proto{attrTexts("activations", "HardSigmoid", "Tanh")}}, "its activations are HardSigmoid, Tanh, and only Sigmoid, Tanh are measured"},
		{onnxSpec{op: "GRU", attributes: []proto{attrTexts("activations", "Sigmoid")}}, "it has 1 activations, not 2"},
		{onnxSpec{op: "RNN", direction: "bidirectional", attributes: []proto{attrTexts("activations", "Tanh", "Relu")}}, "its two directions have different activations"},
		{onnxSpec{op: "LSTM", inputs: "P", attributes: []proto{attrInt("input_forget", 1)}}, "its input and forget gates are coupled, and it has peepholes"},
		{onnxSpec{op: "LSTM", direction: "sideways"}, `its direction is "sideways"`},
		{onnxSpec{op: "LSTM", attributes: []proto{attrInt("layout", 2)}}, "its layout is 2"},
		{onnxSpec{op: "LSTM", store: func(g *onnxGraph, name string, a onnxArray) {
			storePlain(g, name+"_0", a)
			g.nodes = append(g.nodes, onnxNode("Relu", "", []string{name + "_0"}, []string{name}))
			g.inputs = append(g.inputs, valueInfo{name, onnxFloat, a.dims})
		}}, "its input W is not known: it is computed by the operator Relu"},
		{onnxSpec{op: "LSTM", inputs: "B", store: func(g *onnxGraph, name string, a onnxArray) {
			if name == "B" {
				g.inputs = append(g.inputs, valueInfo{name, onnxFloat, a.dims})
				return
			}
			storePlain(g, name, a)
		}}, "its input B is not known: it is an input of the graph"},
	} {
		l := oneLayer(t, c.build(rand.New(rand.NewPCG(1, 1)), oddSizes))
		if l.Declined != c.why {
			t.Errorf("declined with %q, want %q", l.Declined, c.why)
		}
		if l.Point.Input != 3 || l.Point.Hidden != 5 || l.Steps != 4 || l.Batch != 2 || l.Tensors != nil || l.Operator != c.op {
			t.Errorf("%s: %s has the sizes %v, %d steps and %d sequences", c.why, l.Operator, l.Point, l.Steps, l.Batch)
		}
	}
}

// TestONNXQuantised: ONNX Runtime's operator for integers is listed and declined.
func TestONNXQuantised(t *testing.T) {
	g := onnxGraph{
		nodes:        []proto{onnxNode("DynamicQuantizeLSTM", "q", []string{"X", "W", "R"}, []string{"Y"}, attrInt("hidden_size", 5)).text(7, "com.microsoft")},
		initializers: []proto{onnxTensor("W", onnxInt8, []int{1, 3, 20}, make([]float32, 60)), onnxTensor("R", onnxInt8, []int{1, 5, 20}, make([]float32, 100))},
	}
	l := oneLayer(t, onnxModel(17, g.write()))
	want := Layer{Name: "q", Operator: "DynamicQuantizeLSTM", Declined: "it is the quantised operator of ONNX Runtime, which multiplies integers", Point: axis.Point{Layers: 1, Input: 3, Hidden: 5}}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("the layer is %+v, not %+v", l, want)
	}
}

// stateModel is an LSTM of one input and two units whose state inputs are called h and c.
func stateModel(layout int, h, c string, more onnxGraph) []byte {
	plain := func(name string, dims ...int) proto {
		n := 1
		for _, d := range dims {
			n *= d
		}
		return onnxTensor(name, onnxFloat, dims, make([]float32, n))
	}
	more.initializers = append(more.initializers, plain("W", 2, 8, 1), plain("R", 2, 8, 2))
	more.nodes = append(more.nodes, onnxNode("LSTM", "", []string{"X", "W", "R", "", "", h, c}, []string{"Y"}, attrText("direction", "bidirectional"), attrInt("layout", layout)))
	return onnxModel(17, more.write())
}

// TestONNXStates: first states are there, 0, or the user's. Rows belong to sequences in both layouts.
func TestONNXStates(t *testing.T) {
	first := func(name string, batch, layout int) proto {
		dims := []int{2, batch, 2}
		values := make([]float32, 4*batch)
		for d := range 2 {
			for b := range batch {
				for k := range 2 {
					at := (d*batch + b) * 2
					if layout == 1 {
						at = (b*2 + d) * 2
					}
					values[at+k] = float32(100*d + 10*b + k + 1)
				}
			}
		}
		if layout == 1 {
			dims[0], dims[1] = batch, 2
		}
		return onnxTensor(name, onnxFloat, dims, values)
	}
	zeros := onnxGraph{nodes: []proto{
		onnxNode("Shape", "", []string{"X"}, []string{"s"}), onnxNode("ConstantOfShape", "", []string{"s"}, []string{"z"}),
		onnxNode("Slice", "", []string{"z", "s", "s"}, []string{"zero"}),
		onnxNode("ConstantOfShape", "", []string{"s"}, []string{"one"}, attrTensor("value", onnxTensor("", onnxFloat, []int{1}, []float32{1}))),
	}}
	with := func(g onnxGraph, more ...proto) onnxGraph {
		g.initializers = more
		return g
	}
	for _, c := range []struct {
		name  string
		model []byte
		want  string // states, and whether others are 0
		why   string
	}{
		{"none", stateModel(0, "", "", onnxGraph{}), "true", ""},
		{"both", stateModel(0, "h", "c", onnxGraph{initializers: []proto{first("h", 3, 0), first("c", 3, 0)}}),
			"h0_l0[1 2 11 12 21 22] h0_l0_reverse[101 102 111 112 121 122] c0_l0[1 2 11 12 21 22] c0_l0_reverse[101 102 111 112 121 122] true", ""},
		{"layout 1", stateModel(1, "h", "", onnxGraph{initializers: []proto{first("h", 3, 1)}}), "h0_l0[1 2 11 12 21 22] h0_l0_reverse[101 102 111 112 121 122] true", ""},
		{"one row", stateModel(0, "", "c", onnxGraph{initializers: []proto{first("c", 1, 0)}}), "c0_l0[1 2] c0_l0_reverse[101 102] true", ""},
		{"zeros of any size", stateModel(0, "zero", "z", zeros), "true", ""},
		{"ones of any size", stateModel(0, "one", "", zeros), "c0_l0[0 0] c0_l0_reverse[0 0] false", ""},
		{"given", stateModel(0, "h", "c", onnxGraph{inputs: []valueInfo{{"h", onnxFloat, nil}, {"c", onnxFloat, nil}}}), "false", ""},
		{"given and constant", stateModel(0, "one", "c", with(zeros, first("c", 1, 0))), "c0_l0[1 2] c0_l0_reverse[101 102] false", ""},
		{"missing", stateModel(0, "h", "", onnxGraph{}), "", `its input initial_h is not known: the model does not say what "h" is`},
		{"too short", stateModel(0, "h", "", onnxGraph{initializers: []proto{onnxTensor("h", onnxFloat, []int{2, 1, 2}, []float32{1})}}), "", "its input initial_h is not known: a tensor of the dimensions [2 1 2] has 4 bytes of values, not 16"},
		{"sizes", stateModel(1, "h", "", onnxGraph{initializers: []proto{first("h", 3, 0)}}), "", "its input initial_h has the sizes [2 3 2], which do not fit the layer"},
		{"batch", stateModel(0, "h", "c", onnxGraph{initializers: []proto{first("h", 3, 0), first("c", 2, 0)}}), "", "its input initial_c is for 2 sequences, and the layer for 3"},
		{"input", stateModel(0, "h", "", onnxGraph{inputs: []valueInfo{{"X", onnxFloat, []int{-1, 4, 1}}}, initializers: []proto{first("h", 3, 0)}}), "", "its input initial_h is for 3 sequences, and the layer for 4"},
	} {
		l := oneLayer(t, c.model)
		if l.Declined != c.why {
			t.Errorf("%s: declined with %q, want %q", c.name, l.Declined, c.why)
			continue
		}
		var have []string
		for _, x := range l.Tensors {
			if x.PerSequence {
				have = append(have, fmt.Sprintf("%s%v", x.Name, x.Values))
			}
		}
		have = append(have, fmt.Sprint(l.Zeros))
		if got := strings.Join(have, " "); c.why == "" && got != c.want {
			t.Errorf("%s: first states are %s, want %s", c.name, got, c.want)
		}
	}
}

// TestONNXExternal: values may lie in a file in the model's folder, and nowhere else.
func TestONNXExternal(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "model")
	rng := rand.New(rand.NewPCG(5, 5))
	var data []byte
	at := map[string]int{}
	kept := onnxSpec{op: "GRU", inputs: "B", store: func(g *onnxGraph, name string, a onnxArray) {
		storePlain(g, name, a)
		at[name] = len(data)
		data = append(data, onnxTensor("", onnxFloat, nil, a.values)[len(onnxTensor("", onnxFloat, nil, a.values))-4*len(a.values):]...)
	}}
	want := oneLayer(t, kept.build(rng, oddSizes))
	entry := func(key, value string) proto { return proto(nil).text(1, key).text(2, value) }
	outside := func(location string, shift int, more ...proto) []byte {
		s := kept
		s.store = func(g *onnxGraph, name string, a onnxArray) {
			p := onnxHeader(name, onnxFloat, a.dims).int(14, 1).bytes(13, entry("location", location)).bytes(13, entry("offset", fmt.Sprint(at[name]+shift)))
			for _, m := range more {
				p = p.bytes(13, m)
			}
			g.initializers = append(g.initializers, p)
		}
		return s.build(rng, oddSizes)
	}
	for name, content := range map[string]string{"model/sub/w.bin": string(data), "secret.bin": string(data), "blobs/w": string(data)} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"model/away.bin": "../secret.bin", "model/cached.bin": "../blobs/w", "model/cached.onnx": "../blobs/m"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	const why = "its input W is not known: "
	for _, c := range []struct {
		file  string
		model []byte
		why   string
	}{
		{"model/m.onnx", outside("sub/w.bin", 0), ""},
		{"blobs/m", outside("cached.bin", 0), ""},
		{"model/m.onnx", outside("../secret.bin", 0), why + `the values lie in the file "../secret.bin", which is not beside the model`},
		{"model/m.onnx", outside(filepath.Join(root, "secret.bin"), 0), "which is not beside the model"},
		{"model/m.onnx", outside("away.bin", 0), why + `the values lie in the file "away.bin", which is a link away from the model`},
		{"model/m.onnx", outside("none.bin", 0), why + `the values lie in the file "none.bin", which cannot be found beside the model`},
		{"model/m.onnx", outside("sub", 0), why + `the values lie in "sub", which is no file`},
		{"model/m.onnx", outside("sub/w.bin", len(data)), why + `the file "sub/w.bin" ends before the values that the model says it has`},
		{"model/m.onnx", outside("sub/w.bin", 0, entry("length", "8")), why + "a tensor has 8 bytes of values in another file, not 180"},
		{"model/m.onnx", outside("sub/w.bin", 0, entry("offset", "-8")), why + `the offset of values in another file is "-8", which is no size`},
	} {
		path := filepath.Join(root, c.file)
		if err := os.WriteFile(path, c.model, 0o644); err != nil {
			t.Fatal(err)
		}
		if c.file == "blobs/m" {
			path = filepath.Join(dir, "cached.onnx")
		}
		f, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		switch l := f.Layers[0]; {
		case !strings.HasSuffix(l.Declined, c.why) || (c.why == "") != (l.Declined == ""):
			t.Errorf("declined with %q, want %q", l.Declined, c.why)
		case c.why == "" && !reflect.DeepEqual(l.Tensors, want.Tensors):
			t.Errorf("the layer has other values than its file")
		}
	}
}

// TestONNXStarts: a model is known by its beginning, whatever its name.
func TestONNXStarts(t *testing.T) {
	model, err := os.ReadFile("testdata/onnx/rnn.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		string(model): true, "": false, "PK\x03\x04": false, "\x80\x02}q\x00.": false, "\x08\x07": false, "{}": false,
		"\x08\x12\x00\x00\x00\x00\x00\x00{\"a\":0}":  false, // safetensors
		"\x08\x07\x12\x00\x00\x00\x00\x00{\"a\":[]}": false,
	} {
		if got := isONNX(source{strings.NewReader(text), int64(len(text)), "model"}); got != want {
			t.Errorf("%.20q: %v, want %v", text, got, want)
		}
	}
}
