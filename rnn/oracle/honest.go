package oracle

import (
	"math"
	"strings"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// A rounding makes the reference round where an honest technique does: nil rounds nowhere. It is
// the most lossy way that techniques have. In 16 bits they store what products multiply, and what
// cells read of products. In int8 they round what products multiply, a row at a time. All sums and functions are in single precision. Sums are formed term by
// term, so that their errors are no smaller than those of sums in parts.
type rounding struct {
	precision rnn.Precision
	unit      float64 // of sigmoids and hyperbolic tangents: see Plan.UnitError
}

// Errors of functions in single precision, relative to the result, which the tests of the devices'
// functions bound.
const (
	errorOfTanh = 2.6 * 0x1p-23 // of sigmoid too
	errorOfExp  = 0x1p-23
)

// operand is x as a product's operand is stored.
func (v *rounding) operand(x float64) float64 {
	switch f := float32(x); v.precision {
	case rnn.BF16:
		return float64(keepBits(f, 16))
	case rnn.TF32:
		return float64(keepBits(f, 13))
	case rnn.FP16:
		if math.Abs(x) < 0x1p-14 {
			return math.RoundToEven(x*0x1p24) * 0x1p-24
		}
		return float64(keepBits(f, 13))
	default: // of products of pieces in half precision, which have 22 bits
		return float64(keepBits(f, 2))
	}
}

// keepBits rounds x to the nearest value without its last bits, with ties to even.
func keepBits(x float32, last int) float32 {
	b := math.Float32bits(x)
	return math.Float32frombits((b + 1<<(last-1) - 1 + b>>last&1) &^ (1<<last - 1))
}

// operands rounds values, rows of so many columns, as a product's operands are stored.
func (v *rounding) operands(values []float64, cols int) []float32 {
	out := make([]float32, len(values))
	if v.precision == rnn.INT8 {
		for at := 0; at < len(values); at += cols {
			integers(out[at:at+cols], values[at:at+cols])
		}
		return out
	}
	for i, x := range values {
		out[i] = float32(v.operand(x))
	}
	return out
}

// integers rounds a row to 8-bit integers, times its largest value over 127.
func integers(out []float32, row []float64) {
	most := float32(0)
	for _, x := range row {
		most = max(most, float32(math.Abs(x)))
	}
	if most < 0x1p-100 { // zeros
		return
	}
	for i, x := range row {
		out[i] = float32(math.RoundToEven(x*127/float64(most))) * (most / 127)
	}
}

// store rounds values in place as those are stored that products multiply, or cells read of them.
func (v *rounding) store(values []float64) {
	if v == nil || v.precision != rnn.BF16 && v.precision != rnn.FP16 {
		return
	}
	for i, x := range values {
		values[i] = v.operand(x)
	}
}

// mulTransposed is mulTransposed with rounding.
func (v *rounding) mulTransposed(out, a []float64, w []float32, m, n, k int) {
	if v == nil {
		mulTransposed(out, a, w, m, n, k)
		return
	}
	sums := make([]float32, m*n)
	mulTransposed(sums, v.operands(a[:m*k], k), w, m, n, k)
	for i, s := range sums {
		out[i] = float64(s)
	}
}

// mul is mul with rounding.
func (v *rounding) mul(out, a []float64, w []float32, m, n, k int) {
	if v == nil {
		mul(out, a, w, m, n, k)
		return
	}
	sums := narrow(out[:m*k])
	mul(sums, v.operands(a[:m*n], n), w, m, n, k)
	for i, s := range sums {
		out[i] = float64(s)
	}
}

// single rounds values in place to single precision.
func (v *rounding) single(values []float64) {
	if v == nil {
		return
	}
	for i, x := range values {
		values[i] = float64(float32(x))
	}
}

// sum adds values to sums so many times.
func (v *rounding) sum(sums, values []float64, times int) {
	for k, x := range values {
		s := float32(sums[k])
		for range times {
			s += float32(x)
		}
		sums[k] = float64(s)
	}
}

// run is Program.Eval with rounding.
func (v *rounding) run(p cell.Program, value func(cell.Ref) *float64) {
	for i := range p {
		in := &p[i]
		var a, b float64
		n := in.Op.Operands()
		if n > 0 {
			a = *value(in.A)
		}
		if n > 1 {
			b = *value(in.B)
		}
		y := in.Eval(a, b)
		switch in.Op {
		case cell.Sigmoid, cell.Tanh:
			y += noise(a) * (errorOfTanh*math.Abs(y) + v.unit)
		case cell.Exp, cell.Softplus, cell.SoftplusGrad:
			y += noise(a) * errorOfExp * math.Abs(y)
		}
		*value(in.Out) = float64(float32(y))
	}
}

// noise is a number from -1 to 1, drawn by the bits of x.
func noise(x float64) float64 {
	h := math.Float64bits(x) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return float64(int64(h^h>>32)) * 0x1p-63
}

// forward advances a unit by the cell's program, and stores its states.
func (v *rounding) forward(e *evaluator) {
	c := e.p.Cell
	v.run(e.program(), e.at)
	for s := range c.States { // cuDNN and PyTorch keep all of them in 16 bits
		v.storeOne(e.at(cell.Ref{Kind: cell.Next, Index: s}))
	}
}

// backward runs a backward program of a unit, and stores the gradients of the products.
func (v *rounding) backward(e *evaluator, p cell.Program) {
	c := e.p.Cell
	v.run(p, e.at)
	for g := range c.Gates {
		v.storeOne(e.at(cell.Ref{Kind: cell.DX, Index: g}))
	}
	for g := 0; c.SplitGrad && g < c.Recurrent; g++ {
		v.storeOne(e.at(cell.Ref{Kind: cell.DR, Index: g}))
	}
}

func (v *rounding) storeOne(at *float64) {
	if v.precision == rnn.BF16 || v.precision == rnn.FP16 {
		*at = v.operand(*at)
	}
}

// narrowed returns d with states and all that products multiply rounded to the bits of the problem's
// precision.
func narrowed(d *rnn.Data) *rnn.Data {
	p := d.Problem
	v := &rounding{precision: p.Precision}
	out := rnn.DataFor(p, d.Distinct)
	for _, t := range d.Tensors {
		if p.Precision != rnn.FP32 && multiplied(d, t) {
			values := v.operands(widen(t.Values), t.Cols)
			if t.Name == "x" && p.Symbols > 0 {
				for i := 0; i < len(values); i += t.Cols {
					values[i] = t.Values[i]
				}
			}
			t.Values = values
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}

// multiplied reports whether products multiply a tensor, or 16 bits hold it as a state.
func multiplied(d *rnn.Data, t rnn.Tensor) bool {
	integers := d.Problem.Precision == rnn.INT8
	switch {
	case integers && d.Problem.OneHot && strings.HasPrefix(t.Name, "weight_ih_l0"): // a table that is looked up
		return false
	case integers && (t.PerSequence || t.Name == "embedding"): // rounded before each product
		return false
	case t.Name == "x":
		return !d.Problem.OneHot
	case t.Name == "dy" || t.Name == "embedding":
		return true
	case t.PerSequence: // the states before the first step, not targets and weights of the loss
		c := d.Problem.Cell
		for i, s := range c.States {
			if strings.HasPrefix(t.Name, s+"0_l") {
				return i == 0 || i == c.Through || d.Problem.Precision != rnn.TF32
			}
		}
		return false
	}
	return t.Rows > 1 || strings.HasPrefix(t.Name, "weight_conv") || t.Name == "weight_dense" // not of biases and peepholes
}
