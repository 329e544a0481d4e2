package scan

import (
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

// A scan of unaligned rows may run on a team whose tiles are whole rows (roles_rows.tpl). It must
// have more channels than a line of memory and fewer than a block's threads. The rows of some
// steps, of all sequences, are one stretch of memory. One block writes it, so only its first and
// last sectors are shared with other blocks. Each thread has one channel; few threads, or one
// alone, share its steps.
//
// A look-back would cost too much, since all tiles belong to one chain and each has hundreds of
// values. So a few blocks are walkers (walk.cu). They read the tiles' aggregates in the order of
// time, and give each tile its prefix.
//
// More channels may be split into chains of one sequence. They end at sectors if a pass writes
// much.
const (
	rowsAsked   = 512     // most channels of such a team, and the knob's value for it
	splitAsked  = 256     // most channels of a chain if there are several, and the knob's value for it
	rowRound    = 128     // threads that change their number of registers together: a warpgroup
	rowHelping  = 56      // registers of a helper thread
	mostHeld    = 240     // most registers of a compute thread
	allHeld     = 1 << 16 // registers of a multiprocessor
	walkerLooks = 16      // aggregates that a walker reads at a time, a power of two
	walkers     = 4       // warps per 32 values if there is one chain, with walkerLooks tiles each in flight
)

// walked reports whether some blocks of a team are walkers.
func walked(s *geometry) bool { return s.members > 0 && s.carriers > 0 }

// rowTeam returns the scan on such a team. ok reports whether that is possible, and asked for or
// predicted to be fastest.
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

// keptSplit reports whether a scan is split into chains for a team by default: a pass that keeps
// values for a gradient, with few chains of 128 channels. On an H100, these reach 74 to 84 % of a
// copy's rate instead of 64 to 78. Other passes do not gain.
func keptSplit(s *Scan, p driver.Properties) bool {
	narrow := s.Batch() * ints.CeilDiv(s.Hidden(), 4*engineLanes)
	return s.asked == asked{} && s.Train && !s.backward && s.Hidden() > splitAsked && 4*narrow < p.SMs && single(s) && large(s, p)
}

// brings reports whether the copy engine can copy a tile's part of g: as one stretch of whole rows
// or, for one sequence, in boxes.
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

// rowThreads returns the number of compute threads that can keep the most values in registers.
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

// rowRegisters returns the registers of each of so many compute threads.
func rowRegisters(threads int) int {
	block := threads + 32*teamHelpers
	all := allHeld / block / 8 * 8 * block
	return min(mostHeld, (all-32*teamHelpers*rowHelping)/threads/8*8)
}

// heldOf returns the registers of a compute thread and of a helper, on Hopper.
func heldOf(s *geometry) (compute, help int) {
	if walked(s) {
		return rowRegisters(s.threads), rowHelping
	}
	return computing, helping
}

// ring returns how many tiles of a chain have words of their own, a power of two. Later tiles reuse
// these words, with another tag. When a block publishes a tile's aggregate, it has done the steps
// of its tile behind+1 turns before. So walkers have read all older aggregates, and a turn later
// all blocks have read the older prefixes.
func ring(s *geometry) int {
	if !walked(s) {
		return 0
	}
	return max(walkerLooks, ints.PowerOfTwo(min(s.tiles, s.apart()*(s.behind+2))))
}

// levels returns the number of rows of threads in a block that exchange their compositions of a
// tile.
func levels(s *geometry) int {
	if walked(s) {
		return s.threads / s.lanes
	}
	return s.threads / 32
}

// skewable reports whether a tile's stretches of memory may begin after a multiple of 16 bytes.
func skewable(s *geometry) bool { return s.backward || walked(s) }
