package graph

import (
	"fmt"
	"math"
	"slices"
)

// A Size says how many frames of how many sequences are computed. Rows of vectors lie frame after
// frame: row t·Batch+b is frame t of sequence b.
type Size struct {
	Batch   int
	History int // frames from a previous minibatch: gradients flow through them, but their errors do not count
	Steps   int // new frames
	Train   bool
}

// Frames is the number of all frames.
func (s Size) Frames() int { return s.History + s.Steps }

// Values are matrices by name, row by row.
type Values map[string][]float64

// Reference computes g frame by frame by the equations (1) to (19). in holds every parameter and
// the initial activations, the earliest first. It holds given inputs for all frames, and given
// classes and gradients for the new ones.
//
// For each layer it returns "y NAME" for all frames and for a softmax "loss NAME" for the new ones;
// where training, "grad NAME" for every parameter, dense input and initial activation. The error is
// the mean cross-entropy of the new frames, and what the given gradients add to it. It flows back
// to frame 0: BPTT(History + Steps; Steps) in the words of section 3.2.
func (g *Graph) Reference(size Size, in Values) (Values, error) {
	a, err := g.Analyze()
	if err != nil {
		return nil, err
	}
	r := &reference{Graph: g, Size: size, in: in, out: Values{}}
	for _, c := range a.Components {
		r.order = append(r.order, c.Layers...)
	}
	if err := r.allocate(); err != nil {
		return nil, err
	}
	for t := range size.Frames() {
		for _, k := range r.order {
			r.forward(k, t)
		}
	}
	if size.Train {
		for t := size.Frames() - 1; t >= 0; t-- {
			for _, k := range slices.Backward(r.order) {
				r.backward(k, t)
			}
			for m := range g.Connections {
				r.gradient(m, t)
			}
		}
		r.initial()
	}
	r.answer()
	return r.out, nil
}

// Footprint estimates the bytes that Draw and Reference take, in floating point,
// which does not overflow.
func (g *Graph) Footprint(size Size) float64 {
	values := 0.0
	for _, p := range g.Params() {
		values += 2 * float64(p.Rows) * float64(p.Cols)
	}
	rows := float64(size.Batch) * (float64(size.History) + float64(size.Steps))
	for k, l := range g.Layers {
		values += float64(l.Size) * (3*rows + float64(size.Batch)*float64(g.Delay(k)))
	}
	for _, c := range g.Connections {
		values += 2 * rows * float64(g.Layers[c.To].Size)
	}
	return 8 * values
}

type reference struct {
	*Graph
	Size
	in, out Values
	order   []int

	y, s    [][]float64 // per layer: activations from the initial ones on, states
	z, eps  [][]float64 // per connection: (1) and (8) with the opposite sign
	delta   [][]float64 // per layer: (7) with the opposite sign
	loss    [][]float64 // per layer
	lead    []int       // per layer, its initial frames
	indices [][]int     // per layer, symbols or classes
}

func (r *reference) allocate() error {
	frames := r.Frames()
	get := func(name string, n int) ([]float64, error) {
		v, ok := r.in[name]
		if !ok || len(v) != n {
			return nil, fmt.Errorf("graph: %q has %d values where %d are needed", name, len(v), n)
		}
		return v, nil
	}
	for _, p := range r.Params() {
		if _, err := get(p.Name, p.Rows*p.Cols); err != nil {
			return err
		}
		if r.Train {
			r.out["grad "+p.Name] = make([]float64, p.Rows*p.Cols)
		}
	}
	for k, l := range r.Layers {
		lead := r.Delay(k)
		size := l.Size
		var y, given []float64
		var indices []int
		var err error
		switch {
		case l.Input == Symbols:
			given, err = get(l.Given, frames*r.Batch)
		case l.Input == Dense:
			given, err = get(l.Given, frames*r.Batch*size)
		case l.Activation == Softmax:
			given, err = get(l.Given, r.Steps*r.Batch)
		case l.Given != "" && r.Train:
			given, err = get(l.Given, r.Steps*r.Batch*size)
		}
		if err != nil {
			return err
		}
		if lead > 0 {
			if y, err = get(l.Initial, lead*r.Batch*size); err != nil {
				return err
			}
		}
		y = append(slices.Clone(y), make([]float64, (lead+frames)*r.Batch*size-len(y))...)
		if l.Input == Dense {
			copy(y[lead*r.Batch*size:], given)
		}
		if l.Input == Symbols || l.Activation == Softmax {
			for i, v := range given {
				if v != math.Trunc(v) || v < 0 || int(v) >= size {
					return fmt.Errorf("graph: %q[%d] is %v, not one of the %d symbols of %q", l.Given, i, v, size, l.Name)
				}
				indices = append(indices, int(v))
				if l.Input == Symbols {
					y[(lead*r.Batch+i)*size+int(v)] = 1
				}
			}
		}
		n := frames * r.Batch * size
		r.y, r.lead, r.indices = append(r.y, y), append(r.lead, lead), append(r.indices, indices)
		r.s, r.delta, r.loss = append(r.s, make([]float64, n)), append(r.delta, make([]float64, n)), append(r.loss, make([]float64, r.Steps*r.Batch))
	}
	for _, c := range r.Connections {
		n := frames * r.Batch * r.Layers[c.To].Size
		r.z, r.eps = append(r.z, make([]float64, n)), append(r.eps, make([]float64, n))
	}
	return nil
}

