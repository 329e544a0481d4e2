package modelfile

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// foldModels is how many models of random chains a folder has beside those of onnxSpecs.
const foldModels = 12

// A foldChain writes nodes that rearrange a constant, one after the other.
type foldChain struct {
	onnxGraph
	rng  *rand.Rand
	name string // of the value so far
	dims []int
}

// foldModel is an RNN whose W is what a random chain of nodes makes of a constant. W is an output.
func foldModel(rng *rand.Rand) []byte {
	c := &foldChain{rng: rng, name: "stored"}
	n := 1
	for range 1 + rng.IntN(4) {
		d := 1 + rng.IntN(4)
		if n*d <= 24 {
			c.dims, n = append(c.dims, d), n*d
		}
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i + 1)
	}
	c.initializers = append(c.initializers, onnxTensor("stored", onnxFloat, c.dims, values))
	for range 3 + rng.IntN(6) {
		[]func(){c.transpose, c.slice, c.split, c.concat, c.squeeze, c.unsqueeze, c.reshape, c.cast}[rng.IntN(8)]()
	}
	c.apply("Reshape", []string{c.ints(1, -1, 1)})
	n = c.size()
	c.initializers = append(c.initializers, onnxTensor("R", onnxFloat, []int{1, n, n}, make([]float32, n*n)))
	c.nodes = append(c.nodes, onnxNode("Identity", "", []string{c.name}, []string{"W"}), onnxNode("RNN", "", []string{"X", "W", "R"}, []string{"Y"}, attrInt("hidden_size", n)))
	c.inputs = []valueInfo{{"X", onnxFloat, []int{1, 1, 1}}}
	c.outputs = []valueInfo{{"W", onnxFloat, []int{1, n, 1}}}
	return onnxModel(17, c.write())
}

func (c *foldChain) size() int {
	n := 1
	for _, d := range c.dims {
		n *= d
	}
	return n
}

// apply adds a node that reads the value so far and other inputs.
func (c *foldChain) apply(op string, inputs []string, attributes ...proto) {
	next := fmt.Sprint("v", len(c.nodes))
	c.nodes = append(c.nodes, onnxNode(op, "", append([]string{c.name}, inputs...), []string{next}, attributes...))
	c.name = next
}

// ints adds a constant.
func (c *foldChain) ints(values ...int) string {
	name := fmt.Sprint("i", len(c.initializers))
	floats := make([]float32, len(values))
	for i, v := range values {
		floats[i] = float32(v)
	}
	c.initializers = append(c.initializers, onnxInts(name, floats...))
	return name
}

// axis is a random axis, and its number counted from one of the two ends.
func (c *foldChain) axis(rank int) (k, number int) {
	k = c.rng.IntN(rank)
	return k, k - rank*c.rng.IntN(2)
}

func (c *foldChain) transpose() {
	perm := c.rng.Perm(len(c.dims))
	if c.rng.IntN(4) == 0 {
		slices.Reverse(c.dims)
		c.apply("Transpose", nil)
		return
	}
	dims := make([]int, len(perm))
	for k, from := range perm {
		dims[k] = c.dims[from]
	}
	c.dims = dims
	c.apply("Transpose", nil, attrInts("perm", perm...))
}

// slice keeps at least one element.
func (c *foldChain) slice() {
	if len(c.dims) == 0 {
		return
	}
	k, number := c.axis(len(c.dims))
	d := c.dims[k]
	from, to := c.rng.IntN(d), c.rng.IntN(d)
	step := 1 + c.rng.IntN(2)
	from, to = min(from, to), max(from, to)
	c.dims[k] = (to-from)/step + 1
	switch c.rng.IntN(4) {
	case 0:
		c.apply("Slice", []string{c.ints(from), c.ints(to + 1), c.ints(number), c.ints(step)})
	case 1: // from the end
		c.apply("Slice", []string{c.ints(from - d), c.ints(min(to+1, d)), c.ints(number), c.ints(step)})
	case 2: // backwards
		c.apply("Slice", []string{c.ints(to), c.ints(from - d - 1), c.ints(number), c.ints(-step)})
	default: // to the end
		c.dims[k] = (d-1-from)/step + 1
		c.apply("Slice", []string{c.ints(from), c.ints(1 << 31), c.ints(number), c.ints(step)})
	}
}

