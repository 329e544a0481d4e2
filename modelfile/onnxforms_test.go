package modelfile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// An onnxSpec is a form of a model of one recurrent operator.
type onnxSpec struct {
	name, op, direction string

	inputs     string // those that are there: B, P, h, c and s, which is sequence_lens; H: initial_h is an input of the graph
	attributes []proto
	opset      int // 0: 17

	store func(g *onnxGraph, name string, a onnxArray)           // how constants are stored; nil: as initializers
	wrap  func(g *onnxGraph, node *onnxCall) (functions []proto) // where the node stands; nil: in the graph
}

// An onnxArray is a constant of a model.
type onnxArray struct {
	dims   []int
	values []float32
}

// onnxSizes are the sizes of a model.
type onnxSizes struct{ steps, batch, input, hidden int }

// An onnxCall is a recurrent node being written.
type onnxCall struct {
	op              string
	inputs, outputs []string
	attributes      []proto
	sizes           onnxSizes
	types           []valueInfo // of the outputs
}

func (c *onnxCall) write(name string) proto {
	return onnxNode(c.op, name, c.inputs, c.outputs, c.attributes...)
}

// onnxSpecs are the forms that ONNX Runtime runs.
var onnxSpecs = []onnxSpec{
	{name: "lstm", op: "LSTM", inputs: "B"},
	{name: "lstm-no-bias", op: "LSTM", direction: "reverse"},
	{name: "lstm-both", op: "LSTM", direction: "bidirectional", inputs: "Bhc"},
	{name: "lstm-h-given", op: "LSTM", direction: "bidirectional", inputs: "BH"},
	{name: "lstm-peephole", op: "LSTM", inputs: "BPhc"},
	{name: "lstm-peephole-both", op: "LSTM", direction: "bidirectional", inputs: "BP"},
	{name: "lstm-coupled", op: "LSTM", inputs: "Bc", attributes: []proto{attrInt("input_forget", 1)}},
	{name: "lstm-spelled", op: "LSTM", direction: "reverse", inputs: "Bh", attributes: []proto{attrTexts("activations", "sigmoid", "TANH", "Tanh")}},
	{name: "gru-before", op: "GRU", direction: "forward", inputs: "B"},
	{name: "gru-before-both", op: "GRU", direction: "bidirectional", inputs: "Bh", attributes: []proto{attrInt("linear_before_reset", 0)}},
	{name: "gru-after", op: "GRU", inputs: "Bh", attributes: []proto{attrInt("linear_before_reset", 1)}},
	{name: "gru-after-both", op: "GRU", direction: "bidirectional", inputs: "BH", attributes: []proto{attrInt("linear_before_reset", 1)}},
	{name: "gru-reverse", op: "GRU", direction: "reverse", attributes: []proto{attrInt("linear_before_reset", 1), attrTexts("activations", "Sigmoid", "Tanh")}},
	{name: "rnn", op: "RNN", inputs: "B"},
	{name: "rnn-relu-both", op: "RNN", direction: "bidirectional", inputs: "Bh", attributes: []proto{attrTexts("activations", "Relu", "Relu")}},
	{name: "rnn-lengths", op: "RNN", direction: "reverse", inputs: "Bsh"},
	{name: "rnn-relu-reverse", op: "RNN", direction: "reverse", inputs: "B", attributes: []proto{attrTexts("activations", "Relu")}},

	{name: "stored-listed", op: "LSTM", inputs: "Bh", store: storeListed},
	{name: "stored-half", op: "GRU", inputs: "B", store: storeHalf},
	{name: "stored-quantized", op: "LSTM", inputs: "B", store: storeQuantized},
	{name: "stored-pytorch", op: "LSTM", direction: "bidirectional", inputs: "B", store: storePyTorch},
	{name: "stored-old", op: "LSTM", inputs: "Bc", opset: 9, store: storeOld},
	{name: "stored-turned", op: "GRU", direction: "bidirectional", inputs: "B", store: storeTurned},

	{name: "inside-if", op: "GRU", inputs: "Bh", wrap: insideIf},
	{name: "inside-loop", op: "RNN", inputs: "BH", wrap: insideLoop},
	{name: "inside-function", op: "LSTM", inputs: "B", wrap: insideFunction},
}

