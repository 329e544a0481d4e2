package scan

import (
	"fmt"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// How unaligned rows are written. A sector of memory has 32 bytes, and a line has four sectors. If
// a chain ends within a sector, blocks of two chains write parts of it at different times, which is
// slow. There are two remedies, each a knob:
//
//	- scanlanes: chains of more channels, which have fewer ends;
//	- scancut: chains end at the beginning of a sector or a line, at a different channel in each row. The last
//	  channels of a chain are also the first channels of the next chain. Both chains compute them, and one
//	  writes each row. If a chain has all channels, the stretches that the copy engine writes end so.

// asked holds the settings of the knobs.
type asked struct {
	wide   int // most channels of a chain, if blocks draw tiles; 0: engineLanes
	sector int // chains end at multiples of so many bytes in memory; anywhere: at any channel; 0: chosen
	small  int // use the measures of small.go up to this one
}

// sectorBytes is the size of a sector of memory. For sector = anywhere, chains end at any channel.
const (
	sectorBytes = 32
	anywhere    = 16
)

func ask(k knob.Params) asked {
	return asked{wide: k["scanlanes"], sector: k["scancut"], small: k["scansmall"]}
}

// rowKnobs returns the knobs for unaligned rows and small scans.
func rowKnobs() []knob.Knob {
	return []knob.Knob{
		{Name: "scanlanes", Doc: "scans of unaligned rows: most channels of a chain, 32, 64 or 128; 256: the same, by a team; 512: all channels, by a team whose tiles are whole rows; 0: chosen", Values: []int{0}, Max: rowsAsked, Internal: true},
		{Name: "scancut", Doc: "scans of unaligned rows: chains end at multiples of so many bytes, 32, 64 or 128; 16: at any channel; 0: 32 for large scans in training", Values: []int{0}, Max: scanLine, Internal: true},
		{Name: "scansmall", Doc: "small scans: 1: the next kernel begins early; 2: also, each chain is one tile if it fits", Values: []int{0}, Max: smallSole, Internal: true},
	}
}

// lanesAsked returns the most lanes of chained tiles.
func lanesAsked(a asked) int {
	if a.wide == 0 {
		return engineLanes
	}
	return min(a.wide, 4*engineLanes)
}

// large reports whether the scan moves more than the L2 cache keeps. Smaller scans use narrow, and
// so more, chains.
func large(s *Scan, p driver.Properties) bool {
	return float64(s.moved()/s.width)*float64(s.Steps)*float64(s.Batch())*float64(s.Hidden()) >= float64(p.L2)/2
}

// single reports whether all results are in single precision: to end at a sector takes at most 7
// more channels then.
func single(s *Scan) bool {
	return !slices.ContainsFunc(s.groups, func(g codegen.Group) bool { return g.Written && g.Element != driver.Single })
}

// dealtWide returns the scan with channels dealt out to chains (deal.go), for blocks that draw
// tiles. On an H100, chains of 128 channels are fastest: inference and backward reach 92 to 94 % of
// a copy's rate, and chains of 32 reach 66 to 80. Values kept for a gradient are also written
// fastest by whole sectors, if chains are many. With few chains and rows of three warps, chains of
// 64 are faster: 17 × 147 × 5,003 (gilr) reaches 74, 65 and 81 % of a copy instead of 60, 61 and
// 63.
func dealtWide(s *Scan, p driver.Properties) (best Scan, ok bool) {
	if s.wide != 0 || !large(s, p) {
		return dealtTo(s, p, lanesAsked(s.asked))
	}
	for lanes := 4 * engineLanes; lanes > engineLanes; lanes /= 2 {
		if best, ok = dealtTo(s, p, lanes); ok && 4*best.chains >= p.SMs {
			if s.sector == 0 && s.Train && !s.backward && single(s) {
				cut := *s
				cut.sector = sectorBytes
				if cut, ok := dealtTo(&cut, p, lanes); ok && cut.over > 0 && 2*cut.chains > p.SMs {
					return cut, true
				}
			}
			if best.lanes == threeWarps && 2*best.chains < p.SMs {
				continue
			}
			return best, true
		}
	}
	return dealtTo(s, p, engineLanes)
}

// cutTeam returns the scan with chains that end at sectors, for a team. On an H100, passes that
// write much then come 2 to 14 points nearer to a copy's rate. Those with fewer channels than two
// chains, and those that store 16 bits, lose as much.
func cutTeam(s *Scan, p driver.Properties) (t Scan, ok bool) {
	t = *s
	t.sector = sectorBytes
	return t, s.sector == 0 && !s.inference() && s.Hidden() > 2*engineLanes && single(s) && large(s, p)
}

// overlap returns how many channels a chain of so many lanes shares with the next one. With these,
// it can end at the multiples of bytes that are asked for. It is 0 if the lanes have no room for
// them.
func overlap(s *geometry, lanes int) (over int) {
	if s.sector <= anywhere || inPlace(s) {
		return 0
	}
	for _, g := range s.groups {
		if g.Written {
			over = max(over, s.sector/g.Element.Bytes()-1)
		}
	}
	if 2*over > lanes {
		return 0
	}
	return over
}

// inPlace reports whether a matrix is both read and written: then no chain may read what another
// writes.
func inPlace(s *geometry) bool {
	return slices.ContainsFunc(s.loads, func(l load) bool {
		m := s.holderOf(l).View.M
		for _, late := range []bool{false, true} {
			if slices.ContainsFunc(s.outputs(late), func(r cell.Ref) bool { return s.view(r).M == m }) {
				return true
			}
		}
		return false
	})
}

// decline returns why s cannot do what knobs ask for; nil: it can.
func decline(s *Scan, k knob.Params) error {
	reject := func(name, format string, args ...any) error {
		return fmt.Errorf("cuda: %s=%d: %w: %s", name, k[name], schedule.ErrKnob, fmt.Sprintf(format, args...))
	}
	if !slices.Contains([]int{0, 32, 64, 128, splitAsked, rowsAsked}, k["scanlanes"]) {
		return reject("scanlanes", "it is 0, 32, 64, 128, %d or %d", splitAsked, rowsAsked)
	}
	if !slices.Contains([]int{0, anywhere, 32, 64, 128}, k["scancut"]) {
		return reject("scancut", "it is 0, 16, 32, 64 or 128")
	}
	for _, name := range []string{"scanlanes", "scancut"} {
		if k[name] != 0 && s.units == 0 {
			return reject(name, "it is for scans whose rows are not aligned to 16 bytes, on a GPU of compute capability 9.0 or later")
		}
	}
	if k["scanlanes"] == rowsAsked && !walked(&s.geometry) {
		return reject("scanlanes", "it is for 33 to %d channels in all sequences together, of matrices that are read as a whole", rowsAsked)
	}
	if k["scanlanes"] == splitAsked && !walked(&s.geometry) {
		return reject("scanlanes", "it is for sequences of more than %d channels, and fewer chains than multiprocessors", splitAsked)
	}
	if k["scanlanes"] > engineLanes && s.members > 0 && !walked(&s.geometry) {
		return reject("scanlanes", "a scan of so few channels has chains of %d at most", engineLanes)
	}
	if k["scancut"] > anywhere && s.over == 0 {
		switch most := lanesAsked(s.asked); {
		case s.members > 0 && s.chains == 1: // the stretches that the copy engine writes begin at such multiples
			if s.staged() == 0 {
				return reject("scancut", "rows of the chain are longer than a line of memory")
			}
			return nil
		case inPlace(&s.geometry):
			return reject("scancut", "the scan overwrites what it reads")
		case s.units == s.Hidden():
			return reject("scancut", "a chain has all channels of its sequences")
		default:
			return reject("scancut", "chains of %d channels have no room for the channels that this would share", most)
		}
	}
	if k["scansmall"] == smallSole && (s.members > 0 || s.tiles > 1) {
		return reject("scansmall", "no tile has room for all steps of its channels")
	}
	return nil
}

// ownText spells when a thread writes r, besides having a step.
func ownText(s *writer, r cell.Ref) string {
	if s.over == 0 {
		return ""
	}
	return fmt.Sprintf(" && owns<%d>(to_%v, g.x(), t.u)", s.sector/s.element(argument(r)).Bytes(), r)
}

// takenText spells that a thread of a backward pass has read the last states' gradients of channels
// that the next chain also has. That chain overwrites them with the first states' gradients.
func takenText(s *writer, chain, run string) string {
	if s.over == 0 || !s.backward {
		return ""
	}
	return fmt.Sprintf("        if (g.x() >= UNITS) take(g.taken(%s, g.x()), %s);\n", chain, run)
}

// untakenText spells the wait for that before a thread overwrites them.
func untakenText(s *writer) string {
	if s.over == 0 || !s.backward {
		return ""
	}
	chain, run := "t.chain", "run"
	if s.members > 0 {
		chain, run = "behind.chain", "g.run"
	}
	return fmt.Sprintf("      if (g.x() < OVER && g.x() < UNITS && t.u != g.x() && t.steps > 0 && t.first + t.steps == steps) wait_taken(g.taken(%s - 1, g.x() + UNITS), %s, g.status);\n", chain, run)
}
