package scan

import (
	"math"
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/knob"
)

// A scan of few channels over many steps runs on a team of blocks (team.cu). Each
// multiprocessor has one block. Its compute threads run the steps; its helper warps copy
// tiles and find exclusive prefixes.
//
// The tiles of a chain get their prefixes one after another. With more than scanTeam
// blocks a chain, more tiles of a block wait for their prefixes at the same time. The
// first of these keep their places in shared memory.
//
// Copies delay the look-back, so no more of them are under way than needed. In inference,
// which reads more than it writes, a tile is copied once the tile before it has arrived.
// Without groups it is copied in parts.
const (
	teamThreads   = 256       // compute threads of a block
	teamHelpers   = 4         // helper warps of a block
	teamParts     = 2         // parts in which a tile is copied, without groups
	scanTeam      = 24        // blocks per chain, beyond which more tiles wait
	computing     = 208       // registers of a compute thread, from Hopper on
	helping       = 88        // registers of a helper thread, from Hopper on
	anyRegisters  = 160       // registers of every thread, before Hopper
	fewRegisters  = 40        // registers of a compute thread besides the values it keeps
	backRegisters = 32        // the same, in a backward pass
	maxTeamSteps  = 64        // most steps per thread in a tile that the copy engine copies
	soleBytes     = 99 << 10  // bytes that a tile should read and write: several chains, no groups, inference
	soleMore      = 112 << 10 // the same, when a block's next tile of a chain is more than 8 tiles later
	soleTrain     = 160 << 10 // the same, when values are kept for a gradient
	groupsBytes   = 3 << 20   // bytes of a block's whole scan from which groups are faster, in training
	chainBytes    = 2 << 20   // bytes of a block's whole scan from which chained tiles are faster than a chain per block, in inference
	chainTrain    = 1 << 20   // the same, in training
	soleSteps     = 64        // fewest steps of a scan for teams without groups
	groupsSteps   = 512       // fewest steps for teams with groups
	copiedSteps   = 2048      // fewest steps for teams whose threads copy the tiles
	teamLooks     = 12        // most aggregates that a thread reads at a time
	idleShare     = 32        // one of so many multiprocessors may idle, so that each block has one chain and needs no groups
	teamStates    = 4         // tiles of a block that may be composed and not done
)

// formTeam divides the scan among a team of blocks. It reports whether chains are few enough and
// steps many enough for that.
func (s *Scan) formTeam(p driver.Properties, k knob.Params) bool {
	if t, ok := rowTeam(s, p); ok && t.cut(p, k) {
		*s = t
		return true
	}
	if t, ok := cutTeam(s, p); ok && formTeamAs(&t, p, k) && t.over > 0 {
		*s = t
		return true
	}
	return formTeamAs(s, p, k)
}

