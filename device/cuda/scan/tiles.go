package scan

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/knob"
)

// A scan of many channels or few steps is divided into chained tiles, which blocks draw from a
// counter (tiles.cu).
const (
	scanLine    = 128 // bytes of memory that a row of lanes reads side by side
	scanThreads = 128 // most threads of a block
	threeWarps  = 96  // lanes of a row of three warps
	maxSteps    = 16  // most steps of a thread in a tile
)

// A burden is how much work a multiprocessor is given at a time.
type burden struct {
	blocks int // most blocks
	bytes  int // bytes that a thread reads and writes for a tile
	values int // most values that a thread keeps while its tile waits for its prefix
}

// Many chains take small tiles. Few chains take large tiles, so that a prefix passes
// through few of them. Two cases lie in between: cells with many activations whose blocks
// pass the state on, which want more threads, and scans too short for enough large tiles.
// The limits were timed on an H200's 132 multiprocessors: 96 and 128 chains are fastest
// with large tiles, 256 mostly so, and 384 with small ones.
var (
	manyChains = burden{blocks: 3, bytes: 384, values: 72}
	fewChains  = burden{blocks: 2, bytes: 768, values: 112}
	inBetween  = burden{blocks: 3, bytes: 512, values: 80}
)

// divide cuts channels and time into tiles. A tile is a line of memory wide, or wider when
// the scan has few steps. When there would be fewer tiles than multiprocessors, a thread
// takes fewer steps, unless the knob fixes them, and a block has fewer threads.
func (s *Scan) divide(p driver.Properties, k knob.Params) {
	line := min(scanLine/4/s.width, ints.PowerOfTwo(s.across()))
	if d, ok := dealtWide(s, p); ok && s.width < 4 && s.Steps >= dealtSteps {
		*s, line = d, d.lanes
		s.delayed = s.mixed()
	}
	s.threads, s.lanes = scanThreads, line
	fixed := k["scansteps"] != 0
	b := inBetween
	switch chains := s.chainsOf(); {
	case 2*chains > 3*p.SMs:
		b = manyChains
	case chains*s.tilesOf(s.suits(fewChains, p)) >= p.SMs && (!s.busy() || 2*chains < p.SMs):
		b = fewChains
	}
	many := b == manyChains
	if many && s.units > 0 {
		b.bytes = dealtBytes
	}
	s.chunk = s.suits(b, p)
	if many {
		s.chunk = s.fullest(s.chunk, s.room(b, p))
	}
	if fixed {
		s.chunk = max(1, min(k["scansteps"], s.mostSteps(), s.fits(1, p)))
	}
	s.blocks = max(1, min(b.blocks, p.Shared/(scanThreads*(s.chunk+1)*s.loaded()+scanWork)))
	for {
		s.lanes = line
		deep := s.deep(s.chunk)
		if s.units == 0 {
			s.lanes = max(line, min(s.threads/deep, ints.PowerOfTwo(s.across())))
		}
		s.threads = max(leastThreads, deep*s.lanes)
		s.chains, s.tiles = s.chainsOf(), ints.CeilDiv(s.Steps, s.threads/s.lanes*s.chunk)
		if s.chains*s.tiles >= p.SMs {
			break
		}
		if s.chunk > 4 && !fixed {
			s.chunk--
		} else if s.threads/2 >= max(leastThreads, s.lanes) {
			s.threads /= 2
		} else {
			break
		}
	}
	if s.units > 0 { // lanes stay as they are for short scans, so blocks are smaller and more of them run
		threads := b.blocks * scanThreads
		if !s.Train || s.backward { // one more block of rows of three warps; for kept values that is 12 points slower
			threads += s.threads / 2
		}
		s.blocks = max(1, min(threads/s.threads, p.Shared/(s.shared()+scanReserved)))
	}
	if s.carriers = 0; 2*s.chains < p.SMs && s.tiles > 4 {
		s.carriers = ints.CeilDiv(s.chains*ints.CeilDiv(s.lanes*s.values(), 32), s.threads/32)
	}
}

