package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnnbench/modelfile/onnx"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
)

// Inputs of the recurrent operators. sequence_lens, number 4, is about the input and not the layer.
const (
	onnxX = iota
	onnxW
	onnxR
	onnxB
	_
	onnxFirst // initial_h, and initial_c after it
	_
	onnxP
)

// An onnxOperator is how ONNX defines a recurrent operator.
type onnxOperator struct {
	gates     int
	functions []string // activations where the node names none
	states    []string
	cell      func(o *onnxLayer, functions []string) (onnxCell, error)
}

// An onnxCell is a cell for an operator.
type onnxCell struct {
	name  string
	gates []onnxGate // the cell's, in its order
	peeps []int      // the operator's number of each peephole of the cell
}

// An onnxGate is a gate of the operator. Where negated, the cell takes its sigmoid from 1.
type onnxGate struct {
	number  int
	negated bool
}

func onnxGates(numbers ...int) []onnxGate {
	var gates []onnxGate
	for _, n := range numbers {
		gates = append(gates, onnxGate{number: n})
	}
	return gates
}

// onnxOperators are ONNX's recurrent operators. Gates are i, o, f, c of LSTM and z, r, h of GRU;
// peepholes are i, o, f.
var onnxOperators = map[string]onnxOperator{
	"LSTM": {4, []string{"Sigmoid", "Tanh", "Tanh"}, []string{"h", "c"}, (*onnxLayer).lstm},
	"GRU":  {3, []string{"Sigmoid", "Tanh"}, []string{"h"}, (*onnxLayer).gru},
	"RNN":  {1, []string{"Tanh"}, []string{"h"}, (*onnxLayer).rnn},
}

// An onnxReader reads the layers of a model.
type onnxReader struct {
	model      *onnx.Model
	layers     []Layer
	names      []onnxName
	parameters map[onnxForm][]rnn.Tensor // of the layers so far; layers of equal constants share values
}

// An onnxForm is what the parameters of a layer follow from.
type onnxForm struct {
	cell       string
	w, r, b, p *onnx.Tensor
}

// An onnxLayer is a recurrent operator being read.
type onnxLayer struct {
	*onnx.Node
	onnxOperator
	*Layer
	reader *onnxReader
	ways   int
	layout int64
}

// layer reads a node; false: it is no recurrent operator.
func (r *onnxReader) layer(n *onnx.Node) (Layer, bool) {
	l := Layer{Operator: n.Operator, Point: axis.Point{Layers: 1}}
	if n.Domain == "com.microsoft" && n.Operator == "DynamicQuantizeLSTM" {
		n = n.As("LSTM")
		l.Declined = "it is the quantised operator of ONNX Runtime, which multiplies integers"
	}
	op, ok := onnxOperators[n.Operator]
	if !ok || n.Domain != "" {
		return l, false
	}
	o := &onnxLayer{Node: n, onnxOperator: op, Layer: &l, reader: r}
	err := o.sizes()
	if err == nil && l.Declined == "" {
		err = o.read()
	}
	if err != nil && l.Declined == "" {
		l.Declined = err.Error()
	}
	return l, true
}

// sizes sets what can be known without weights.
func (o *onnxLayer) sizes() error {
	var err error
	if o.layout, err = o.Integer("layout", 0); err != nil {
		return err
	}
	hidden, err := o.Integer("hidden_size", 0)
	if err != nil {
		return err
	}
	x, w, r := o.dims(onnxX), o.dims(onnxW), o.dims(onnxR)
	if o.Layer.Operator != o.Node.Operator { // integers are stored the other way round
		w[1], w[2], r[1], r[2] = w[2], w[1], r[2], r[1]
	}
	if hidden == 0 {
		hidden = int64(max(r[2], 0))
	}
	if o.Point.Input = w[2]; w[2] < 0 {
		o.Point.Input = max(x[2], 0)
	}
	o.Steps, o.Batch = max(x[0], 0), max(x[1], 0)
	if o.layout == 1 {
		o.Steps, o.Batch = o.Batch, o.Steps
	}
	if hidden < 0 || hidden > 1<<30 {
		return fmt.Errorf("its hidden_size is %d", hidden)
	}
	o.Point.Hidden = int(hidden)
	return o.direction()
}