// split keeps one of two or three parts.
func (c *foldChain) split() {
	if len(c.dims) == 0 {
		return
	}
	k, number := c.axis(len(c.dims))
	d, inputs := c.dims[k], []string{c.name}
	var sizes []int
	switch n := 2 + c.rng.IntN(2); {
	case d%n == 0 && c.rng.IntN(2) == 0: // equal parts
		sizes = slices.Repeat([]int{d / n}, n)
	default:
		first := 1 + c.rng.IntN(d)
		sizes = []int{first, d - first, 0}
		inputs = append(inputs, c.ints(sizes...))
	}
	keep := c.rng.IntN(len(sizes))
	for sizes[keep] == 0 {
		keep = c.rng.IntN(len(sizes))
	}
	outputs := make([]string, len(sizes))
	for i := range outputs {
		outputs[i] = fmt.Sprintf("v%d part %d", len(c.nodes), i)
	}
	c.nodes = append(c.nodes, onnxNode("Split", "", inputs, outputs, attrInt("axis", number)))
	c.name, c.dims[k] = outputs[keep], sizes[keep]
}

func (c *foldChain) concat() {
	if len(c.dims) == 0 || c.size() > 12 {
		return
	}
	k, number := c.axis(len(c.dims))
	c.dims[k] *= 2
	c.apply("Concat", []string{c.name}, attrInt("axis", number))
}

func (c *foldChain) squeeze() {
	ones := slices.Index(c.dims, 1)
	if ones < 0 || c.rng.IntN(3) == 0 {
		c.dims = slices.DeleteFunc(c.dims, func(d int) bool { return d == 1 })
		c.apply("Squeeze", nil)
		return
	}
	c.apply("Squeeze", []string{c.ints(ones - len(c.dims)*c.rng.IntN(2))})
	c.dims = slices.Delete(c.dims, ones, ones+1)
}

func (c *foldChain) unsqueeze() {
	if len(c.dims) > 4 {
		return
	}
	k, number := c.axis(len(c.dims) + 1)
	c.dims = slices.Insert(c.dims, k, 1)
	c.apply("Unsqueeze", []string{c.ints(number)})
}

// reshape keeps the first dimension and joins or divides the rest.
func (c *foldChain) reshape() {
	if len(c.dims) == 0 {
		return
	}
	rest := c.size() / c.dims[0]
	c.dims = []int{c.dims[0], rest}
	to := []int{0, -1}
	if rest%2 == 0 {
		c.dims, to = []int{c.dims[0], 2, rest / 2}, []int{0, 2, -1}
	}
	c.apply("Reshape", []string{c.ints(to...)})
}

func (c *foldChain) cast() {
	c.apply("Cast", nil, attrInt("to", onnxInt64))
	c.apply("Cast", nil, attrInt("to", onnxFloat))
}

// checkFolds compares what chains make in the models of a folder.
func checkFolds(t *testing.T, dir string, answers map[string]onnxAnswer) {
	t.Helper()
	for i := range foldModels {
		name := fmt.Sprintf("fold-%d", i)
		f, err := Read(filepath.Join(dir, name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		l := f.Layers[0]
		if l.Declined != "" {
			t.Errorf("%s is declined: %s", name, l.Declined)
			continue
		}
		if want := answers[name].Out["W"]; !slices.Equal(l.Tensors[0].Values, want) {
			t.Errorf("%s: the nodes make %v, ONNX Runtime makes %v", name, l.Tensors[0].Values, want)
		}
	}
}
