package rnn

// direction is the residual of a tensor, divided by its scale again: its product with a change of
// that tensor is then in units of the scale. It is nil where there is no such tensor.
func (e *residual) direction(name string, layer int) []float64 {
	name = e.layerName(name, layer)
	part := e.parts[name]
	if part == nil {
		return nil
	}
	out := make([]float64, len(part))
	for i, v := range part {
		out[i] = v / e.scale[name]
	}
	return out
}

// weight is the factor for the square of a tensor's change: 1 over its scale squared.
func (e *residual) weight(name string, layer int) float64 {
	s := e.scale[e.layerName(name, layer)]
	if s == 0 {
		return 0
	}
	return 1 / (s * s)
}

func (e *residual) layerName(name string, layer int) string {
	if layer < 0 {
		return name
	}
	return e.problem.Named(name, layer)
}

// along is how the inputs of ReLU change, in each layer, if inputs and parameters move along the
// residual. The product of the residual with all gradients is the loss's change by that move. A
// unit's part in it is the gradient that reaches it, times the change of its input.
func (r *search) along(e *residual) [][]float64 {
	p, b, h := r.p, r.Distinct, r.p.Hidden
	all := make([][]float64, p.Reads())
	below := e.direction("dx", -1)
	var level [][]float64 // of the present level's layers
	for l := range r.layers {
		y := &r.layers[l]
		d := make([]float64, r.rows*h)
		r.addParameters(d, y, e, l)
		if below != nil {
			product := make([]float64, len(d))
			mulTransposed(product, below, y.weightX, r.rows, h, p.FanIn(l/p.Ways()))
			for i, v := range product {
				d[i] += v
			}
		}
		before, sums := e.direction("grad_"+p.Cell.States[0]+"0", l), make([]float64, b*h)
		own := make([]float64, len(d))
		for k := range p.Frames() {
			at := y.step(k) * b * h
			if before != nil {
				mulTransposed(sums, y.begun(before, at/h, h), y.weightR, b, h, h)
			}
			for i := range sums {
				d[at+i] += sums[i]
				if y.side[at+i] > 0 {
					own[at+i] = d[at+i]
				}
			}
			y.carryOver(own, before, at/(b*h), h)
			before = own[at : at+b*h]
		}
		if level = append(level, own); len(level) == p.Ways() {
			below, level = beside(level, h), nil
		}
		all[l] = d
	}
	return all
}

// addParameters adds to d the change of ReLU's inputs with a layer's parameters. A parameter's
// gradient is a sum over the batch, which repeats each distinct sequence.
func (r *search) addParameters(d []float64, y *refLayer, e *residual, l int) {
	h, b := r.p.Hidden, r.Distinct
	kink, _ := r.p.Cell.Kink()
	gate := kink.Gate * h // the first of its rows of weights
	product := make([]float64, len(d))
	add := func() {
		for i, v := range product {
			d[i] += v * r.copies(i/h%b)
		}
		clear(product)
	}
	w := e.direction("grad_weight_ih", l)
	switch {
	case w == nil:
	case y.in == nil:
		r.lookUp(y.way, func(row, at int) { copy(product[row*h:(row+1)*h], w[at+gate:at+gate+h]) })
		add()
	default:
		width := r.p.FanIn(l / r.p.Ways())
		mulTransposed(product, y.in, narrow(w[gate*width:(gate+h)*width]), r.rows, h, width)
		add()
	}
	if w := e.direction("grad_weight_hh", l); w != nil {
		mulTransposed(product, y.prior(0, 0, len(d), h), narrow(wholeR(r.p, w)), r.rows, h, h)
		add()
	}
	for _, name := range []string{"grad_bias_ih", "grad_bias_hh"} {
		if w := e.direction(name, l); w != nil {
			for i := range product {
				product[i] = w[gate+i%h]
			}
			add()
		}
	}
}

func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

// marks returns, for each layer, the squares of what a gradient of 1 at the input of ReLU changes
// in all gradients. Changes in different places count as independent, as the weights between them
// are.
func (r *search) marks(e *residual) [][]float64 {
	p, b, h := r.p, r.Distinct, r.p.Hidden
	all := make([][]float64, p.Reads())
	var below []float64
	var level [][]float64
	for l := range r.layers {
		y, width := &r.layers[l], p.FanIn(l/p.Ways())
		d := make([]float64, r.rows*h)
		if y.in != nil {
			if below == nil {
				below = make([]float64, r.rows*width)
				for i := range below {
					below[i] = e.weight("dx", -1)
				}
			}
			mulTransposed(d, below, squares(y.weightX), r.rows, h, width)
		}
		before, sums, weights := make([]float64, b*h), make([]float64, b*h), squares(y.weightR)
		for i := range before {
			before[i] = e.weight("grad_"+p.Cell.States[0]+"0", l)
		}
		passed := make([]float64, len(d))
		for k := range p.Frames() {
			at := y.step(k) * b
			mulTransposed(sums, y.begun(before, at, h), weights, b, h, h)
			for row := at; row < at+b; row++ {
				own := r.ownMark(y, e, l, row)
				for u := range h {
					i := row*h + u
					d[i] += sums[row%b*h+u] + own
					if y.side[i] > 0 {
						passed[i] = d[i]
					}
				}
			}
			y.carryOver(passed, before, at/b, h)
			before = passed[at*h : (at+b)*h]
		}
		if level = append(level, passed); len(level) == p.Ways() {
			below, level = beside(level, h), nil
		}
		all[l] = d
	}
	return all
}

// ownMark is the part of a row's marks in the gradients of the layer's own parameters.
func (r *search) ownMark(y *refLayer, e *residual, l, row int) float64 {
	h, n := r.p.Hidden, r.copies(row%r.Distinct)
	in := 1.0 // a one-hot input
	if y.in != nil {
		width := len(y.in) / r.rows
		in = norm(y.in[row*width : (row+1)*width])
	}
	return n * n * (in*e.weight("grad_weight_ih", l) + norm(y.prior(0, row*h, (row+1)*h, h))/float64(max(1, r.p.Heads))*e.weight("grad_weight_hh", l) +
		e.weight("grad_bias_ih", l) + e.weight("grad_bias_hh", l))
}

// norm is the sum of the squares.
func norm(v []float64) (sum float64) {
	for _, x := range v {
		sum += x * x
	}
	return sum
}
