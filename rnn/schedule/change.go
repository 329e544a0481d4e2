package schedule

import "fmt"

// Change keeps the largest difference of two matrices. Out is a row of two columns, which are not negative:
// the first becomes the larger of itself and the largest |A - B|, the second of itself and the largest |A|.
// Where A or B is not finite, Out is not finite either.
type Change struct {
	A, B, Out View
}

func (c Change) Name() string   { return "change" }
func (c Change) Reads() []View  { return []View{c.A, c.B, c.Out} }
func (c Change) Writes() []View { return []View{c.Out} }

// FLOPs counts a difference and two comparisons per element.
func (c Change) FLOPs() int64   { return 3 * int64(c.A.Rows) * int64(c.A.Cols) }
func (c Change) String() string { return fmt.Sprintf("change %v of %v to %v", c.Out, c.B, c.A) }
func (c Change) check() error {
	if !alike(c.A, c.B) || c.Out.Rows != 1 || c.Out.Cols != 2 {
		return shapeError(c)
	}
	if c.Out.Overlaps(c.A) || c.Out.Overlaps(c.B) {
		return overlapError(c)
	}
	return nil
}