// row is row b of frame t of v, whose frames begin lead earlier.
func (r *reference) row(v []float64, lead, t, b, size int) []float64 {
	at := ((t+lead)*r.Batch + b) * size
	return v[at : at+size]
}

// weight returns where element (i, j) of connection m's full matrix lies in its parameter.
func (r *reference) weight(m, i, j int) (at int) {
	c := r.Connections[m]
	from := r.Layers[c.From]
	if from.Input == Symbols {
		cols := len(r.in[c.Param.Param]) / from.Size
		return j*cols + c.Param.Offset + i
	}
	return (c.Param.Offset+i)*from.Size + j
}

// forward computes layer k at frame t: (1) to (5).
func (r *reference) forward(k, t int) {
	l := r.Layers[k]
	if l.Input != Hidden {
		return
	}
	into := r.Into(k)
	for b := range r.Batch {
		for _, m := range into {
			r.propagate(m, t, b)
		}
		s, y := r.row(r.s[k], 0, t, b, l.Size), r.row(r.y[k], r.lead[k], t, b, l.Size)
		for i := range s {
			s[i] = l.Aggregate.identity()
			for _, m := range into {
				s[i] = l.Aggregate.combine(s[i], r.row(r.z[m], 0, t, b, l.Size)[i])
			}
			for _, slot := range l.Bias {
				s[i] += r.in[slot.Param][slot.Offset+i]
			}
		}
		if l.Activation == Softmax {
			softmax(y, s)
			if t >= r.History {
				row := (t-r.History)*r.Batch + b
				r.loss[k][row] = -math.Log(y[r.indices[k][row]])
			}
			continue
		}
		for i := range s {
			y[i] = l.Activation.apply(s[i])
		}
	}
}

// propagate is (1) for connection m.
func (r *reference) propagate(m, t, b int) {
	c := r.Connections[m]
	from, to := r.Layers[c.From], r.Layers[c.To]
	z, y := r.row(r.z[m], 0, t, b, to.Size), r.row(r.y[c.From], r.lead[c.From], t-c.Delay, b, from.Size)
	w := r.in[c.Param.Param]
	for i := range z {
		switch c.Weight {
		case Identity:
			z[i] = y[i]
		case Diagonal:
			z[i] = w[c.Param.Offset+i] * y[i]
		default:
			z[i] = 0
			for j, v := range y {
				if v != 0 {
					z[i] += w[r.weight(m, i, j)] * v
				}
			}
		}
	}
}

// backward computes δ of layer k at frame t and ε of the connections into it.
func (r *reference) backward(k, t int) {
	l := r.Layers[k]
	if l.Input != Hidden {
		return
	}
	scale := 1 / float64(r.Steps*r.Batch)
	for b := range r.Batch {
		delta := r.row(r.delta[k], 0, t, b, l.Size)
		if l.Activation == Softmax {
			if t >= r.History { // (9)
				copy(delta, r.row(r.y[k], r.lead[k], t, b, l.Size))
				delta[r.indices[k][(t-r.History)*r.Batch+b]]--
				for i := range delta {
					delta[i] *= scale
				}
			}
		} else { // (16)
			copy(delta, r.below(k, t, b))
			if l.Given != "" && t >= r.History {
				for i, v := range r.row(r.in[l.Given], -r.History, t, b, l.Size) {
					delta[i] += v
				}
			}
			for i, s := range r.row(r.s[k], 0, t, b, l.Size) {
				delta[i] *= l.Activation.derivative(s)
			}
		}
		for _, m := range r.Into(k) {
			eps := r.row(r.eps[m], 0, t, b, l.Size)
			for i := range eps { // (13), of which (17) and (18) are cases
				eps[i] = delta[i] * r.share(k, m, t, b, i)
			}
		}
	}
}

