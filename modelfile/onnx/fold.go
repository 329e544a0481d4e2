package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A folding computes what a node makes from constants.
type folding struct {
	*Node
	output int // which of the node's outputs is computed
	chain  int // nodes that need the result
}

// fold returns what computes an operator that exporters put between stored weights and recurrent
// operators; nil: it is another.
func fold(operator string) func(folding) (*Tensor, error) {
	switch operator {
	case "Constant":
		return folding.constantNode
	case "Identity":
		return folding.identity
	case "Cast":
		return folding.cast
	case "Transpose":
		return folding.transpose
	case "Concat":
		return folding.concat
	case "Slice":
		return folding.slice
	case "Split":
		return folding.split
	case "Squeeze":
		return folding.squeeze
	case "Unsqueeze":
		return folding.unsqueeze
	case "Reshape":
		return folding.reshape
	case "DequantizeLinear":
		return folding.dequantize
	}
	return nil
}

// operand is input i.
func (f folding) operand(i int) (*Tensor, error) { return f.Node.constant(i, f.chain+1) }

// numbers are the integers of input i, or of the attribute, as older versions of operators have it;
// nil: neither is there.
func (f folding) numbers(i int, attribute string) ([]int64, error) {
	if a, err := f.Attribute(attribute); err != nil || a != nil {
		if a == nil {
			return nil, err
		}
		return a.Ints, nil
	}
	if !f.Has(i) {
		return nil, nil
	}
	t, err := f.operand(i)
	if err != nil {
		return nil, err
	}
	return t.integers()
}

// axis turns a number of an axis, negative from the last, into an index.
func axis(a int64, rank int) (int, error) {
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(rank) {
		return 0, fmt.Errorf("a node names axis %d of a tensor of %d dimensions", a, rank)
	}
	return int(a), nil
}

func (f folding) constantNode() (*Tensor, error) {
	for _, name := range []string{"value", "value_float", "value_floats", "value_int", "value_ints"} {
		a, err := f.Attribute(name)
		if err != nil {
			return nil, err
		}
		if a == nil {
			continue
		}
		t := &Tensor{}
		switch name {
		case "value":
			if a.tensor == nil {
				return nil, errors.New("a node Constant has no value")
			}
			return f.scope.model.decode(a.tensor)
		case "value_float":
			t.Values = []float32{a.Float}
		case "value_int":
			t.Values = []float32{float32(a.Int)}
		case "value_floats":
			t.Values, t.Dims = a.Floats, []int{len(a.Floats)}
		case "value_ints":
			t.Dims = []int{len(a.Ints)}
			for _, v := range a.Ints {
				t.Values = append(t.Values, float32(v))
			}
		}
		return t, f.scope.model.Spend(len(t.Values))
	}
	if a, err := f.Attribute("sparse_value"); a != nil || err != nil {
		return nil, errors.New("it is sparse")
	}
	return nil, errors.New("a node Constant has no value")
}

func (f folding) identity() (*Tensor, error) { return f.operand(0) }

// cast is exact where values are. Casts to types that would round are not computed.
func (f folding) cast() (*Tensor, error) {
	to, err := f.Integer("to", 0)
	if err != nil {
		return nil, err
	}
	if kind := dtypes[uint64(to)]; !slices.Contains([]string{"FLOAT", "DOUBLE", "INT32", "INT64"}, kind.name) {
		return nil, Varies("it is computed by the operator Cast to a type that rounds")
	}
	t, err := f.operand(0)
	if err == nil && (to == 6 || to == 7) {
		_, err = t.integers()
	}
	return t, err
}

// strided reads a tensor of those dimensions from the values of t: along each axis they are so far apart.
func (f folding) strided(t *Tensor, dims []int, from int, apart []int) (*Tensor, error) {
	n := 1
	for _, d := range dims {
		n *= d
	}
	if err := f.scope.model.Spend(n); err != nil {
		return nil, err
	}
	out := &Tensor{dims, make([]float32, n)}
	at, index := from, make([]int, len(dims))
	for i := range out.Values {
		out.Values[i] = t.Values[at]
		for k := len(dims) - 1; k >= 0; k-- {
			if index[k]++; index[k] < dims[k] {
				at += apart[k]
				break
			}
			at -= apart[k] * (dims[k] - 1)
			index[k] = 0
		}
	}
	return out, nil
}

// strides are how far apart values of t are along each axis.
func (t *Tensor) strides() []int {
	out, n := make([]int, len(t.Dims)), 1
	for k := len(t.Dims) - 1; k >= 0; k-- {
		out[k], n = n, n*t.Dims[k]
	}
	return out
}

