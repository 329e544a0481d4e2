package scan

import (
	"math"

	"rnnbench/device/cuda/driver"
)

// The predicted time of a scan after other kernels, in seconds. The constants come from runs on one
// H200, and the last two shares from an H100 (docs/notebook/scan.md). They hold for 132
// multiprocessors; memory's rate is assumed to grow with that number.
const (
	tileStart   = 3.0e-6 // chained tiles: from the start of the kernel to the end of a chain's first tile
	tileHop     = 0.4e-6 // for a state to pass from tile to tile
	aloneStart  = 4.3e-6 // a team without groups
	groupsStart = 6.3e-6 // a team with groups
	memoryRate  = 3.9e12 // bytes a second, for data in memory
	cacheRate   = 6e12   // bytes a second, for data in the L2 cache
	copiedShare = 0.6    // share of memory's rate if threads copy single values,
	dealtShare  = 0.68   // for unaligned rows,
	teamShare   = 0.82   // for teams with unaligned rows,
	wideShare   = 0.92   // for unaligned rows in chains of more than engineLanes channels
)

// secondsOf predicts the time of the scan.
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
	case s.carriers > 0: // walkers pass states over many tiles at a time
		return tileStart + tileHop + moving
	}
	return tileStart + math.Max(tileHop*float64(s.tiles-1), moving)
}
