package results

import (
	"fmt"
	"math"
)

// Kinks count the units at which ReLU's gradient is 0 or 1 by rounding alone, once for each
// layer, step and distinct sequence.
type Kinks struct {
	Units int `json:"units"` // that were looked at
	Near  int `json:"near"`  // of these, where the input of ReLU lies within rounding of 0
	Other int `json:"other"` // of these, where the answer was granted the gradient that the reference has not
}

// String says it in one phrase.
func (k *Kinks) String() string {
	share := 100 * float64(k.Near) / math.Max(1, float64(k.Units))
	s := fmt.Sprintf("%d of %d ReLU inputs (%.2g %%) lie within rounding of 0", k.Near, k.Units, share)
	if k.Other > 0 {
		s += fmt.Sprintf(", and %d of them took the other gradient", k.Other)
	}
	return s
}
