package scan

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

// A scan that fits on chip takes about as long as its kernel's start and the memory accesses that
// wait for each other.

// Measures against these latencies.
const (
	smallNext = 1 + iota // the next kernel may begin before this one ends, and then waits for the end
	smallSole            // also, each chain is one tile, so no tile waits, and each block has one tile
)

// Limits of such tiles.
const (
	soleThreads = 512      // most threads of a block
	soleValues  = 96       // most values that a thread keeps until it does its steps
	soleMoved   = 96 << 10 // most bytes that a block reads and writes
	soleColumns = 8        // fewest channels side by side: a sector of memory
)

// oneTile makes each chain one tile, with the least predicted time. It reports whether that fits.
func oneTile(s *Scan, p driver.Properties) bool {
	best, least := *s, math.Inf(1)
	narrowest := min(ints.CeilDiv(soleColumns, s.width), ints.PowerOfTwo(s.across()))
	for lanes := narrowest; lanes <= max(narrowest, scanLine/4/s.width); lanes *= 2 {
		for threads := leastThreads; threads <= soleThreads; threads *= 2 {
			t := *s
			t.lanes, t.threads, t.blocks, t.tiles, t.carriers = lanes, threads, 1, 1, 0
			t.chains, t.chunk = ints.CeilDiv(t.across(), lanes), ints.CeilDiv(t.Steps, threads/lanes)
			bytes := threads * t.chunk * t.moved()
			switch {
			case t.chains > p.SMs || t.chunk > maxSteps || bytes > soleMoved:
				continue
			case t.chunk*t.width*len(t.kept()) > soleValues || t.shared()+scanReserved > p.Shared:
				continue
			}
			if cost := soleTime(bytes, t.chunk, threads/32); cost < least {
				best, least = t, cost
			}
		}
	}
	*s = best
	return !math.IsInf(least, 1)
}

// soleTime predicts the time of such a block, without the start of its kernel, in ns. It depends on
// the bytes, consecutive steps, and warps whose compositions a thread goes through. It is estimated
// from cycles, not measured.
func soleTime(bytes, steps, warps int) float64 {
	return float64(bytes)/100 + 12*float64(steps) + 15*float64(warps)
}

// nextText spells begin_next, if the next kernel may begin early.
func nextText(s *writer) string {
	if s.small >= smallNext {
		return "  begin_next();\n"
	}
	return ""
}