// build writes a model of that form, with random weights.
func (s onnxSpec) build(rng *rand.Rand, z onnxSizes) []byte {
	ways, gates := 1, map[string]int{"LSTM": 4, "GRU": 3, "RNN": 1}[s.op]
	call := &onnxCall{op: s.op, attributes: append([]proto{attrInt("hidden_size", z.hidden)}, s.attributes...), sizes: z}
	if s.direction != "" {
		call.attributes = append(call.attributes, attrText("direction", s.direction))
		if s.direction == "bidirectional" {
			ways = 2
		}
	}
	g := &onnxGraph{inputs: []valueInfo{{"X", onnxFloat, []int{z.steps, z.batch, z.input}}}}
	store := s.store
	if store == nil {
		store = storePlain
	}
	arrays := []struct {
		name, letter string
		dims         []int
	}{
		{"W", "", []int{ways, gates * z.hidden, z.input}}, {"R", "", []int{ways, gates * z.hidden, z.hidden}}, {"B", "B", []int{ways, 2 * gates * z.hidden}},
		{"sequence_lens", "s", []int{z.batch}}, {"initial_h", "h", []int{ways, z.batch, z.hidden}}, {"initial_c", "c", []int{ways, z.batch, z.hidden}}, {"P", "P", []int{ways, 3 * z.hidden}},
	}
	call.inputs = []string{"X"}
	for _, a := range arrays {
		switch given := strings.Contains(s.inputs, strings.ToUpper(a.letter)) && a.letter == "h"; {
		case given:
			g.inputs = append(g.inputs, valueInfo{a.name, onnxFloat, a.dims})
		case a.letter == "s" && strings.Contains(s.inputs, "s"):
			g.initializers = append(g.initializers, onnxTensor(a.name, onnxInt32, a.dims, slices.Repeat([]float32{float32(z.steps)}, z.batch)))
		case strings.Contains(s.inputs, a.letter):
			store(g, a.name, onnxRandom(rng, a.dims...))
		default:
			call.inputs = append(call.inputs, "")
			continue
		}
		call.inputs = append(call.inputs, a.name)
	}
	for len(call.inputs) > 0 && call.inputs[len(call.inputs)-1] == "" {
		call.inputs = call.inputs[:len(call.inputs)-1]
	}
	call.types = []valueInfo{{"Y", onnxFloat, []int{z.steps, ways, z.batch, z.hidden}}, {"Y_h", onnxFloat, []int{ways, z.batch, z.hidden}}}
	if s.op == "LSTM" {
		call.types = append(call.types, valueInfo{"Y_c", onnxFloat, []int{ways, z.batch, z.hidden}})
	}
	for _, v := range call.types {
		call.outputs = append(call.outputs, v.name)
	}
	wrap := s.wrap
	if wrap == nil {
		wrap = func(g *onnxGraph, call *onnxCall) []proto {
			g.nodes, g.outputs = append(g.nodes, call.write("layer")), call.types
			return nil
		}
	}
	functions := wrap(g, call)
	opset := 17
	if s.opset > 0 {
		opset = s.opset
	}
	return onnxModel(opset, g.write(), functions...)
}

// onnxRandom are multiples of 1/64 in ±1/2, which all types hold.
func onnxRandom(rng *rand.Rand, dims ...int) onnxArray {
	n := 1
	for _, d := range dims {
		n *= d
	}
	a := onnxArray{dims, make([]float32, n)}
	for i := range a.values {
		a.values[i] = float32(rng.IntN(65)-32) / 64
	}
	return a
}

