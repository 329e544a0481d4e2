package schedule

import "fmt"

// SoftmaxLoss computes, row by row, Loss = -log softmax(Logits)[Target] and Prob = softmax(Logits).
// With Grad set, Prob is the gradient of Scale·ΣLoss instead. Prob may be Logits. Target and Loss
// are columns.
//
// Each of Groups equal parts of the columns has a softmax of its own; 0 is 1. The loss is that of
// Target's part, so the others have no gradient. Weight, a column, may be empty. Otherwise the
// gradient is that of Scale·ΣWeight·Loss. A row of weight 0 has a loss of 0, whatever its target.
type SoftmaxLoss struct {
	Logits, Target, Loss, Prob View
	Weight                     View
	Grad                       bool
	Groups                     int
	Scale                      float32
}

func (s SoftmaxLoss) Name() string { return "softmaxloss" }
func (s SoftmaxLoss) Reads() []View {
	if !s.Weight.Empty() {
		return []View{s.Logits, s.Target, s.Weight}
	}
	return []View{s.Logits, s.Target}
}
func (s SoftmaxLoss) Writes() []View { return []View{s.Loss, s.Prob} }

// FLOPs counts a maximum, an exponential, a sum and a division per element.
func (s SoftmaxLoss) FLOPs() int64 { return 4 * int64(s.Logits.Rows) * int64(s.Logits.Cols) }
func (s SoftmaxLoss) String() string {
	text := fmt.Sprintf("softmaxloss %v %v = %v %v%s", s.Loss, s.Prob, s.Logits, s.Target, map[bool]string{true: " gradient"}[s.Grad])
	if s.Groups > 1 {
		text += fmt.Sprintf(" of %d groups", s.Groups)
	}
	if !s.Weight.Empty() {
		text += fmt.Sprintf(" weighted by %v", s.Weight)
	}
	return text
}
func (s SoftmaxLoss) check() error {
	if s.Groups < 0 || s.Logits.Cols%max(1, s.Groups) != 0 || !s.Weight.Empty() && (s.Weight.Cols != 1 || s.Weight.Rows != s.Logits.Rows) {
		return shapeError(s)
	}
	if s.Target.Cols != 1 || s.Loss.Cols != 1 || s.Target.Rows != s.Logits.Rows || s.Loss.Rows != s.Logits.Rows ||
		s.Prob.Rows != s.Logits.Rows || s.Prob.Cols != s.Logits.Cols {
		return shapeError(s)
	}
	return nil
}
