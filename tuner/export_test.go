package tuner

import (
	"testing"
)

// SetReferenceFLOPs sets how many operations the reference may take before a problem counts as large.
func SetReferenceFLOPs(t testing.TB, flops float64) {
	was := referenceFLOPs
	referenceFLOPs = flops
	t.Cleanup(func() { referenceFLOPs = was })
}

// SetPeerBytes sets how much memory a peer's schedule may take.
func SetPeerBytes(t testing.TB, bytes int64) {
	was := peerBytes
	peerBytes = bytes
	t.Cleanup(func() { peerBytes = was })
}

// SideBySide is how many candidates are precompiled at once.
const SideBySide = sideBySide

// SetRechecks sets the share of the measuring time that checks of samples may take, and how many follow
// a sample at most.
func SetRechecks(t testing.TB, share float64, most int) {
	wasShare, wasMost := recheckShare, mostRechecks
	recheckShare, mostRechecks = share, most
	t.Cleanup(func() { recheckShare, mostRechecks = wasShare, wasMost })
}