func storePlain(g *onnxGraph, name string, a onnxArray) {
	g.initializers = append(g.initializers, onnxTensor(name, onnxFloat, a.dims, a.values))
}

// storeListed uses lists of values: in initializers and in nodes Constant, behind an Identity.
func storeListed(g *onnxGraph, name string, a onnxArray) {
	if name == "W" {
		g.initializers = append(g.initializers, onnxListed(name, onnxFloat, a.dims, a.values))
		return
	}
	g.nodes = append(g.nodes,
		onnxNode("Constant", "", nil, []string{name + "_0"}, attrTensor("value", onnxListed("", onnxFloat, a.dims, a.values))),
		onnxNode("Identity", "", []string{name + "_0"}, []string{name}))
}

// storeHalf uses other types, behind a Cast.
func storeHalf(g *onnxGraph, name string, a onnxArray) {
	var t proto
	switch stored := name + "_0"; name {
	case "W":
		t = onnxTensor(stored, onnxHalf, a.dims, a.values)
	case "R":
		t = onnxListed(stored, onnxHalf, a.dims, a.values)
	default:
		t = onnxTensor(stored, onnxDouble, a.dims, a.values)
	}
	g.initializers = append(g.initializers, t)
	g.nodes = append(g.nodes, onnxNode("Cast", "", []string{name + "_0"}, []string{name}, attrInt("to", onnxFloat)))
}

// storeQuantized uses integers with scales: one for each row of W, and one in all of R and B.
func storeQuantized(g *onnxGraph, name string, a onnxArray) {
	scales, zeros, kind, axis := []float32{1.0 / 64}, []float32{100}, onnxUint8, 0
	dims := []int{}
	switch name {
	case "W":
		kind, axis, dims = onnxInt8, -2, []int{a.dims[1]}
		scales, zeros = make([]float32, a.dims[1]), make([]float32, a.dims[1])
		for i := range scales {
			scales[i], zeros[i] = 1/float32(int(32)<<(i%2)), float32(i%5-2)
		}
	case "B":
		kind = onnxInt32
		zeros = []float32{0}
	}
	q := make([]float32, len(a.values))
	for i, v := range a.values {
		k := 0
		if name == "W" {
			k = i / a.dims[2] % a.dims[1]
		}
		q[i] = float32(math.Round(float64(v/scales[k]))) + zeros[k]
	}
	g.initializers = append(g.initializers, onnxTensor(name+"_q", kind, a.dims, q), onnxTensor(name+"_s", onnxFloat, dims, scales))
	inputs := []string{name + "_q", name + "_s"}
	if name != "B" {
		g.initializers, inputs = append(g.initializers, onnxTensor(name+"_z", kind, dims, zeros)), append(inputs, name+"_z")
	}
	g.nodes = append(g.nodes, onnxNode("DequantizeLinear", "", inputs, []string{name}, attrInt("axis", axis)))
}