// chainsOf returns the number of chains.
func (s *Scan) chainsOf() int {
	if s.units > 0 {
		return s.chains
	}
	return ints.CeilDiv(s.across(), s.lanes)
}

// Limits of tiles of unaligned rows, which the copy engine copies. The GPU reserves some shared
// memory of each block.
const (
	dealtSteps   = 32  // fewest steps of such a scan
	dealtBytes   = 512 // bytes that a thread reads and writes for a tile, with many chains
	scanReserved = 1 << 10
)

// leastThreads is the fewest threads of a block: two warps. With one warp, qrnn's inference hung on
// an H200, as if some lanes had gone on with the previous tile. The guess is that the compiler
// drops the block's barrier for a single warp.
const leastThreads = 64

// scanWork is about how many bytes of shared memory a block needs besides its inputs.
const scanWork = 5 << 10

// deep returns the number of a block's threads that share a channel's steps, each with so many
// steps.
func (s *Scan) deep(steps int) int {
	return min(s.threads/s.lanes, ints.PowerOfTwo(ints.CeilDiv(s.Steps, steps)))
}

// tilesOf returns the number of tiles of a chain, with so many steps per thread.
func (s *Scan) tilesOf(steps int) int { return ints.CeilDiv(s.Steps, s.deep(steps)*steps) }

// suits returns the steps per thread that make up a burden, if there is room.
func (s *Scan) suits(b burden, p driver.Properties) int {
	return max(2, min(b.bytes/s.moved(), s.room(b, p)))
}

// room returns the most steps for which the blocks of a burden have registers and shared memory.
func (s *Scan) room(b burden, p driver.Properties) int {
	return min(b.values/max(1, s.width*len(s.kept())), s.mostSteps(), s.fits(b.blocks, p))
}

// mostSteps returns the most steps per thread in a tile.
func (s *Scan) mostSteps() int {
	if s.units > 0 {
		return maxTeamSteps
	}
	return maxSteps
}

// fits returns the most steps for which so many blocks have shared memory.
func (s *Scan) fits(blocks int, p driver.Properties) int {
	return (p.Shared/blocks-scanWork)/(scanThreads*s.loaded()) - 1
}

// fullest returns the steps per thread, near those that suit, that leave the last tile of a chain
// nearly full: blocks with little work leave memory idle. Ties go to more steps.
func (s *Scan) fullest(suits, room int) int {
	best, least := suits, math.Inf(1)
	near := max(1, suits/3)
	for n := min(suits+near, max(suits, room)); n >= max(2, suits-near); n-- {
		idle := float64(s.tilesOf(n)*s.deep(n)*n)/float64(s.Steps) - 1
		if cost := idle + math.Abs(float64(n-suits))/float64(10*suits); cost < least {
			best, least = n, cost
		}
	}
	return best
}

// headStart is the number of cycles by which the first copies of a multiprocessor's blocks
// are staggered: about the time of one copy. Otherwise all blocks would copy at the same
// time, then all compute, and memory would idle.
func (s *Scan) headStart() int { return s.threads * s.chunk * s.loaded() / 32 }

// buffer is the size of the shared memory into which a block's inputs are copied.
func (s *Scan) buffer() int {
	if s.units > 0 {
		_, _, bytes := s.areas()
		return bytes + s.staged()
	}
	_, bytes := s.slots()
	return s.threads * bytes
}

// shared returns the bytes of shared memory of a block: the inputs, aggregates of the rows of lanes
// and of the tile, the drawn ticket, two sets of exclusive prefixes, and a barrier of the copy
// engine.
func (s *Scan) shared() int {
	rows := s.threads / max(s.lanes, 32)
	return s.buffer() + 8*(rows+1)*s.values()*s.lanes + 8 + 16 + 2*4*s.values()*s.lanes + 8
}