// dims are the three sizes of an input; -1: not known.
func (o *onnxLayer) dims(i int) [3]int {
	if d := o.Shape(i); len(d) == 3 {
		return [3]int(d)
	}
	return [3]int{-1, -1, -1}
}

func (o *onnxLayer) direction() error {
	a, err := o.Attribute("direction")
	if err != nil {
		return err
	}
	o.ways = 1
	if a == nil {
		return nil
	}
	switch a.String {
	case "forward":
	case "reverse":
		o.Point.Direction = "reverse"
	case "bidirectional":
		o.Point.Direction, o.ways = "both", 2
	default:
		return fmt.Errorf("its direction is %q", onnxText(a.String))
	}
	return nil
}

// read sets the rest, or says why the layer cannot be measured.
func (o *onnxLayer) read() error {
	functions, err := o.activations()
	if err != nil {
		return err
	}
	if o.layout != 0 && o.layout != 1 {
		return fmt.Errorf("its layout is %d", o.layout)
	}
	for _, name := range []string{"clip", "activation_alpha", "activation_beta"} {
		switch a, err := o.Attribute(name); {
		case err != nil:
			return err
		case a != nil && (name == "clip" || len(a.Floats) > 0):
			return fmt.Errorf("it has the attribute %s", name)
		}
	}
	cell, err := o.cell(o, functions)
	if err != nil {
		return err
	}
	o.Point.Cell = cell.name
	form, err := o.constants(cell)
	if err != nil {
		return err
	}
	parameters, known := o.reader.parameters[form]
	if !known {
		if parameters, err = o.tensors(cell, form); err != nil {
			return err
		}
		o.reader.parameters[form] = parameters
	}
	return o.start(parameters)
}

// activations are those of one way, spelled as ONNX does.
func (o *onnxLayer) activations() ([]string, error) {
	a, err := o.Attribute("activations")
	if err != nil {
		return nil, err
	}
	n := len(o.functions)
	if a == nil || len(a.Strings) == 0 {
		return o.functions, nil
	}
	if len(a.Strings) != o.ways*n && len(a.Strings) != 2*n {
		return nil, fmt.Errorf("it has %d activations, not %d", len(a.Strings), o.ways*n)
	}
	spelled := make([]string, o.ways*n)
	for i := range spelled {
		spelled[i] = onnxText(a.Strings[i])
		for _, name := range []string{"Sigmoid", "Tanh", "Relu"} {
			if strings.EqualFold(spelled[i], name) {
				spelled[i] = name
			}
		}
	}
	if o.ways == 2 && !slices.Equal(spelled[:n], spelled[n:]) {
		return nil, errors.New("its two directions have different activations")
	}
	return spelled[:n], nil
}

// usual says what is wrong with activations unless they are the operator's own.
func (o *onnxLayer) usual(functions []string) error {
	if slices.Equal(functions, o.functions) {
		return nil
	}
	return fmt.Errorf("its activations are %s, and only %s are measured", strings.Join(functions, ", "), strings.Join(o.functions, ", "))
}

