package scan

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

// A scan that fits the chip takes about as long as its kernel's start and the ways to memory that wait for each other.

// Measures against that.
const (
	smallNext = 1 + iota // the next kernel begins ahead of this one's end, for which it waits
	smallSole            // a chain is one tile, which waits for no other, and a block has one
)

// Limits of such tiles.
const (
	soleThreads = 512      // most threads of a block
	soleValues  = 96       // most values that a thread keeps until it does its steps
	soleMoved   = 96 << 10 // most bytes that a block reads and writes
	soleColumns = 8        // fewest channels side by side: a sector of memory
)

// oneTile makes each chain one tile. It reports whether there is room for that, in about the least time.
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

// soleTime is about what such a block takes besides the start of its kernel, in ns: for its bytes, steps one after the
// other, and warps whose compositions a thread goes through. The numbers are reckoned from cycles, not measured.
func soleTime(bytes, steps, warps int) float64 {
	return float64(bytes)/100 + 12*float64(steps) + 15*float64(warps)
}

// nextText lets the next kernel begin.
func nextText(s *writer) string {
	if s.small >= smallNext {
		return "  begin_next();\n"
	}
	return ""
}
