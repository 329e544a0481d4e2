package scan

import (
	"math"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/knob"
)

// Many channels, or little time, are cut into tiles that blocks draw (tiles.cu). A run of lanes reads
// scanLine bytes of memory side by side. A block has scanThreads, and a thread maxSteps steps of a tile, at most.
const (
	scanLine    = 128
	scanThreads = 128
	maxSteps    = 16
)

// A burden is what a multiprocessor is given.
type burden struct {
	blocks int // at most
	bytes  int // that a thread reads and writes for a tile
	values int // that it keeps in between
}

// Where chains are many, tiles are small. Where they are few, a state must not pass through many tiles:
// those are large. In between are those of busy cells that hand states on, which want more threads, and of so
// little time that large ones would be too few. What is many was timed on an H200's 132 multiprocessors: 96 and 128
// chains want large tiles, 256 mostly and 384 small ones.
var (
	manyChains = burden{blocks: 3, bytes: 384, values: 72}
	fewChains  = burden{blocks: 2, bytes: 768, values: 112}
	inBetween  = burden{blocks: 3, bytes: 512, values: 80}
)

// divide cuts channels and time into tiles: of a line of memory across, but more
// where time is short, and of fewer threads and, unless these are fixed, steps where
// there would be too few.
func (s *Scan) divide(p driver.Properties, k knob.Params) {
	line := min(scanLine/4/s.width, ints.PowerOfTwo(s.across()))
	s.threads, s.lanes = scanThreads, line
	fixed := k["scansteps"] != 0
	b := inBetween
	switch chains := ints.CeilDiv(s.across(), s.lanes); {
	case 2*chains > 3*p.SMs:
		b = manyChains
	case chains*s.tilesOf(s.suits(fewChains, p)) >= p.SMs && (!s.busy() || 2*chains < p.SMs):
		b = fewChains
	}
	s.chunk = s.suits(b, p)
	if b == manyChains {
		s.chunk = s.fullest(s.chunk, s.room(b, p))
	}
	if fixed {
		s.chunk = max(1, min(k["scansteps"], maxSteps, s.fits(1, p)))
	}
	s.blocks = max(1, min(b.blocks, p.Shared/(scanThreads*(s.chunk+1)*s.loaded()+scanWork)))
	for {
		s.lanes = line
		deep := s.deep(s.chunk)
		s.lanes = max(line, min(s.threads/deep, ints.PowerOfTwo(s.across())))
		s.threads = max(leastThreads, deep*s.lanes)
		s.chains, s.tiles = ints.CeilDiv(s.across(), s.lanes), ints.CeilDiv(s.Steps, s.threads/s.lanes*s.chunk)
		if s.chains*s.tiles >= p.SMs {
			break
		}
		if s.chunk > 4 && !fixed {
			s.chunk--
		} else if s.threads > leastThreads {
			s.threads /= 2
		} else {
			break
		}
	}
	if s.carriers = 0; 2*s.chains < p.SMs && s.tiles > 4 {
		s.carriers = ints.CeilDiv(s.chains*ints.CeilDiv(s.lanes*s.values(), 32), s.threads/32)
	}
}

// leastThreads of a block are two warps: in blocks of one, qrnn's inference did not
// end on an H200, as if lanes had gone on with the tile that was drawn before. That
// a warp alone does without the block's barrier is a guess.
const leastThreads = 64

// scanWork is about what a block needs of shared memory besides what it loads.
const scanWork = 5 << 10

// deep is how many threads are behind one another in time if each has so many steps, and tilesOf
// how many tiles that makes of it.
func (s *Scan) deep(steps int) int {
	return min(s.threads/s.lanes, ints.PowerOfTwo(ints.CeilDiv(s.Steps, steps)))
}

func (s *Scan) tilesOf(steps int) int { return ints.CeilDiv(s.Steps, s.deep(steps)*steps) }

// suits is the steps of a thread that make a burden, as far as there is room: room is the most that its
// blocks have registers and shared memory for, and fits what so many blocks have shared memory for.
func (s *Scan) suits(b burden, p driver.Properties) int {
	return max(2, min(b.bytes/s.moved(), s.room(b, p)))
}

func (s *Scan) room(b burden, p driver.Properties) int {
	return min(b.values/max(1, s.width*len(s.keep)), maxSteps, s.fits(b.blocks, p))
}

func (s *Scan) fits(blocks int, p driver.Properties) int {
	return (p.Shared/blocks-scanWork)/(scanThreads*s.loaded()) - 1
}

// fullest is about as many steps of a thread as suit, so many, the more the better, that the last tile
// of time is nearly full, since blocks that have little to do leave memory idle.
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

// headStart is by how many cycles the first tiles of a multiprocessor's blocks are
// copied one behind another's: about the time that one takes. Else all would come at the same time, and while
// all compute nothing is copied.
func (s *Scan) headStart() int { return s.threads * s.chunk * s.loaded() / 32 }

// buffer is the shared memory in which a block's inputs arrive.
func (s *Scan) buffer() int {
	_, bytes := s.slots()
	return s.threads * bytes
}

// shared is the memory of a block: its inputs, what its rows of lanes compose and what
// all do, the tile drawn and twice the states that it begins with.
func (s *Scan) shared() int {
	rows := s.threads / max(s.lanes, 32)
	return s.buffer() + 8*(rows+1)*s.values()*s.lanes + 8 + 16 + 2*4*s.values()*s.lanes
}
