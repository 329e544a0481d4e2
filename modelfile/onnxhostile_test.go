package modelfile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// rnnModel is an RNN of one unit whose input W is called w.
func rnnModel(w string, more onnxGraph, functions ...proto) []byte {
	more.initializers = append(more.initializers, onnxTensor("one", onnxFloat, []int{1, 1, 1}, []float32{1}))
	more.nodes = append(more.nodes, onnxNode("RNN", "r", []string{"X", w, "one"}, []string{"Y"}, attrInt("hidden_size", 1)))
	return onnxModel(17, more.write(), functions...)
}

// storedW is rnnModel with W as one initializer.
func storedW(t proto) []byte { return rnnModel("w", onnxGraph{initializers: []proto{t}}) }

// computedW is rnnModel with W as nodes compute it, the last of which makes w. They read the constant
// two, 2×3, and constants of numbers.
func computedW(nodes ...proto) []byte {
	g := onnxGraph{nodes: nodes, initializers: []proto{onnxTensor("two", onnxFloat, []int{2, 3}, make([]float32, 6))}}
	for v := range 10 {
		g.initializers = append(g.initializers, onnxInts(fmt.Sprint(v), float32(v)))
	}
	g.initializers = append(g.initializers, onnxInts("-1", -1), onnxInts("many", 1<<20, 1<<20), onnxTensor("half", onnxFloat, []int{1}, []float32{0.5}))
	return rnnModel("w", g)
}

func foldNode(op string, inputs string, attributes ...proto) proto {
	return onnxNode(op, "", strings.Fields(inputs), []string{"w"}, attributes...)
}

// localFunction writes a function without inputs.
func localFunction(name string, nodes ...proto) proto {
	fn := proto(nil).text(1, name).text(10, "local").bytes(9, proto(nil).text(1, "").int(2, 17))
	for _, n := range nodes {
		fn = fn.bytes(7, n)
	}
	return fn
}

func localCall(name string) proto {
	return onnxNode(name, "", nil, []string{"n" + name}).text(7, "local")
}

