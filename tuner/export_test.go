package tuner

import "testing"

// SetReferenceFLOPs has problems be large beyond so many operations of the reference's.
func SetReferenceFLOPs(t testing.TB, flops float64) {
	was := referenceFLOPs
	referenceFLOPs = flops
	t.Cleanup(func() { referenceFLOPs = was })
}

// SideBySide is how many candidates are precompiled at once.
const SideBySide = sideBySide