// lstm chooses between the plain cell, that with peepholes and that with coupled gates.
func (o *onnxLayer) lstm(functions []string) (onnxCell, error) {
	coupled, err := o.Integer("input_forget", 0)
	if err != nil {
		return onnxCell{}, err
	}
	peeps := o.Has(onnxP) && !o.Zero(onnxP)
	switch err := o.usual(functions); {
	case err != nil:
		return onnxCell{}, err
	case coupled != 0 && peeps:
		return onnxCell{}, errors.New("its input and forget gates are coupled, and it has peepholes")
	case coupled != 0: // f = 1 - i = 1 - sigmoid(x) = sigmoid(-x)
		return onnxCell{name: "cifg", gates: []onnxGate{{0, true}, {3, false}, {1, false}}}, nil
	case peeps:
		return onnxCell{name: "lstm-peephole", gates: onnxGates(0, 2, 3, 1), peeps: []int{0, 2, 1}}, nil
	}
	return onnxCell{name: "lstm", gates: onnxGates(0, 2, 3, 1)}, nil
}

func (o *onnxLayer) gru(functions []string) (onnxCell, error) {
	after, err := o.Integer("linear_before_reset", 0)
	if err == nil {
		err = o.usual(functions)
	}
	if after == 0 {
		return onnxCell{name: "gru-before", gates: onnxGates(1, 0, 2)}, err
	}
	return onnxCell{name: "gru", gates: onnxGates(1, 0, 2)}, err
}

func (o *onnxLayer) rnn(functions []string) (onnxCell, error) {
	switch functions[0] {
	case "Tanh":
		return onnxCell{name: "rnn-tanh", gates: onnxGates(0)}, nil
	case "Relu":
		return onnxCell{name: "rnn-relu", gates: onnxGates(0)}, nil
	}
	return onnxCell{}, fmt.Errorf("its activation is %s, and only Tanh and Relu are measured", functions[0])
}

// constants reads the parameters as the file has them. Those that are left out, and 0, are nil.
func (o *onnxLayer) constants(c onnxCell) (onnxForm, error) {
	form := onnxForm{cell: c.name}
	var err error
	h := o.Point.Hidden
	if form.w, err = o.constant(onnxW, "W", o.ways, o.gates*h, o.Point.Input); err != nil {
		return form, err
	}
	if form.r, err = o.constant(onnxR, "R", o.ways, o.gates*h, h); err != nil {
		return form, err
	}
	if o.Has(onnxB) {
		if form.b, err = o.constant(onnxB, "B", o.ways, 2*o.gates*h); err != nil {
			return form, err
		}
	}
	if c.peeps != nil {
		form.p, err = o.constant(onnxP, "P", o.ways, len(c.peeps)*h)
	}
	return form, err
}

// constant reads input i, which must have these sizes.
func (o *onnxLayer) constant(i int, name string, dims ...int) (*onnx.Tensor, error) {
	t, err := o.Constant(i)
	if err != nil {
		return nil, fmt.Errorf("its input %s is not known: %w", name, err)
	}
	switch {
	case slices.Contains(dims, 0):
		return nil, fmt.Errorf("its input %s has the sizes %v, which fit no layer", name, t.Dims)
	case !slices.Equal(t.Dims, dims):
		return nil, fmt.Errorf("its input %s has the sizes %v, not %v", name, t.Dims, dims)
	}
	return t, nil
}

// named is the name of a tensor of one way.
func (o *onnxLayer) named(what string, way int) string {
	p := rnn.Problem{Layers: 1}
	if o.ways == 2 {
		p.Direction = rnn.BothWays
	}
	return p.Named(what, way)
}