func (f folding) transpose() (*Tensor, error) {
	t, err := f.operand(0)
	if err != nil {
		return nil, err
	}
	a, err := f.Attribute("perm")
	if err != nil {
		return nil, err
	}
	rank := len(t.Dims)
	dims, apart, strides, used := make([]int, rank), make([]int, rank), t.strides(), make([]bool, rank)
	for k := range dims {
		from := int64(rank - 1 - k)
		if a != nil && len(a.Ints) != rank {
			return nil, fmt.Errorf("a node Transpose permutes %d axes of a tensor of %d", len(a.Ints), rank)
		} else if a != nil {
			from = a.Ints[k]
		}
		i, err := axis(from, rank)
		if err != nil || used[i] {
			return nil, errors.New("the axes of a node Transpose are no permutation")
		}
		dims[k], apart[k], used[i] = t.Dims[i], strides[i], true
	}
	return f.strided(t, dims, 0, apart)
}

func (f folding) slice() (*Tensor, error) {
	t, err := f.operand(0)
	if err != nil {
		return nil, err
	}
	var parts [4][]int64 // starts, ends, axes, steps
	for i, name := range []string{"starts", "ends", "axes", "steps"} {
		if parts[i], err = f.numbers(i+1, name); err != nil {
			return nil, err
		}
	}
	starts, ends, axes, steps := parts[0], parts[1], parts[2], parts[3]
	if len(starts) != len(ends) || axes != nil && len(axes) != len(starts) || steps != nil && len(steps) != len(starts) || len(starts) > len(t.Dims) {
		return nil, errors.New("a node Slice has starts, ends, axes and steps of different lengths")
	}
	dims, apart, from := slices.Clone(t.Dims), t.strides(), 0
	strides, used := t.strides(), make([]bool, len(dims))
	for i := range starts {
		a, step := int64(i), int64(1)
		if axes != nil {
			a = axes[i]
		}
		if steps != nil {
			step = steps[i]
		}
		k, err := axis(a, len(dims))
		if err != nil {
			return nil, err
		}
		if used[k] || step == 0 {
			return nil, errors.New("a node Slice has the step 0, or names an axis twice")
		}
		start, n := span(starts[i], ends[i], step, int64(dims[k]))
		from, used[k] = from+start*strides[k], true
		dims[k], apart[k] = n, int(step)*strides[k]
	}
	return f.strided(t, dims, from, apart)
}

// span is the first index of a slice of n elements, and how many it has.
func span(start, end, step, n int64) (int, int) {
	if start < 0 {
		start += n
	}
	if end < 0 {
		end += n
	}
	if step > 0 {
		start, end = min(max(start, 0), n), min(max(end, 0), n)
		return int(start), int(max(0, (end-start+step-1)/step))
	}
	start, end = min(max(start, 0), n-1), min(max(end, -1), n-1)
	return int(max(start, 0)), int(max(0, (start-end-step-1)/-step))
}

// split is one of the parts of a tensor along an axis. Parts are equal if their sizes are not given,
// but for a last one that may be smaller.
func (f folding) split() (*Tensor, error) {
	t, err := f.operand(0)
	if err != nil {
		return nil, err
	}
	along, err := f.Integer("axis", 0)
	if err != nil {
		return nil, err
	}
	k, err := axis(along, len(t.Dims))
	if err != nil {
		return nil, err
	}
	parts, err := f.numbers(1, "split")
	if err != nil {
		return nil, err
	}
	n := int64(len(f.outputs))
	each := (int64(t.Dims[k]) + n - 1) / n
	start, end := each*int64(f.output), each*int64(f.output+1)
	if parts != nil {
		if start = 0; len(parts) != len(f.outputs) {
			return nil, fmt.Errorf("a node Split has %d outputs, and sizes of %d", n, len(parts))
		}
		for i, size := range parts[:f.output+1] {
			if size < 0 || size > int64(t.Dims[k])-start {
				return nil, errors.New("a node Split makes more than there is")
			}
			if end = start + size; i < f.output {
				start = end
			}
		}
	}
	strides := t.strides()
	from, size := span(start, end, 1, int64(t.Dims[k]))
	dims := slices.Clone(t.Dims)
	dims[k] = size
	return f.strided(t, dims, from*strides[k], strides)
}

func (f folding) concat() (*Tensor, error) {
	a, err := f.Integer("axis", 0)
	if err != nil {
		return nil, err
	}
	var parts []*Tensor
	var out Tensor
	k, n := 0, 0
	for i := range f.inputs {
		t, err := f.operand(i)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if k, err = axis(a, len(t.Dims)); err != nil {
				return nil, err
			}
			out.Dims = slices.Clone(t.Dims)
			out.Dims[k] = 0
		}
		same := slices.Clone(t.Dims)
		if len(same) != len(out.Dims) {
			return nil, errors.New("a node Concat joins tensors of different ranks")
		}
		same[k] = out.Dims[k]
		if !slices.Equal(same, out.Dims) {
			return nil, errors.New("a node Concat joins tensors of different sizes")
		}
		out.Dims[k] += t.Dims[k]
		parts, n = append(parts, t), n+len(t.Values)
		if n > math.MaxInt32 {
			return nil, errors.New("a tensor has more than 2^31 values")
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("a node Concat joins nothing")
	}
	if err := f.scope.model.Spend(n); err != nil {
		return nil, err
	}
	out.Values = make([]float32, 0, n)
	inner, outer := 1, 1
	for i, d := range out.Dims {
		if i < k {
			outer *= d
		} else if i > k {
			inner *= d
		}
	}
	for i := range outer {
		for _, t := range parts {
			w := t.Dims[k] * inner
			out.Values = append(out.Values, t.Values[i*w:(i+1)*w]...)
		}
	}
	return &out, nil
}

