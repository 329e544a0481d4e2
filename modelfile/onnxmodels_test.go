package modelfile

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// TestONNXModels reads the models in the folder that the environment variable RNNBENCH_MODELS names,
// and below. Every layer must have its weights or a reason. Where RNNBENCH_ONNXRUNTIME is set, too,
// each operator becomes a model with the nodes that make its weights, and ONNX Runtime must agree.
func TestONNXModels(t *testing.T) {
	folder := os.Getenv("RNNBENCH_MODELS")
	if folder == "" {
		t.Skip("RNNBENCH_MODELS names no folder of models")
	}
	modules, dir, layers := os.Getenv("RNNBENCH_ONNXRUNTIME"), t.TempDir(), map[string]Layer{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".onnx") {
			return err
		}
		f, err := Read(path)
		if err != nil {
			t.Log(err)
			return nil
		}
		model, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		nodes := recurrentNodes(protoParts(model, 7)[0], nil)
		for i, l := range f.Layers {
			t.Logf("%s: %s: %s %v, %d parameters. %s", filepath.Base(path), l.Name, l.Operator, l.Point, l.Parameters(), l.Declined)
			if l.Declined != "" || len(nodes) != len(f.Layers) { // functions
				continue
			}
			l.Steps, l.Batch = 5, 2
			name := fmt.Sprintf("%d", len(layers))
			layers[name] = l
			if err := os.WriteFile(filepath.Join(dir, name+".onnx"), nodes[i].alone(l, protoParts(model, 8)), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) == 0 {
		t.Fatalf("%s has no model with a recurrent layer", folder)
	}
	if modules == "" {
		t.Skip("RNNBENCH_ONNXRUNTIME names no folder node_modules with onnxruntime-node: outputs were not compared")
	}
	runONNX(t, dir, modules)
	text, err := os.ReadFile(filepath.Join(dir, "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]onnxAnswer
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	for name, l := range layers {
		compareONNX(t, l, answers[name])
	}
	t.Logf("%d layers agree with ONNX Runtime", len(layers))
}

// protoParts are the bytes of the fields of that number.
func protoParts(message []byte, number protowire.Number) (out [][]byte) {
	for len(message) > 0 {
		n, form, used := protowire.ConsumeTag(message)
		size := protowire.ConsumeFieldValue(n, form, message[used:])
		if n == number && form == protowire.BytesType {
			b, _ := protowire.ConsumeBytes(message[used:])
			out = append(out, b)
		}
		message = message[used+size:]
	}
	return out
}

// A graphOf is a graph of a file, and the one around it.
type graphOf struct {
	raw   []byte
	outer *graphOf
}

// A recurrentNode is a recurrent operator of a file.
type recurrentNode struct {
	raw []byte
	in  *graphOf
}

// recurrentNodes are those of a graph and of bodies in it, which come first.
func recurrentNodes(graph []byte, outer *graphOf) (out []recurrentNode) {
	g := &graphOf{graph, outer}
	for _, n := range protoParts(graph, 1) {
		for _, a := range protoParts(n, 5) {
			for _, body := range protoParts(a, 6) {
				out = append(out, recurrentNodes(body, g)...)
			}
		}
		if op := string(protoParts(n, 4)[0]); op == "LSTM" || op == "GRU" || op == "RNN" {
			out = append(out, recurrentNode{n, g})
		}
	}
	return out
}

// alone is a model of the operator and what makes its weights. X is an input, and so are first states
// of which l has none.
func (r recurrentNode) alone(l Layer, opsets [][]byte) []byte {
	p := l.Point
	ways := 1
	if p.Direction == "both" {
		ways = 2
	}
	inputs := []string{"X"}
	g := onnxGraph{inputs: []valueInfo{{"X", onnxFloat, []int{l.Steps, l.Batch, p.Input}}}}
	given := protoParts(r.raw, 1)
	for i := 1; i < max(len(given), 5+map[string]int{"LSTM": 2}[l.Operator]); i++ {
		name := ""
		if i < len(given) {
			name = string(given[i])
		}
		state := map[int]string{5: "h", 6: "c"}[i]
		switch has := false; {
		case i == 4:
			name = ""
		case state != "":
			for _, x := range l.Tensors {
				has = has || strings.HasPrefix(x.Name, state+"0_l")
			}
			if !has {
				name = "initial_" + state
				g.inputs = append(g.inputs, valueInfo{name, onnxFloat, []int{ways, l.Batch, p.Hidden}})
				break
			}
			fallthrough
		default:
			g.take(r.in, name, map[string]bool{})
		}
		inputs = append(inputs, name)
	}
	g.outputs = []valueInfo{{"Y", onnxFloat, nil}, {"Y_h", onnxFloat, nil}, {"Y_c", onnxFloat, nil}}
	outputs := []string{"Y", "Y_h", "Y_c"}
	if l.Operator != "LSTM" {
		g.outputs, outputs = g.outputs[:2], outputs[:2]
	}
	var attributes []proto
	for _, a := range protoParts(r.raw, 5) {
		attributes = append(attributes, a)
	}
	g.nodes = append(g.nodes, onnxNode(l.Operator, "", inputs, outputs, attributes...))
	model := proto(nil).int(1, 8).bytes(7, g.write())
	for _, o := range opsets {
		model = model.bytes(8, o)
	}
	return model
}

// take copies what makes a value, from its graph or one around it.
func (g *onnxGraph) take(from *graphOf, name string, taken map[string]bool) {
	for ; from != nil && name != "" && !taken[name]; from = from.outer {
		for _, t := range protoParts(from.raw, 5) {
			if string(protoParts(t, 8)[0]) == name && !taken[name] {
				taken[name] = true
				g.initializers = append(g.initializers, t)
			}
		}
		for _, n := range protoParts(from.raw, 1) {
			for _, out := range protoParts(n, 2) {
				if string(out) == name && !taken[name] {
					taken[name] = true
					for _, in := range protoParts(n, 1) {
						g.take(from, string(in), taken)
					}
					g.nodes = append(g.nodes, n)
				}
			}
		}
	}
}
