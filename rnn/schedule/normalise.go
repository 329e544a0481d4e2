package schedule

import "fmt"

// NormEpsilon is added to the variance of a row that is normalised, as in PyTorch.
const NormEpsilon = 1e-5

// Normalise is layer normalisation, row by row: Out = Gain ∘ (X - mean) / √(variance + NormEpsilon).
// Gain is a row. Out may be X. Stats, rows × 2, gets the mean and one over the root for the backward
// pass; it is empty where nothing needs them.
type Normalise struct {
	X, Gain, Out, Stats View
}

// NormaliseBackward is the gradient of Normalise. DOut is the gradient of Out, and DX gets that of X.
// The gradient of Gain is the sum of the rows of Share. DX may be DOut, and Share may be X.
type NormaliseBackward struct {
	DOut, X, Gain, Stats, DX, Share View
}

func (n Normalise) Name() string   { return "normalise" }
func (n Normalise) Reads() []View  { return []View{n.X, n.Gain} }
func (n Normalise) Writes() []View { return some([]View{n.Out, n.Stats}) }

// FLOPs counts two sums, a square, a difference and two products per element.
func (n Normalise) FLOPs() int64 { return 6 * int64(n.X.Rows) * int64(n.X.Cols) }
func (n Normalise) String() string {
	s := fmt.Sprintf("normalise %v = %v %v", n.Out, n.X, n.Gain)
	if !n.Stats.Empty() {
		s += fmt.Sprintf(" keep %v", n.Stats)
	}
	return s
}
func (n Normalise) check() error {
	if !alike(n.X, n.Out) || !rowOf(n.Gain, n.X) || !n.Stats.Empty() && (n.Stats.Rows != n.X.Rows || n.Stats.Cols != 2) {
		return shapeError(n)
	}
	if n.X.Overlaps(n.Out) && n.X != n.Out {
		return overlapError(n)
	}
	return nil
}

func (n NormaliseBackward) Name() string   { return "normalisebackward" }
func (n NormaliseBackward) Reads() []View  { return []View{n.DOut, n.X, n.Gain, n.Stats} }
func (n NormaliseBackward) Writes() []View { return []View{n.DX, n.Share} }

// FLOPs counts a difference, four products, two sums with a product, and two differences per element.
func (n NormaliseBackward) FLOPs() int64 { return 10 * int64(n.X.Rows) * int64(n.X.Cols) }
func (n NormaliseBackward) String() string {
	return fmt.Sprintf("normalisebackward %v %v ← %v %v %v %v", n.DX, n.Share, n.DOut, n.X, n.Gain, n.Stats)
}
func (n NormaliseBackward) check() error {
	if !alike(n.X, n.DOut) || !alike(n.X, n.DX) || !alike(n.X, n.Share) || !rowOf(n.Gain, n.X) || n.Stats.Rows != n.X.Rows || n.Stats.Cols != 2 {
		return shapeError(n)
	}
	if n.DX.Overlaps(n.DOut) && n.DX != n.DOut || n.Share.Overlaps(n.X) && n.Share != n.X || n.DX.Overlaps(n.X) || n.Share.Overlaps(n.DOut) || n.DX.Overlaps(n.Share) {
		return overlapError(n)
	}
	return nil
}

// alike reports whether two views have the same shape.
func alike(a, b View) bool { return a.Rows == b.Rows && a.Cols == b.Cols }

// rowOf reports whether v is one row, as wide as those of of.
func rowOf(v, of View) bool { return v.Rows == 1 && v.Cols == of.Cols }
