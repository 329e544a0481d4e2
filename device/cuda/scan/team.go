package scan

import (
	"math"
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/knob"
)

// Few channels over much time are cut for a team of blocks (team.cu).
// A multiprocessor has one block, whose teamThreads compute while warps of their
// own copy and look for states.
//
// A state goes from tile to tile of its chain, so where there are more than scanTeam blocks for
// each chain more tiles wait for theirs at a time, the
// first of which keep their places in shared memory. What is under way from memory
// besides is no more than it takes, since states are found the later for it: in inference, which reads more than
// it writes, a tile is copied when the one before has come, and without groups part by part.
const (
	teamThreads   = 256
	teamHelpers   = 4 // warps
	teamParts     = 2 // of a tile without groups, copied one behind the other
	scanTeam      = 24
	computing     = 208       // registers of a thread that computes, from Hopper on
	helping       = 88        // of others
	anyRegisters  = 160       // of each thread where all have as many
	fewRegisters  = 40        // of a thread besides what it keeps
	backRegisters = 32        // of a backward pass
	maxTeamSteps  = 64        // of a thread whose tiles the copy engine brings
	soleBytes     = 99 << 10  // that a tile of several chains reads and writes, about, where there are no groups, in inference
	soleMore      = 112 << 10 // the same where a chain has more than 8 from one of a block's to its next
	soleTrain     = 160 << 10 // and where values are kept for a gradient
	groupsBytes   = 3 << 20   // that a block reads and writes in all, from which on groups are better there
	chainBytes    = 2 << 20   // from which on blocks that draw tiles are better than those that have a chain each, in inference
	chainTrain    = 1 << 20   // and where values are kept for a gradient
	soleSteps     = 64        // in all, from which on teams without groups are better than blocks that draw tiles,
	groupsSteps   = 512       // teams in groups
	copiedSteps   = 2048      // and those whose threads copy tiles
	teamLooks     = 12        // of a thread at what tiles or groups show, at a time, at most; where there are no groups a block looks at all tiles of a chain since its last one so
	idleShare     = 32        // of how many multiprocessors one may be idle so that a block has tiles of one chain, and no groups
	teamStates    = 4         // tiles at the same time that have begun and are not done
)

// gather has a team of blocks share few chains of channels; it reports
// whether they are few and there are steps enough for each member.
func (s *Scan) gather(p driver.Properties, k knob.Params) bool {
	t := *s
	t.threads, t.hopper = teamThreads, p.Hopper
	t.lanes, t.members = min(scanLine/4/s.width, ints.PowerOfTwo(s.across())), p.SMs
	if t.chains = ints.CeilDiv(s.across(), t.lanes); t.chains > t.members {
		return false
	}
	t.engine, t.group = t.boxed(p), max(2, int(math.Ceil(math.Sqrt(float64(t.apart())))))
	if t.engine { // what a thread has need not be side by side
		t.lanes, t.width = t.lanes*t.width, 1
	}
	if one := t; one.alone() && one.cut(p, k) {
		*s = one
		return true
	}
	most := p.SMs / 2
	if !t.engine {
		most = p.SMs / 4
	}
	if t.chains > most || !t.cut(p, k) {
		return false
	}
	*s = t
	return true
}

// cut settles the tiles of a team; it reports whether there are steps enough.
func (s *Scan) cut(p driver.Properties, k knob.Params) bool {
	s.delayed = s.mixed()
	deep := s.threads / s.lanes
	room := s.wait(p)
	if all, _, _ := s.pieces(); s.sole() && slices.ContainsFunc(all, func(p contiguous) bool { return !p.whole }) {
		room = min(room, maxBox*s.parts()/deep)
	}
	most := room
	if s.sole() && s.sides() == 1 {
		bytes := soleBytes
		switch {
		case s.Train:
			bytes = soleTrain
		case s.apart() > 8:
			bytes = soleMore
		}
		most = min(most, bytes/(s.threads*s.moved()))
	}
	odd := s.lanes*s.width*driver.Single.Bytes() < scanLine && most > 2
	if odd {
		most -= (most + 1) % 2 // rows an even number apart meet in banks of shared memory
	}
	fair, fewest := s.Steps*s.chains/(s.members*deep), groupsSteps
	switch {
	case s.sole():
		fewest = soleSteps
	case !s.engine:
		fewest = copiedSteps
	}
	if fair == 0 || s.Steps < fewest {
		return false
	}
	switch n := k["scansteps"]; {
	case n != 0:
		s.taper(min(n, room), odd)
	case s.sole():
		s.even(most, odd)
	default:
		s.taper(s.evenest(min(most, fair), odd), odd)
	}
	s.members = min(s.members, s.tiles*s.chains)
	return true
}