// TestONNXWrong: a file that is wrong gets one sentence, about the layer or about the file.
func TestONNXWrong(t *testing.T) {
	const w = "its input W is not known: "
	whole := onnxTensor("w", onnxFloat, []int{1, 1, 1}, []float32{1})
	for want, model := range map[string][]byte{
		w + "a tensor has the dimension -1":                                                    storedW(onnxTensor("w", onnxFloat, []int{1, -1, 1}, nil)),
		w + "a tensor has the dimensions [65536 65536 1]: more than 2^31 values":               storedW(onnxTensor("w", onnxFloat, []int{1 << 16, 1 << 16, 1}, nil)),
		w + "a tensor of the dimensions [1 1 1] has 8 bytes of values, not 4":                  storedW(onnxTensor("w", onnxFloat, []int{1, 1, 1}, []float32{1, 2})),
		w + "a tensor of the dimensions [1 2 1] has fewer or more values than 2":               storedW(onnxListed("w", onnxFloat, []int{1, 2, 1}, []float32{1})),
		w + "a tensor of the dimensions [1 1 1] has fewer or more values than 1":               storedW(onnxListed("w", onnxDouble, []int{1, 1, 1}, []float32{1, 2})),
		w + "a tensor of the dimensions [30000 30000] has fewer or more values than 900000000": storedW(onnxHeader("w", onnxFloat, []int{30000, 30000})),
		w + "a tensor has more than 8 dimensions":                                              storedW(onnxHeader("w", onnxFloat, make([]int, 1000))),
		w + "a tensor has values of the type 8: only numbers of 8 to 64 bits are read":         storedW(onnxHeader("w", 8, []int{1})),
		"its input W has the sizes [1 1], which fit no layer":                                  storedW(onnxTensor("w", onnxFloat, []int{1, 1}, []float32{1})),
		"its input W has the sizes [2 1 1], not [1 1 1]":                                       storedW(onnxTensor("w", onnxFloat, []int{2, 1, 1}, []float32{1, 2})),
		"its input W has the sizes [1 1 0], which fit no layer":                                storedW(onnxTensor("w", onnxFloat, []int{1, 1, 0}, nil)),
		w + `the model does not say what "gone" is`:                                            rnnModel("gone", onnxGraph{}),
		w + "it is missing":                                                               rnnModel("", onnxGraph{}),
		w + "it is sparse":                                                                onnxModel(17, append(onnxGraph{nodes: []proto{onnxNode("RNN", "", []string{"X", "w", "w"}, nil)}}.write(), proto(nil).bytes(15, proto(nil).bytes(1, whole))...)),
		w + "it is computed from itself":                                                  computedW(onnxNode("Identity", "", []string{"w"}, []string{"v"}), foldNode("Identity", "v")),
		w + "it is computed by the operator Local":                                        rnnModel("w", onnxGraph{nodes: []proto{onnxNode("Local", "", nil, []string{"w"}).text(7, "local")}}, localFunction("Local")),
		w + "it is computed by the operator Cast to a type that rounds":                   computedW(foldNode("Cast", "two", attrInt("to", onnxHalf))),
		w + "sizes in the model are no numbers that can be used":                          computedW(foldNode("Reshape", "two half")),
		w + "the axes of a node Transpose are no permutation":                             computedW(foldNode("Transpose", "two", attrInts("perm", 1, 1))),
		w + "a node Transpose permutes 3 axes of a tensor of 2":                           computedW(foldNode("Transpose", "two", attrInts("perm", 0, 1, 2))),
		w + "a node Slice has starts, ends, axes and steps of different lengths":          computedW(foldNode("Slice", "two 0 many")),
		w + "a node Slice has the step 0, or names an axis twice":                         computedW(foldNode("Slice", "two 0 1 1 0")),
		w + "a node names axis 7 of a tensor of 2 dimensions":                             computedW(foldNode("Slice", "two 0 1 7")),
		w + "a node Concat joins tensors of different sizes":                              computedW(onnxNode("Transpose", "", []string{"two"}, []string{"v"}), foldNode("Concat", "two v", attrInt("axis", 0))),
		w + "a node Concat joins tensors of different ranks":                              computedW(foldNode("Concat", "two half", attrInt("axis", 0))),
		w + "a node Concat joins nothing":                                                 computedW(foldNode("Concat", "")),
		w + "a node Squeeze takes away an axis of more than one element":                  computedW(foldNode("Squeeze", "two 1")),
		w + "the axes of a node Unsqueeze are no axes of its result":                      computedW(foldNode("Unsqueeze", "two 9")),
		w + "a node Reshape changes the number of values":                                 computedW(foldNode("Reshape", "two many")),
		w + "it is computed by the operator DequantizeLinear of blocks":                   computedW(foldNode("DequantizeLinear", "two half", attrInt("block_size", 2))),
		w + "a node DequantizeLinear has more or fewer scales than its axis has elements": computedW(foldNode("DequantizeLinear", "two many")),
		w + "a node Constant has no value":                                                computedW(foldNode("Constant", "")),
		"its hidden_size is -1":                                                           onnxModel(17, onnxGraph{nodes: []proto{onnxNode("GRU", "", nil, nil, attrInt("hidden_size", -1))}}.write()),
		"its hidden_size is 1099511627776":                                                onnxModel(17, onnxGraph{nodes: []proto{onnxNode("GRU", "", nil, nil, attrInt("hidden_size", 1<<40))}}.write()),
		"it is no ONNX model, or it was cut short: it has no graph":                       proto(nil).int(1, 8),
		"it is no ONNX model: it has two graphs":                                          append(rnnModel("one", onnxGraph{}), rnnModel("one", onnxGraph{})...),
		"it is no ONNX model, or it was cut short":                                        []byte("version https://git-lfs.github.com/spec/v1"),
		`it defines the function "f" twice`:                                               rnnModel("one", onnxGraph{}, localFunction("f"), localFunction("f")),
	} {
		if why := whyNot(model); why != want {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// whyNot is why the last layer of a model cannot be measured, or the model not read.
func whyNot(model []byte) string {
	layers, err := readProto(model)
	switch {
	case err != nil:
		return err.Error()
	case len(layers) == 0:
		return "no layer"
	}
	return layers[len(layers)-1].Declined
}

// TestONNXHostile: models that ask for far more than their size end soon, with a sentence.
func TestONNXHostile(t *testing.T) {
	deep := onnxGraph{}.write()
	for range 40 {
		deep = onnxGraph{nodes: []proto{onnxNode("If", "", nil, nil, attrGraph("then_branch", deep))}}.write()
	}
	var doubling []proto // functions, each of which calls the next one twice
	for i := range 30 {
		next := fmt.Sprint(i + 1)
		doubling = append(doubling, localFunction(fmt.Sprint(i), localCall(next), localCall(next)))
	}
	doubling = append(doubling, localFunction("30"))
	chain := func(n int, op string, inputs int, attributes ...proto) []byte {
		var nodes []proto
		for i := range n {
			in := []string{"one", "one"}
			if i > 0 {
				in = []string{fmt.Sprint("v", i-1), fmt.Sprint("v", i-1)}
			}
			nodes = append(nodes, onnxNode(op, "", in[:inputs], []string{fmt.Sprint("v", i)}, attributes...))
		}
		return rnnModel(fmt.Sprint("v", n-1), onnxGraph{nodes: nodes})
	}
	var many onnxGraph
	for range 5000 {
		many.nodes = append(many.nodes, onnxNode("RNN", "", []string{"X", "one", "one"}, nil, attrInt("hidden_size", 1)))
	}
	long := strings.Repeat("long", 1<<16)
	var named, calls []proto // many calls of a function that has nodes of long names
	for range 20 {
		named = append(named, onnxNode("If", long, nil, nil))
	}
	for range 1 << 14 {
		calls = append(calls, localCall("f"))
	}
	for name, c := range map[string]struct {
		model []byte
		why   string
	}{
		"long names": {rnnModel("one", onnxGraph{nodes: calls}, localFunction("f", named...)), "the model takes far more work to read than its size allows, as where functions call each other over and over"},
		"bodies":     {onnxModel(17, deep), "bodies and functions stand more than 32 deep within each other"},
		"recursion":  {rnnModel("one", onnxGraph{nodes: []proto{localCall("f")}}, localFunction("f", localCall("f"))), "bodies and functions stand more than 32 deep within each other"},
		"doubling":   {rnnModel("one", onnxGraph{nodes: []proto{localCall("0")}}, doubling...), "the model takes far more work to read than its size allows, as where functions call each other over and over"},
		"concat":     {chain(30, "Concat", 2, attrInt("axis", 2)), "its input W is not known: the model asks for far more values than it holds"},
		"identities": {chain(10000, "Identity", 1), "its input W is not known: it is computed by more than 256 nodes, one after the other"},
		"layers":     {rnnModel("one", many), "it has more than 4096 recurrent layers"},
	} {
		if why := whyNot(c.model); why != c.why {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
	}
}

// TestONNXCut: a model that was cut short is an error wherever its graph ends too soon.
func TestONNXCut(t *testing.T) {
	for _, s := range onnxSpecs[:18] {
		model := s.build(rand.New(rand.NewPCG(1, 1)), onnxSizes{1, 1, 1, 1})
		whole, err := readProto(model)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for n := range model {
			layers, err := readProto(model[:n])
			if err != nil {
				failed++
			} else if !reflect.DeepEqual(layers, whole) {
				t.Fatalf("%s: %d of %d bytes have other layers", s.name, n, len(model))
			}
		}
		if failed < len(model)-20 {
			t.Errorf("%s: only %d of %d beginnings are errors", s.name, failed, len(model))
		}
	}
}

// FuzzONNX: whatever a file holds, it is read in bounded memory. Layers that can be measured are whole.
func FuzzONNX(f *testing.F) {
	paths, err := filepath.Glob("testdata/onnx/*.onnx")
	if err != nil || len(paths) == 0 {
		f.Fatal("there are no models: ", err)
	}
	for _, path := range paths {
		model, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(model)
	}
	f.Add(computedW(foldNode("Slice", "two 0 2 1 -1")))
	f.Fuzz(holdONNX)
}

// TestONNXFlipped: the same of models with a few other bytes.
func TestONNXFlipped(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, s := range onnxSpecs {
		model := s.build(rng, onnxSizes{2, 1, 1, 2})
		for range 500 {
			flipped := slices.Clone(model)
			for range 1 + rng.IntN(3) {
				flipped[rng.IntN(len(flipped))] ^= 1 << rng.IntN(8)
			}
			holdONNX(t, flipped)
		}
	}
}

// holdONNX reads a model of any bytes, and checks what it has.
func holdONNX(t *testing.T, model []byte) {
	layers, err := readProto(model)
	if err != nil {
		return
	}
	names, distinct := map[string]bool{}, map[*float32]int{}
	for _, l := range layers {
		if names[l.Name] {
			t.Errorf("two layers are called %q", l.Name)
		}
		names[l.Name] = true
		if l.Declined == "" && (l.Parameters() == 0 || l.Point.Cell == "" || l.Point.Hidden < 1 || l.Point.Input < 1) {
			t.Errorf("the layer is not whole: %+v", l)
		}
		for _, x := range l.Tensors {
			if len(x.Values) != x.Rows*x.Cols {
				t.Errorf("%s is %d×%d and has %d values", x.Name, x.Rows, x.Cols, len(x.Values))
			}
			if len(x.Values) > 0 {
				distinct[&x.Values[0]] = len(x.Values)
			}
		}
	}
	values := 0
	for _, n := range distinct {
		values += n
	}
	if most := 1<<16 + 8*len(model); values > most {
		t.Errorf("%d bytes became %d values, more than %d", len(model), values, most)
	}
}
