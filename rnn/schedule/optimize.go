package schedule

import (
	"fmt"
	"math"
)

// A Rule is how an optimiser turns a gradient into a change of a parameter.
type Rule int

const (
	// SGD is stochastic gradient descent; with a moment m ← Beta1·m + g it follows m or, if Nesterov,
	// g + Beta1·m: Sutskever et al. 2013, as in PyTorch's SGD.
	SGD Rule = iota
	// Adam is that of Kingma & Ba, arXiv:1412.6980, algorithm 1.
	Adam
)

// Rules lists the rules by name.
func Rules() []string { return []string{"sgd", "adam"} }

func (r Rule) String() string { return Rules()[r] }

// Rates are what an Update reads anew in each run: the columns of one row.
const (
	Rate    = iota // SGD: the learning rate; Adam: that divided by 1 − Beta1ᵗ in iteration t
	Root           // Adam: 1 ÷ √(1 − Beta2ᵗ)
	Unscale        // what gradients are multiplied by: the inverse of the loss's scale
	Limit          // the largest norm of all gradients, to which larger ones are cut; 0: none
	RateColumns
)

// clipEpsilon is added to the norm that divides the limit, as in PyTorch's clip_grad_norm_.
const clipEpsilon = 1e-6

// Squares divides A's rows into k bands, and sets column i of the row Out, of k columns, to band
// i's sum of squares. Band i begins at row rows·i/k. Workers share the bands. Rows, unless empty,
// is a column of row numbers, as a Scatter's Index. In all other rows A is 0, so a device may skip
// them.
type Squares struct {
	A, Out, Rows View
}

// Band is the i-th band of A's rows.
func (s Squares) Band(i int) View {
	from := s.A.Rows * i / s.Out.Cols
	return s.A.Band(from, s.A.Rows*(i+1)/s.Out.Cols-from)
}

// Update changes Param by its gradient Grad, of the same shape. Where the norm of all gradients,
// the root of the sum of Squares, is not finite, nothing changes. Copy, unless empty, becomes a
// copy of the new Param: parameters in 16 bits lie beside those in single precision. Rates is a row
// of RateColumns. Rows, unless empty, is a column of row numbers, as a Scatter's Index. In all
// other rows Grad is 0, so a device need not read it there. Where Alone, those rows do not change
// either.
type Update struct {
	Rule                  Rule
	Param, Copy, Grad     View
	Moment                []View // SGD: none or one; Adam: the mean, then the mean square
	Rates, Squares        View   // Squares: a row, or empty where nothing needs the norm
	Rows                  View
	Beta1, Beta2, Epsilon float32
	Nesterov              bool // SGD with a moment
}

func (s Squares) Name() string   { return "squares" }
func (s Squares) Reads() []View  { return some([]View{s.A, s.Rows}) }
func (s Squares) Writes() []View { return []View{s.Out} }
func (s Squares) FLOPs() int64   { return 2 * int64(s.A.Rows) * int64(s.A.Cols) }
func (s Squares) String() string { return fmt.Sprintf("squares %v of %v", s.Out, s.A) }
func (s Squares) check() error {
	if s.Out.Rows != 1 || s.Out.Cols > s.A.Rows || !s.Rows.Empty() && s.Rows.Cols != 1 {
		return shapeError(s)
	}
	if s.Out.Overlaps(s.A) {
		return overlapError(s)
	}
	return nil
}

// Alone reports whether rows with a gradient of 0 do not change: under SGD without a moment, unless
// they have a copy.
func (u Update) Alone() bool { return u.Rule == SGD && len(u.Moment) == 0 && u.Copy.Empty() }

func (u Update) Name() string { return "update" }
func (u Update) Reads() []View {
	return some([]View{u.Param, u.Grad, u.Rates, u.Squares, u.Rows}, u.Moment)
}
func (u Update) Writes() []View { return some([]View{u.Param, u.Copy}, u.Moment) }

// FLOPs counts a multiplication and an addition for the parameter, for each moment and for Nesterov's
// look ahead, and Adam's square, root and quotient.
func (u Update) FLOPs() int64 {
	each := 2 + 2*int64(len(u.Moment))
	if u.Nesterov {
		each += 2
	}
	if u.Rule == Adam {
		each += 4
	}
	return each * int64(u.Param.Rows) * int64(u.Param.Cols)
}
func (u Update) String() string { return fmt.Sprintf("%v %v by %v", u.Rule, u.Param, u.Grad) }
func (u Update) check() error {
	same := append([]View{u.Grad}, u.Moment...)
	if !u.Copy.Empty() {
		same = append(same, u.Copy)
	}
	for _, v := range same {
		if v.Rows != u.Param.Rows || v.Cols != u.Param.Cols {
			return shapeError(u)
		}
		if v.Overlaps(u.Param) {
			return overlapError(u)
		}
	}
	if u.Rates.Rows != 1 || u.Rates.Cols != RateColumns || !u.Squares.Empty() && u.Squares.Rows != 1 {
		return shapeError(u)
	}
	if !u.Rows.Empty() && u.Rows.Cols != 1 {
		return shapeError(u)
	}
	switch {
	case u.Nesterov && (u.Rule != SGD || len(u.Moment) != 1):
		return fmt.Errorf("schedule: %v: Nesterov's momentum is SGD's, with one moment", u)
	case u.Rule == SGD && len(u.Moment) <= 1, u.Rule == Adam && len(u.Moment) == 2:
		return nil
	}
	return fmt.Errorf("schedule: %v: %d moments do not fit the rule", u, len(u.Moment))
}

// Scale is the factor for gradients, given the rates and the sum of squares of all gradients. It is
// 0 where that sum is not finite: then nothing must change.
func (u Update) Scale(rates []float64, sum float64) float64 {
	scale := rates[Unscale]
	if u.Squares.Empty() {
		return scale
	}
	if math.IsInf(sum, 0) || math.IsNaN(sum) {
		return 0
	}
	if norm := math.Sqrt(sum) * scale; rates[Limit] > 0 && norm > rates[Limit] {
		scale *= rates[Limit] / (norm + clipEpsilon)
	}
	return scale
}

// Step returns a parameter's new value, given its scaled gradient, and updates its moments.
func (u Update) Step(rates []float64, param, gradient float64, moment []float64) float64 {
	b1, b2, epsilon := float64(u.Beta1), float64(u.Beta2), float64(u.Epsilon)
	switch {
	case u.Rule == Adam:
		moment[0] = b1*moment[0] + (1-b1)*gradient
		moment[1] = b2*moment[1] + (1-b2)*gradient*gradient
		return param - rates[Rate]*moment[0]/(math.Sqrt(moment[1])*rates[Root]+epsilon)
	case len(moment) > 0:
		moment[0] = b1*moment[0] + gradient
		if u.Nesterov {
			return param - rates[Rate]*(gradient+b1*moment[0])
		}
		return param - rates[Rate]*moment[0]
	}
	return param - rates[Rate]*gradient
}