// alone has no groups, and reports so, if the tiles of a chain from one of a block's to its next are few. They are the fewest
// where a block has tiles of one chain, for which some multiprocessors may be idle. What is kept of few chains has groups where
// there is much, unless many blocks have tiles of the same one and none is idle; and what is kept of many is not a team's. Blocks that
// have a chain each get out of step with one another, and are then slower than those that draw tiles.
func (s *Scan) alone() bool {
	if !s.engine || s.backward {
		return false
	}
	even, each := *s, s.members/s.chains
	even.members = each * s.chains
	idle := s.members - even.members
	if idle*idleShare > s.members {
		even = *s
	}
	apart, bytes, own := even.apart(), s.Steps*s.lanes*s.moved()*s.chains/s.members, chainBytes // of a block
	if s.Train {
		own = chainTrain
		few, spread := each >= 4, each > scanTeam && idle == 0
		if few && !spread && bytes >= groupsBytes || each == 1 && apart > 1 {
			return false
		}
	}
	if apart > teamLooks*soleSeekers*even.sides() || apart == 1 && bytes >= own {
		return false
	}
	s.members, s.group = even.members, 1
	return true
}

// even takes as few turns as most steps of a thread make, of about as many steps each. During a last one that is short little is
// under way from memory.
func (s *Scan) even(most int, odd bool) {
	turns := s.taper(most, odd)
	for n := ints.CeilDiv(s.Steps*s.chains, s.members*s.threads/s.lanes*turns); ; n++ {
		if odd && n%2 == 0 {
			continue
		}
		if s.taper(n, odd) <= turns {
			return
		}
	}
}

// evenest is about most steps of a thread, so many that the member with the most turns has as little to do as
// can be.
func (s *Scan) evenest(most int, odd bool) int {
	best, least := most, math.MaxInt
	for n := most; n >= max(1, most*6/7); n-- {
		turns := ints.CeilDiv(ints.CeilDiv(s.Steps, s.threads/s.lanes*n)*s.chains, s.members)
		if cost := turns * (n + 1); cost < least && (!odd || n%2 == 1) {
			best, least = n, cost
		}
	}
	return best
}

// taper cuts chains into tiles of n steps of a thread and returns how many turns that makes. Without groups tiles of the last one share
// evenly what it is left with.
func (s *Scan) taper(n int, odd bool) (turns int) {
	deep := s.threads / s.lanes
	s.tiles = ints.CeilDiv(s.Steps, deep*n)
	s.chunk, s.tail, s.regular = n, n, s.tiles
	turns = ints.CeilDiv(s.tiles*s.chains, s.members)
	if !s.sole() {
		return turns
	}
	s.regular = (turns - 1) * s.members / s.chains
	left := s.Steps - s.regular*deep*n
	s.tail = ints.CeilDiv(left, deep*(turns*s.members/s.chains-s.regular))
	if odd {
		s.tail = min(n, s.tail|1)
	}
	if turns == 1 {
		s.chunk = s.tail
	}
	s.tiles = s.regular + ints.CeilDiv(left, deep*s.tail)
	return turns
}

// tapers reports whether tiles of the last turn are smaller.
func (s *geometry) tapers() bool { return s.members > 0 && s.tail < s.chunk }

// sole reports whether there are no groups, and parts is in how many a tile is copied: of several sequences, which come in
// boxes, in so many that there is room for 32 steps of a thread.
func (s *geometry) sole() bool { return s.group == 1 }

func (s *geometry) parts() int {
	switch deep := s.threads / s.lanes; {
	case !s.sole():
		return 1
	case s.Batch() > 1:
		return max(teamParts, deep*32/maxBox)
	}
	return teamParts
}

// inference reports whether the scan keeps nothing and is no gradient.
func (s *operands) inference() bool { return !s.Train && s.grad == nil }

// period is how many turns a member takes from one tile of a chain to the next, which are
// apart tiles of the chain from each other.
func (s *geometry) period() int {
	a, b := s.chains, s.members
	for b > 0 {
		a, b = b, a%b
	}
	return s.chains / a
}

func (s *geometry) apart() int { return s.period() * s.members / s.chains }

// A queue is how many tiles wait for their states, the first of them in their places.
type queue struct {
	hold   int // tiles composed that keep their places in shared memory
	behind int // tiles composed and not done yet
	places int // of tiles in shared memory
}