// tensors lays out the parameters as rnn.Data has them.
func (o *onnxLayer) tensors(c onnxCell, form onnxForm) ([]rnn.Tensor, error) {
	g, h, input := o.gates, o.Point.Hidden, o.Point.Input
	if err := o.reader.model.Spend(o.ways * h * (len(c.gates)*(input+h+2) + len(c.peeps))); err != nil {
		return nil, err
	}
	var out []rnn.Tensor
	for d := range o.ways {
		add := func(what string, rows, cols int, values []float32) {
			out = append(out, rnn.Tensor{Name: o.named(what, d), Rows: rows, Cols: cols, Values: values})
		}
		bias := make([]float32, 2*g*h)
		if form.b != nil {
			bias = form.b.Values[d*2*g*h : (d+1)*2*g*h]
		}
		add("weight_ih", len(c.gates)*h, input, c.rows(form.w.Values[d*g*h*input:], h*input))
		add("weight_hh", len(c.gates)*h, h, c.rows(form.r.Values[d*g*h*h:], h*h))
		add("bias_ih", 1, len(c.gates)*h, c.rows(bias, h))
		add("bias_hh", 1, len(c.gates)*h, c.rows(bias[g*h:], h))
		if form.p != nil {
			var peeps []float32
			for _, k := range c.peeps {
				peeps = append(peeps, form.p.Values[(d*len(c.peeps)+k)*h:][:h]...)
			}
			add("peephole", 1, len(peeps), peeps)
		}
	}
	return out, nil
}

// rows takes the cell's gates, of so many values each, from the operator's.
func (c onnxCell) rows(of []float32, size int) []float32 {
	out := make([]float32, 0, len(c.gates)*size)
	for _, g := range c.gates {
		out = append(out, of[g.number*size:(g.number+1)*size]...)
		if g.negated {
			for i := len(out) - size; i < len(out); i++ {
				out[i] = -out[i]
			}
		}
	}
	return out
}

// start adds first states to parameters. Those that the model's user gives, and those that the model
// computes, are not there.
func (o *onnxLayer) start(parameters []rnn.Tensor) error {
	o.Tensors, o.Zeros = slices.Clone(parameters), true
	firsts := make([]*onnx.Tensor, len(o.states))
	var zero []bool
	for k := range firsts {
		i := onnxFirst + k
		zero = append(zero, !o.Has(i) || o.Zero(i))
		if !zero[k] {
			t, err := o.Constant(i)
			if varies := onnx.Varies(""); err != nil && !errors.As(err, &varies) {
				return fmt.Errorf("its input initial_%s is not known: %w", o.states[k], err)
			}
			firsts[k], o.Zeros = t, o.Zeros && t != nil
		}
	}
	for k, s := range o.states {
		switch {
		case firsts[k] != nil:
			if err := o.first(s, firsts[k]); err != nil {
				return err
			}
		case zero[k] && !o.Zeros: // another one is given
			for d := range o.ways {
				o.add(s, d, make([]float32, o.Point.Hidden))
			}
		}
	}
	return nil
}

// first adds the first states s, a row for each sequence.
func (o *onnxLayer) first(s string, t *onnx.Tensor) error {
	h := o.Point.Hidden
	dims := slices.Clone(t.Dims) // ways, batch, units
	if len(dims) == 3 && o.layout == 1 {
		dims[0], dims[1] = dims[1], dims[0]
	}
	if len(dims) != 3 || dims[0] != o.ways || dims[1] < 1 || dims[2] != h {
		return fmt.Errorf("its input initial_%s has the sizes %v, which do not fit the layer", s, t.Dims)
	}
	batch := dims[1]
	if o.Batch == 0 && batch > 1 {
		o.Batch = batch
	}
	if o.Batch > 0 && o.Batch != batch {
		return fmt.Errorf("its input initial_%s is for %d sequences, and the layer for %d", s, batch, o.Batch)
	}
	if err := o.reader.model.Spend(len(t.Values)); err != nil {
		return err
	}
	for d := range o.ways {
		values := make([]float32, 0, batch*h)
		for b := range batch {
			at := d*batch + b
			if o.layout == 1 {
				at = b*o.ways + d
			}
			values = append(values, t.Values[at*h:(at+1)*h]...)
		}
		o.add(s, d, values)
	}
	return nil
}

// add adds the first states s of one way.
func (o *onnxLayer) add(s string, way int, values []float32) {
	h := o.Point.Hidden
	o.Tensors = append(o.Tensors, rnn.Tensor{Name: o.named(s+"0", way), Rows: len(values) / h, Cols: h, PerSequence: true, Values: values})
}