// below is the gradient of layer k's activation at frame t: the sum of (16).
func (r *reference) below(k, t, b int) []float64 {
	sum := make([]float64, r.Layers[k].Size)
	for _, n := range r.OutOf(k) {
		c := r.Connections[n]
		if t+c.Delay >= r.Frames() || t+c.Delay < 0 {
			continue
		}
		w := r.in[c.Param.Param]
		for i, e := range r.row(r.eps[n], 0, t+c.Delay, b, r.Layers[c.To].Size) {
			switch c.Weight {
			case Identity:
				sum[i] += e
			case Diagonal:
				sum[i] += e * w[c.Param.Offset+i]
			default:
				for j := range sum {
					sum[j] += e * w[r.weight(n, i, j)]
				}
			}
		}
	}
	return sum
}

// share is the derivative of layer k's aggregate by connection m's part of it.
func (r *reference) share(k, m, t, b, i int) float64 {
	l := r.Layers[k]
	product, last, best := 1.0, -1, math.Inf(-1)
	for _, n := range r.Into(k) {
		z := r.row(r.z[n], 0, t, b, l.Size)[i]
		if n != m {
			product *= z
		}
		if z >= best {
			last, best = n, z
		}
	}
	switch {
	case l.Aggregate == Product:
		return product
	case l.Aggregate == Max && last != m:
		return 0
	}
	return 1
}

// gradient adds frame t to the gradients of connection m's weights (19). If m is the first
// connection into its layer, it adds to those of the layer's biases too.
func (r *reference) gradient(m, t int) {
	c := r.Connections[m]
	from, to := r.Layers[c.From], r.Layers[c.To]
	dw := r.out["grad "+c.Param.Param]
	for b := range r.Batch {
		eps, y := r.row(r.eps[m], 0, t, b, to.Size), r.row(r.y[c.From], r.lead[c.From], t-c.Delay, b, from.Size)
		for i, e := range eps {
			switch c.Weight {
			case Diagonal:
				dw[c.Param.Offset+i] += e * y[i]
			case Full:
				for j, v := range y {
					dw[r.weight(m, i, j)] += e * v
				}
			}
		}
		if m != r.Into(c.To)[0] {
			continue
		}
		for _, slot := range to.Bias {
			db := r.out["grad "+slot.Param]
			for i, d := range r.row(r.delta[c.To], 0, t, b, to.Size) {
				db[slot.Offset+i] += d
			}
		}
	}
}

// initial computes the gradients of inputs and initial activations.
func (r *reference) initial() {
	for k, l := range r.Layers {
		sums := func(from, to int) []float64 {
			var v []float64
			for t := from; t < to; t++ {
				for b := range r.Batch {
					v = append(v, r.below(k, t, b)...)
				}
			}
			return v
		}
		if l.Input == Dense {
			r.out["grad "+l.Given] = sums(0, r.Frames())
		}
		if l.Initial != "" && r.lead[k] > 0 {
			r.out["grad "+l.Initial] = sums(-r.lead[k], 0)
		}
	}
}

func (r *reference) answer() {
	for k, l := range r.Layers {
		if l.Input == Hidden {
			r.out["y "+l.Name] = r.y[k][r.lead[k]*r.Batch*l.Size:]
		}
		if l.Activation == Softmax {
			r.out["loss "+l.Name] = r.loss[k]
		}
	}
}

// identity is the aggregate of no vectors. combine adds one vector to an aggregate.
func (a Aggregate) identity() float64 {
	return [...]float64{Sum: 0, Product: 1, Max: math.Inf(-1)}[a]
}

func (a Aggregate) combine(s, z float64) float64 {
	switch a {
	case Product:
		return s * z
	case Max:
		return max(s, z)
	}
	return s + z
}

func (a Activation) apply(s float64) float64 {
	switch a {
	case Sigmoid:
		return 1 / (1 + math.Exp(-s))
	case Tanh:
		return math.Tanh(s)
	case ReLU:
		return max(s, 0)
	case OneMinus:
		return 1 - s
	case Neg:
		return -s
	}
	return s
}

// derivative is f' of (10).
func (a Activation) derivative(s float64) float64 {
	switch a {
	case Sigmoid:
		return a.apply(s) * (1 - a.apply(s))
	case Tanh:
		return 1 - a.apply(s)*a.apply(s)
	case ReLU:
		if s > 0 {
			return 1
		}
		return 0
	case OneMinus, Neg:
		return -1
	}
	return 1
}

func softmax(y, s []float64) {
	top, sum := slices.Max(s), 0.0
	for i, v := range s {
		y[i] = math.Exp(v - top)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
}