func (f folding) squeeze() (*Tensor, error) {
	t, err := f.operand(0)
	if err != nil {
		return nil, err
	}
	axes, err := f.numbers(1, "axes")
	if err != nil {
		return nil, err
	}
	gone := make([]bool, len(t.Dims))
	for _, a := range axes {
		k, err := axis(a, len(t.Dims))
		if err != nil {
			return nil, err
		}
		if t.Dims[k] != 1 {
			return nil, errors.New("a node Squeeze takes away an axis of more than one element")
		}
		gone[k] = true
	}
	var dims []int
	for k, d := range t.Dims {
		if !gone[k] && (axes != nil || d != 1) {
			dims = append(dims, d)
		}
	}
	return &Tensor{dims, t.Values}, nil
}

func (f folding) unsqueeze() (*Tensor, error) {
	t, err := f.operand(0)
	if err != nil {
		return nil, err
	}
	axes, err := f.numbers(1, "axes")
	if err != nil {
		return nil, err
	}
	rank := len(t.Dims) + len(axes)
	if rank > mostRank {
		return nil, fmt.Errorf("a tensor has more than %d dimensions", mostRank)
	}
	dims := make([]int, rank)
	for _, a := range axes {
		k, err := axis(a, rank)
		if err != nil || dims[k] == 1 {
			return nil, errors.New("the axes of a node Unsqueeze are no axes of its result")
		}
		dims[k] = 1
	}
	rest := t.Dims
	for k := range dims {
		if dims[k] == 0 {
			dims[k], rest = rest[0], rest[1:]
		}
	}
	return &Tensor{dims, t.Values}, nil
}

func (f folding) reshape() (*Tensor, error) {
	t, err := f.operand(0)
	if err != nil {
		return nil, err
	}
	to, err := f.numbers(1, "shape")
	if err != nil {
		return nil, err
	}
	wrong := errors.New("a node Reshape changes the number of values")
	dims, rest, n := slices.Clone(to), -1, int64(1)
	for k, d := range to {
		switch {
		case d == -1 && rest < 0:
			rest = k
			continue
		case d == 0 && k < len(t.Dims):
			dims[k] = int64(t.Dims[k])
		case d < 0:
			return nil, wrong
		}
		if dims[k] > 0 && n > math.MaxInt32/dims[k] {
			return nil, wrong
		}
		n *= dims[k]
	}
	if rest >= 0 {
		if n == 0 || int64(len(t.Values))%n != 0 {
			return nil, wrong
		}
		dims[rest] = int64(len(t.Values)) / n
	}
	out, count, err := sizes(dims)
	if err == nil && count != len(t.Values) {
		err = wrong
	}
	return &Tensor{out, t.Values}, err
}

// dequantize is (x - zero point)·scale, with one scale in all or one for each element of an axis.
func (f folding) dequantize() (*Tensor, error) {
	x, err := f.operand(0)
	if err != nil {
		return nil, err
	}
	scale, err := f.operand(1)
	if err != nil {
		return nil, err
	}
	var zero *Tensor
	if f.Has(2) {
		if zero, err = f.operand(2); err != nil {
			return nil, err
		}
	}
	n := len(scale.Values)
	if block, err := f.Integer("block_size", 0); err != nil || block != 0 || len(scale.Dims) > 1 || zero != nil && len(zero.Values) != n {
		return nil, Varies("it is computed by the operator DequantizeLinear of blocks")
	}
	apart := 1 // values of one scale that follow each other
	if n != 1 {
		a, err := f.Integer("axis", 1)
		if err != nil {
			return nil, err
		}
		k, err := axis(a, len(x.Dims))
		if err != nil {
			return nil, err
		}
		if x.Dims[k] != n {
			return nil, errors.New("a node DequantizeLinear has more or fewer scales than its axis has elements")
		}
		apart = x.strides()[k]
	}
	if err := f.scope.model.Spend(len(x.Values)); err != nil {
		return nil, err
	}
	out := &Tensor{x.Dims, make([]float32, len(x.Values))}
	for i, v := range x.Values {
		k := i / apart % n
		if zero != nil {
			v -= zero.Values[k]
		}
		out.Values[i] = v * scale.Values[k]
	}
	return out, nil
}
