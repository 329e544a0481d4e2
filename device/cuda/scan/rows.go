package scan

import (
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

// A scan whose rows begin anywhere, of more channels than a line of memory has and fewer than a block has threads, is a
// team's whose tiles are whole rows (roles_rows.tpl). What all sequences have of some steps is one stretch of memory. One
// block writes it, so no sector but the first and the last is shared with another block. A thread has a channel, of few
// threads behind one another in time or of one alone.
//
// A look-back would be too much: all tiles are of one chain, and each has hundreds of values. So a few blocks walk
// (walk.cu): they read what tiles publish in the order of time, and give each tile its prefix.
//
// More channels may be split into chains of one sequence's, which end at sectors where a pass writes much.
const (
	rowsAsked   = 512     // channels of such a team at most, and the knob's value for it
	splitAsked  = 256     // the same, of a chain where there are several
	rowRound    = 128     // threads that change their number of registers together
	rowHelping  = 56      // registers of a helper thread
	mostHeld    = 240     // most registers of a compute thread
	allHeld     = 1 << 16 // registers of a multiprocessor
	walkerLooks = 16      // aggregates that a walker reads at a time, a power of two
	walkers     = 4       // warps that have so many tiles each under way of a value, if there is one chain
)

// walked reports whether blocks of a team walk.
func walked(s *geometry) bool { return s.members > 0 && s.carriers > 0 }

// rowTeam is the scan by such a team. It reports whether there is one, and no better way.
func rowTeam(s *Scan, p driver.Properties) (t Scan, ok bool) {
	t = *s
	form := s.wide
	if form == 0 && keptSplit(s, p) {
		form = splitAsked
	}
	split := form == splitAsked
	if !p.Hopper || form != rowsAsked && !split {
		return t, false
	}
	t.threads, t.lanes = teamThreads, min(scanLine/4/s.width, ints.PowerOfTwo(s.across()))
	if boxed(&t.geometry, p) {
		return t, false
	}
	t.width, t.engine, t.hopper = 1, true, true
	channels := s.Batch() * s.Hidden()
	switch {
	case split && s.Hidden() > splitAsked:
		if t.sector == 0 && !s.inference() && single(s) {
			t.sector = sectorBytes
		}
		dealOut(&t.geometry, splitAsked)
		t.lanes = t.units + t.over
	case !split && channels > engineLanes && channels <= rowsAsked:
		t.units, t.seqs, t.over, t.chains, t.lanes = s.Hidden(), s.Batch(), 0, 1, channels
	default:
		return t, false
	}
	if slices.ContainsFunc(t.loads, func(l load) bool { return !brings(&t.geometry, t.holderOf(l)) }) {
		return t, false
	}
	t.threads = rowThreads(t.lanes)
	pieces := t.chains * ints.CeilDiv(t.lanes*t.values(), 32)
	t.carriers = ints.CeilDiv(pieces*ints.CeilDiv(walkers, t.chains), t.block()/32)
	t.members = p.SMs - t.carriers
	return t, t.members >= t.chains
}

// keptSplit reports whether a scan is split so by default. By an H100's times, passes that keep values for a gradient then
// reach 74 to 84 % of a copy where they reached 64 to 78, as long as chains of 128 channels are few. Other passes do not gain.
func keptSplit(s *Scan, p driver.Properties) bool {
	narrow := s.Batch() * ints.CeilDiv(s.Hidden(), 4*engineLanes)
	return s.asked == asked{} && s.Train && !s.backward && s.Hidden() > splitAsked && 4*narrow < p.SMs && single(s) && large(s, p)
}

// brings reports whether the copy engine can bring what a tile has of g: in one stretch of whole rows or, of one
// sequence, in boxes.
func brings(s *geometry, g *codegen.Group) bool {
	if _, ok := lead(&s.operands, g); !ok {
		return false
	}
	columns := 0
	for _, l := range s.loads {
		if l.group == g.Name {
			columns++
		}
	}
	whole := s.chains == 1 && columns*s.Hidden() == g.View.M.Cols
	return whole || s.seqs == 1 && spanOf(s, g) <= maxBox && s.repeats(g)*s.Batch()*g.View.M.Cols <= maxColumns
}

// rowThreads is the number of compute threads whose registers, but for those that each needs besides, hold the most.
func rowThreads(channels int) (threads int) {
	most := 0
	for deep := 1; deep*channels <= rowsAsked; deep++ {
		n := ints.RoundUp(deep*channels, rowRound)
		if held := deep * channels * (rowRegisters(n) - fewRegisters); held > most {
			most, threads = held, n
		}
	}
	return threads
}

// rowRegisters are those of each of so many compute threads.
func rowRegisters(threads int) int {
	block := threads + 32*teamHelpers
	all := allHeld / block / 8 * 8 * block
	return min(mostHeld, (all-32*teamHelpers*rowHelping)/threads/8*8)
}

// heldOf are the registers of a compute thread and of a helper, from Hopper on.
func heldOf(s *geometry) (compute, help int) {
	if walked(s) {
		return rowRegisters(s.threads), rowHelping
	}
	return computing, helping
}

// ring is the number of a chain's tiles whose words are beside each other, a power of two. Those of the next ones take
// their places, marked by a number of their own. A block that shows what a tile makes has done the steps of its tile
// of behind turns and one before. So walkers have read what all tiles ahead of that show, and a turn later all have
// found what walkers show them.
func ring(s *geometry) int {
	if !walked(s) {
		return 0
	}
	return max(walkerLooks, ints.PowerOfTwo(min(s.tiles, s.apart()*(s.behind+2))))
}

// levels are the rows of threads whose compositions a block's threads show each other, of one tile.
func levels(s *geometry) int {
	if walked(s) {
		return s.threads / s.lanes
	}
	return s.threads / 32
}

// skewable reports whether a tile's stretches of memory may begin behind a multiple of 16 bytes.
func skewable(s *geometry) bool { return s.backward || walked(s) }