// wait settles how the tiles of a block wait for their states, and is the most steps of a
// thread: the first way that leaves room for some. Cells that keep much have less, and passes that write much wait longer.
func (s *Scan) wait(p driver.Properties) (most int) {
	type way struct {
		queue
		least int
	}
	ways := []way{{queue: queue{hold: 0, behind: 2, places: 3}, least: 2}, {queue: queue{hold: 0, behind: 2, places: 2}, least: 0}}
	switch few := s.members/s.chains > scanTeam; {
	case s.sole():
		ways = []way{{queue: queue{hold: 0, behind: 1, places: 2}, least: 0}}
	case few && s.inference():
		ways = append([]way{{queue: queue{hold: 1, behind: 2, places: 3}, least: 2}}, ways...)
	case few && !s.backward:
		ways = append([]way{{queue: queue{hold: 1, behind: 3, places: 4}, least: 3}}, ways...)
	case few:
		ways = append([]way{{queue: queue{hold: 1, behind: 3, places: 4}, least: 3}, {queue: queue{hold: 0, behind: 3, places: 3}, least: 2}}, ways...)
	case s.backward:
		ways = []way{{queue: queue{hold: 1, behind: 2, places: 3}, least: 4}, {queue: queue{hold: 0, behind: 1, places: 2}, least: 0}}
	default:
		ways = []way{{queue: queue{hold: 0, behind: 1, places: 2}, least: 0}}
	}
	for _, w := range ways {
		if w.hold > 0 && s.meets() {
			continue
		}
		s.queue = w.queue
		if most = s.most(p); most >= w.least {
			break
		}
	}
	return most
}

// narrow reports whether vectors are so short that threads read four rows at a time.
func (s *geometry) narrow() bool { return s.lanes*s.width*driver.Single.Bytes() <= scanLine/4 }

// meets reports whether these rows meet in banks of shared memory whatever the steps
// of a thread: if they are of whole lines. To read them twice costs more than to wait in registers.
func (s *Scan) meets() bool {
	all, _, _ := s.pieces()
	return s.narrow() && slices.ContainsFunc(all, func(p contiguous) bool { return p.pitch%scanLine == 0 })
}

// most is the most steps of a tile that a thread can have.
func (s *Scan) most(p driver.Properties) int {
	room := anyRegisters
	if s.hopper {
		room = computing
	}
	s.chunk = maxSteps
	if s.engine {
		s.chunk = maxTeamSteps
	}
	for ; s.chunk > 1; s.chunk-- {
		kept := len(s.kept())*s.width*s.chunk*(s.behind-s.hold+1) + 2*s.values()*(s.behind+1)
		few := fewRegisters
		if s.backward {
			few = backRegisters
		}
		if kept+few <= room && s.teamShared() <= p.Shared {
			break
		}
	}
	return s.chunk
}

// groupAggregates are the bytes of the words in which groups show what they make; single tiles show it themselves.
func (s *Scan) groupAggregates() int64 {
	if s.sole() {
		return 0
	}
	return 16 * int64(s.chains*ints.CeilDiv(s.tiles, s.group)) * int64(s.lanes*s.values())
}

// block is how many threads a block of a team has.
func (s *geometry) block() int { return s.threads + 32*teamHelpers }

// seekers are the warps of a block that find states: but for one that copies, and one that joins groups.
func (s *geometry) seekers() int {
	if s.sole() {
		return soleSeekers
	}
	return soleSeekers - 1
}

const soleSeekers = teamHelpers - 1

// looks are those of a thread of a seeker at a time.
func (s *geometry) looks() int {
	if s.sole() {
		return ints.CeilDiv(s.apart(), soleSeekers*s.sides())
	}
	return teamLooks
}

// sides are how many threads of a seeker look for the same value where there are no groups.
func (s *geometry) sides() int {
	if n := s.lanes * s.values(); n < 32 && 32%n == 0 {
		return 32 / n
	}
	return 1
}

// teamShared is the memory of a block of a team: its tiles, the states that they
// begin with, what of their results is staged, twice what its warps compose, the states behind groups or, where there are none, behind tiles and what
// seekers compose, two numbers and barriers.
func (s *Scan) teamShared() int {
	_, _, bytes := s.areas()
	values := s.lanes * s.values()
	bytes = s.places*bytes + s.staged() + 4*teamStates*values + 2*8*s.threads/32*values + 8*ints.CeilDiv(s.period()*values, 2) + 8 + 8*s.places*(s.parts()+1)
	if s.sole() {
		bytes += 8 * s.seekers() * s.sides() * values
	}
	return bytes
}
