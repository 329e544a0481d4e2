package schedule

import "fmt"

// CTCLoss computes Loss = -log p(transcript) for each of B sequences, by connectionist temporal
// classification (Graves et al. 2006): p is the sum over all alignments of the transcript with the
// sequence's steps. Row t·B+b of Logits is step t of sequence b. Class 0 is the blank. Row b of
// Labels is the transcript of sequence b: numbers of classes, and zeros behind its end. Loss is a
// column with a row for each sequence.
//
// Prob becomes softmax(Logits), row by row. With Grad set, it becomes the gradient of Scale·ΣLoss
// for Logits instead. Prob may be Logits. Scratch has the rows of Logits and CTCScratch columns. It
// holds nothing before and after the operation.
//
// A transcript needs a step for each label, and another one between two equal labels. If there are
// fewer steps, the loss is infinite and its gradient is zero. PyTorch's zero_infinity has the same
// gradient, and a loss of zero. A device may take a probability of a class below e^-90000 as 0.
type CTCLoss struct {
	Logits, Labels, Loss, Prob, Scratch View
	Grad                                bool
	Scale                               float32
}

// CTCScratch is the number of columns that a CTCLoss needs for scratch, with transcripts of so many
// labels at most. In each row they hold the largest logit and the sum of the softmax. For a gradient
// they also hold a product of a forward and a backward variable, of two words, for each label and
// for each blank around them.
func CTCScratch(labels int, grad bool) int {
	if grad {
		return 2 + 2*(2*labels+1)
	}
	return 2
}

// Steps is the number of steps of each sequence.
func (c CTCLoss) Steps() int { return c.Logits.Rows / c.Labels.Rows }

func (c CTCLoss) Name() string   { return "ctcloss" }
func (c CTCLoss) Reads() []View  { return []View{c.Logits, c.Labels} }
func (c CTCLoss) Writes() []View { return []View{c.Loss, c.Prob, c.Scratch} }

// FLOPs counts four operations per logit, as a SoftmaxLoss. It counts two sums and a product for each
// forward variable of a transcript as long as Labels. With a gradient, it counts as many for each
// backward variable, a product of both, a quotient and a difference.
func (c CTCLoss) FLOPs() int64 {
	rows, each := int64(c.Logits.Rows), int64(3)
	if c.Grad {
		each = 9
	}
	return 4*rows*int64(c.Logits.Cols) + each*rows*int64(2*c.Labels.Cols+1)
}

func (c CTCLoss) String() string {
	return fmt.Sprintf("ctcloss %v %v = %v %v%s", c.Loss, c.Prob, c.Logits, c.Labels, map[bool]string{true: " gradient"}[c.Grad])
}

func (c CTCLoss) check() error {
	n := c.Labels.Rows
	if n < 1 || c.Logits.Rows%n != 0 || c.Loss.Rows != n || c.Loss.Cols != 1 || !alike(c.Logits, c.Prob) {
		return shapeError(c)
	}
	if c.Scratch.Rows != c.Logits.Rows || c.Scratch.Cols != CTCScratch(c.Labels.Cols, c.Grad) {
		return shapeError(c)
	}
	if c.Prob.Overlaps(c.Logits) && c.Prob != c.Logits {
		return overlapError(c)
	}
	apart := []View{c.Labels, c.Loss, c.Scratch, c.Prob, c.Logits}
	for i, v := range apart[:3] {
		for _, w := range apart[i+1:] {
			if v.Overlaps(w) {
				return overlapError(c)
			}
		}
	}
	return nil
}
