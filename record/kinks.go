package record

import (
	"fmt"
	"math"
)

// Kinks counts units whose ReLU input rounds to zero, so that its gradient may be 0 or 1. Units count
// once for each layer, step and distinct sequence.
type Kinks struct {
	Units int `json:"units"` // all units examined
	Near  int `json:"near"`  // units whose ReLU input lies within rounding of 0
	Shown int `json:"shown"` // near units whose side the answer shows; 0: none, an answer that needs no side, or an early record
	Other int `json:"other"` // near units where the answer has the other gradient than the reference
}

// String describes k in one phrase.
func (k *Kinks) String() string {
	share := 100 * float64(k.Near) / math.Max(1, float64(k.Units))
	s := fmt.Sprintf("%d of %d ReLU inputs (%.2g %%) lie within rounding of 0", k.Near, k.Units, share)
	if k.Other > 0 {
		s += fmt.Sprintf(", and %d of them took the other gradient", k.Other)
	}
	return s
}