// storePyTorch stores gates in PyTorch's order and turns them as PyTorch's exporter does: Slice, Concat,
// Unsqueeze, and Concat of the directions.
func storePyTorch(g *onnxGraph, name string, a onnxArray) {
	per := len(a.values) / a.dims[0]
	var ways []string
	for d := range a.dims[0] {
		at := fmt.Sprintf("%s_%d", name, d)
		rows := a.dims[1]
		if name == "B" {
			rows /= 2 // the two biases are stored apart
		}
		h, wide := rows/4, per/a.dims[1]
		var parts []string
		for half := range a.dims[1] / rows {
			stored := fmt.Sprintf("%s_%d", at, half)
			dims := []int{rows}
			if name != "B" {
				dims = append(dims, wide)
			}
			values := a.values[d*per+half*rows*wide:][:rows*wide]
			g.initializers = append(g.initializers, onnxTensor(stored, onnxFloat, dims, values))
			for k, from := range []int{0, 3, 1} { // i; o; f and g
				to := from + 1
				if k == 2 {
					to = 3
				}
				part := fmt.Sprintf("%s_%d", stored, k)
				constant := func(what string, v int) string {
					g.nodes = append(g.nodes, onnxNode("Constant", "", nil, []string{part + what}, attrInts("value_ints", v)))
					return part + what
				}
				end := to * h
				if to == 4 {
					end = math.MaxInt64
				}
				g.nodes = append(g.nodes, onnxNode("Slice", "", []string{stored, constant("_s", from*h), constant("_e", end), constant("_a", 0), constant("_t", 1)}, []string{part}))
				parts = append(parts, part)
			}
		}
		g.initializers = append(g.initializers, onnxInts(at+"_axes", 0))
		g.nodes = append(g.nodes, onnxNode("Concat", "", parts, []string{at + "_c"}, attrInt("axis", 0)),
			onnxNode("Unsqueeze", "", []string{at + "_c", at + "_axes"}, []string{at + "_u"}))
		ways = append(ways, at+"_u")
	}
	g.nodes = append(g.nodes, onnxNode("Concat", "", ways, []string{name}, attrInt("axis", 0)))
}

// storeOld uses operators as they were in version 9, with attributes.
func storeOld(g *onnxGraph, name string, a onnxArray) {
	rows := len(a.values) / a.dims[len(a.dims)-1]
	g.initializers = append(g.initializers,
		onnxTensor(name+"_0", onnxFloat, []int{1, rows, 1, a.dims[len(a.dims)-1]}, a.values),
		onnxInts(name+"_shape", append([]float32{0}, slices.Repeat([]float32{-1}, len(a.dims)-1)[:1]...)...))
	g.nodes = append(g.nodes,
		onnxNode("Slice", "", []string{name + "_0"}, []string{name + "_1"}, attrInts("starts", 0, -1), attrInts("ends", rows, 1<<40), attrInts("axes", 1, 2)),
		onnxNode("Squeeze", "", []string{name + "_1"}, []string{name + "_2"}, attrInts("axes", 2)))
	if len(a.dims) == 3 {
		g.nodes = append(g.nodes, onnxNode("Identity", "", []string{name + "_2"}, []string{name}))
		return
	}
	g.nodes = append(g.nodes,
		onnxNode("Reshape", "", []string{name + "_2", name + "_shape"}, []string{name + "_3"}),
		onnxNode("Unsqueeze", "", []string{name + "_3"}, []string{name + "_4"}, attrInts("axes", 0)),
		onnxNode("Squeeze", "", []string{name + "_4"}, []string{name}, attrInts("axes", 0)))
}

// storeTurned stores axes in another order and backwards: Slice with a step of -1 and of 2, Transpose.
func storeTurned(g *onnxGraph, name string, a onnxArray) {
	rank := len(a.dims)
	dims := []int{a.dims[rank-1], 2 * a.dims[0]} // last, first twice, between
	perm := []int{1, 0}
	if rank == 3 {
		dims, perm = append(dims, a.dims[1]), []int{1, 2, 0}
	}
	stored := make([]float32, 2*len(a.values))
	for i := range stored {
		stored[i] = float32(i%7) / 8
	}
	for i, v := range a.values {
		last, middle, first := i%a.dims[rank-1], 0, i/(len(a.values)/a.dims[0])
		middles := 1
		if rank == 3 {
			middles = a.dims[1]
			middle = i / a.dims[2] % middles
		}
		last = a.dims[rank-1] - 1 - last
		stored[(last*dims[1]+2*first)*middles+middle] = v
	}
	ints := func(what string, values ...float32) string {
		g.initializers = append(g.initializers, onnxInts(name+what, values...))
		return name + what
	}
	g.initializers = append(g.initializers, onnxTensor(name+"_0", onnxFloat, dims, stored))
	g.nodes = append(g.nodes,
		onnxNode("Slice", "", []string{name + "_0", ints("_s", -1, 0), ints("_e", -1<<31, 1<<31), ints("_a", 0, 1), ints("_t", -1, 2)}, []string{name + "_1"}),
		onnxNode("Transpose", "", []string{name + "_1"}, []string{name}, attrInts("perm", perm...)))
}

