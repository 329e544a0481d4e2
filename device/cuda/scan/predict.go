package scan

import (
	"math"

	"rnnbench/device/cuda/driver"
)

// What a scan is expected to take, in seconds, behind other kernels. The constants were read off one H200's times
// (docs/notebook/performance.md), the last two shares off an H100's (docs/notebook/scan.md). They stand for 132 multiprocessors; memory's rate is taken to grow with those.
const (
	tileStart   = 3.0e-6 // of a chained tile: from the start of the kernel to the end of a chain's first tile
	tileHop     = 0.4e-6 // that a state takes from tile to tile
	aloneStart  = 4.3e-6 // of a team without groups
	groupsStart = 6.3e-6 // of a team with groups
	memoryRate  = 3.9e12 // bytes a second of memory
	cacheRate   = 6e12   // and of what stays in the L2 cache
	copiedShare = 0.6    // of memory's rate that threads reach whose copies are of single values,
	dealtShare  = 0.68   // and scans whose rows begin anywhere,
	teamShare   = 0.82   // teams of such,
	wideShare   = 0.92   // and chains of more than engineLanes channels of such
)

// secondsOf is what the scan is expected to take.
func secondsOf(s *Scan, p driver.Properties) float64 {
	bytes := float64(s.moved()/s.width) * float64(s.Steps) * float64(s.Batch()) * float64(s.Hidden())
	rate := memoryRate
	if bytes < float64(p.L2)/2 {
		rate = cacheRate
	}
	switch {
	case s.units > 0 && s.members > 0:
		rate *= teamShare
	case s.units > 0 && s.lanes > engineLanes:
		rate *= wideShare
	case s.units > 0:
		rate *= dealtShare
	case s.width == 1 && !s.engine:
		rate *= copiedShare
	}
	moving := bytes / (rate * math.Min(1, float64(p.SMs)/132))
	switch {
	case s.members > 0 && s.sole():
		return aloneStart + moving
	case s.members > 0:
		return groupsStart + moving
	case s.carriers > 0: // warps carry states past many tiles at a time
		return tileStart + tileHop + moving
	}
	return tileStart + math.Max(tileHop*float64(s.tiles-1), moving)
}