// formTeamAs is formTeam with the ends of chains as in s.
func formTeamAs(s *Scan, p driver.Properties, k knob.Params) bool {
	t := *s
	t.threads, t.hopper = teamThreads, p.Hopper
	t.lanes, t.members = min(scanLine/4/s.width, ints.PowerOfTwo(s.across())), p.SMs
	t.chains = ints.CeilDiv(s.across(), t.lanes)
	if t.engine = boxed(&t.geometry, p); t.engine { // the engine lets a thread have single values instead of vectors
		t.lanes, t.width = t.lanes*t.width, 1
	} else if d, ok := dealtTo(&t, p, engineLanes); ok {
		t = d
	}
	if t.chains > t.members {
		return false
	}
	t.group = max(2, int(math.Ceil(math.Sqrt(float64(t.apart())))))
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

// cut chooses the length of a team's tiles. It reports whether there are enough steps.
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
		most -= (most + 1) % 2 // rows an even number of steps apart share banks of shared memory
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

// alone decides whether the team has no groups. It has none if few tiles of a chain lie
// between a block's tile and its next one. They are fewest when each block has tiles of a
// single chain; some multiprocessors may idle for that.
//
// In training, few chains with much data take groups, unless many blocks share each chain
// and no multiprocessor idles. Many chains are then left to chained tiles. Blocks with a
// chain each drift apart, so long chains are faster as chained tiles, too.
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
	apart, bytes, own := even.apart(), s.Steps*s.lanes*s.moved()*s.chains/s.members, chainBytes // bytes of a block
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

// even cuts the time into as few turns as possible, with at most most steps per thread in a tile,
// and makes these turns about equally long. A short last turn would leave memory idle.
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

// evenest picks the steps of a thread, at or a little below most, that minimise the busiest
// block's work.
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

// taper cuts chains into tiles of n steps of a thread, and returns the number of turns.
// Without groups, the tiles of the last turn share the remaining steps evenly.
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

// tapers reports whether the tiles of the last turn are smaller than the others.
func (s *geometry) tapers() bool { return s.members > 0 && s.tail < s.chunk }

// sole reports whether the team has no groups.
func (s *geometry) sole() bool { return s.group == 1 }

// parts is the number of parts in which a tile is copied. Several sequences come in boxes
// of limited size; they take enough parts for 32 steps of a thread.
func (s *geometry) parts() int {
	switch deep := s.threads / s.lanes; {
	case !s.sole():
		return 1
	case s.Batch() > 1:
		return max(teamParts, deep*32/maxBox)
	}
	return teamParts
}

// inference reports whether the scan is a forward pass that keeps nothing for a gradient.
func (s *operands) inference() bool { return !s.Train && s.grad == nil }

// period is the number of turns from a block's tile of a chain to its next tile of that
// chain.
func (s *geometry) period() int {
	a, b := s.chains, s.members
	for b > 0 {
		a, b = b, a%b
	}
	return s.chains / a
}

// apart is the number of tiles of the chain between these two.
func (s *geometry) apart() int { return s.period() * s.members / s.chains }

// A queue says how many tiles of a block wait for their exclusive prefixes.
type queue struct {
	hold   int // composed tiles that keep their places in shared memory
	behind int // composed tiles whose steps are not done yet
	places int // places for tiles in shared memory
}

// wait chooses the queue of a block's tiles and returns the most steps of a thread. It
// takes the first queue that leaves a thread its least number of steps. Cells that keep
// many values have room for fewer; passes that write much let more tiles wait.
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

// narrow reports whether a row of lanes is so short that a warp reads four rows at a time.
func (s *geometry) narrow() bool { return s.lanes*s.width*driver.Single.Bytes() <= scanLine/4 }

// meets reports whether such rows share banks of shared memory for any steps of a thread: rows are
// whole lines. Then a tile waits in registers, since reading it twice would cost more.
func (s *Scan) meets() bool {
	all, _, _ := s.pieces()
	return s.narrow() && slices.ContainsFunc(all, func(p contiguous) bool { return p.pitch%scanLine == 0 })
}

// most is the largest number of steps of a tile that fits a thread's registers and the
// block's shared memory.
func (s *Scan) most(p driver.Properties) int {
	room := anyRegisters
	if s.hopper {
		room, _ = heldOf(&s.geometry)
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

// groupAggregates is the size of the words for group aggregates, in bytes. Without groups
// there are none.
func groupAggregates(s *Scan) int64 {
	switch {
	case walked(&s.geometry): // the prefixes of tiles
		return 8 * int64(s.chains*ring(&s.geometry)) * int64(s.lanes*s.values())
	case s.sole():
		return 0
	}
	return 16 * int64(s.chains*ints.CeilDiv(s.tiles, s.group)) * int64(s.lanes*s.values())
}

// block is the number of threads of a block.
func (s *geometry) block() int { return s.threads + 32*teamHelpers }

// seekers is the number of a block's carry-propagation warps. One helper warp copies
// tiles; with groups, another composes the group aggregates.
func (s *geometry) seekers() int {
	if s.sole() || walked(s) {
		return soleSeekers
	}
	return soleSeekers - 1
}

const soleSeekers = teamHelpers - 1

// looks is the number of aggregates that a thread of a seeker reads at a time.
func (s *geometry) looks() int {
	if s.sole() {
		return ints.CeilDiv(s.apart(), soleSeekers*s.sides())
	}
	return teamLooks
}

// sides is the number of threads of a seeker that share one value's look-back, without
// groups.
func (s *geometry) sides() int {
	if n := s.lanes * s.values(); n < 32 && 32%n == 0 {
		return 32 / n
	}
	return 1
}

// teamShared returns the bytes of shared memory of a block: the tiles, staged results, exclusive
// prefixes, two sets of the warps' aggregates, prefixes of the last groups or tiles, two counters
// and the barriers. Without groups it also holds what seekers compose.
func (s *Scan) teamShared() int {
	_, _, bytes := s.areas()
	values := s.lanes * s.values()
	bytes = s.places*bytes + s.staged() + 4*teamStates*values + 2*8*levels(&s.geometry)*values + 8*ints.CeilDiv(s.period()*values, 2) + 8 + 8*s.places*(s.parts()+1)
	if s.sole() {
		bytes += 8 * s.seekers() * s.sides() * values
	}
	return bytes
}