// insideIf puts the node into both branches of an If. Its weights are of the graph around it.
func insideIf(g *onnxGraph, call *onnxCall) []proto {
	branch := func(name string) proto {
		return onnxGraph{nodes: []proto{call.write(name)}, outputs: call.types}.write()
	}
	then := branch("")
	outer := slices.Clone(call.outputs)
	for i := range call.types {
		call.outputs[i] += "_else"
		call.types[i].name += "_else"
	}
	g.initializers = append(g.initializers, onnxTensor("yes", onnxBool, nil, []float32{1}))
	g.nodes = append(g.nodes, onnxNode("If", "", []string{"yes"}, outer, attrGraph("then_branch", then), attrGraph("else_branch", branch("other"))))
	for i, name := range outer {
		g.outputs = append(g.outputs, valueInfo{name, onnxFloat, call.types[i].dims})
	}
	return nil
}

// insideLoop puts the node into a loop that carries its state, for one turn.
func insideLoop(g *onnxGraph, call *onnxCall) []proto {
	initial := slices.Index(call.inputs, "initial_h")
	call.inputs[initial] = "carried"
	body := onnxGraph{
		nodes:   []proto{call.write(""), onnxNode("Identity", "", []string{"goon"}, []string{"goon_out"})},
		inputs:  []valueInfo{{"turn", onnxInt64, []int{}}, {"goon", onnxBool, []int{}}, {"carried", onnxFloat, call.types[1].dims}},
		outputs: []valueInfo{{"goon_out", onnxBool, []int{}}, call.types[1], call.types[0]},
	}
	g.initializers = append(g.initializers, onnxTensor("turns", onnxInt64, nil, []float32{1}), onnxTensor("yes", onnxBool, nil, []float32{1}))
	g.nodes = append(g.nodes, onnxNode("Loop", "loop", []string{"turns", "yes", "initial_h"}, []string{"last", "all"}, attrGraph("body", body.write())),
		onnxNode("Identity", "", []string{"last"}, []string{"Out_h"}), onnxNode("Identity", "", []string{"all"}, []string{"Out"}))
	g.outputs = []valueInfo{{"Out", onnxFloat, append([]int{1}, call.types[0].dims...)}, {"Out_h", onnxFloat, call.types[1].dims}}
	return nil
}

// insideFunction makes the node a function that is called twice, first without the biases.
func insideFunction(g *onnxGraph, call *onnxCall) []proto {
	fn := proto(nil).text(1, "Local").text(10, "local").bytes(9, proto(nil).text(1, "").int(2, 17))
	inner := []string{"x", "w", "r", "b"}
	for _, name := range inner {
		fn = fn.text(4, name)
	}
	for _, name := range call.outputs {
		fn = fn.text(5, name)
	}
	fn = fn.text(6, "units").bytes(11, attrText("way", "reverse"))
	fn = fn.bytes(7, onnxNode("LSTM", "", inner, call.outputs, attrRef("hidden_size", "units", 2), attrRef("direction", "way", 3), attrRef("input_forget", "missing", 2)))
	node := func(inputs, outputs []string, attributes ...proto) proto {
		return onnxNode("Local", "", inputs, outputs, attributes...).text(7, "local")
	}
	units := attrInt("units", call.sizes.hidden)
	g.nodes = append(g.nodes, node(append(call.inputs[:3:3], ""), []string{"A", "A_h", "A_c"}, units, attrText("way", "forward")), node(call.inputs, call.outputs, units))
	g.outputs = call.types
	return []proto{fn}
}
