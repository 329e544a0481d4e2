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

// How rows that begin anywhere are written. A sector of memory has 32 bytes, and a line has four. Where a chain ends
// within a sector, blocks of two chains write parts of it, at different times. There are two remedies, each a knob:
//
//   - scanlanes: chains of more channels, which end less often;
//   - scancut: chains end where a sector begins, or a line, at a channel of its own in each row. The last channels of a
//     chain are the next chain's first ones, too: both compute them, and at each row one writes them. Where a chain has all
//     channels, what the copy engine writes begins and ends so.

// asked is what knobs ask for.
type asked struct {
	wide   int // most channels of a chain, for blocks that draw tiles; 0: engineLanes
	sector int // bytes, at whose multiples in memory chains end; anywhere: none; 0: as is fastest
	small  int // of the measures of small.go, all up to this one
}

// sectorBytes are those of a sector of memory. At multiples of anywhere, chains end with any channel.
const (
	sectorBytes = 32
	anywhere    = 16
)

func ask(k knob.Params) asked {
	return asked{wide: k["scanlanes"], sector: k["scancut"], small: k["scansmall"]}
}

// rowKnobs are the knobs.
func rowKnobs() []knob.Knob {
	return []knob.Knob{
		{Name: "scanlanes", Doc: "most channels of a chain of a scan's tiles, where rows begin anywhere: 32, 64 or 128; 256: by a team; 512: all, in tiles of whole rows; 0: as is fastest", Values: []int{0}, Max: rowsAsked},
		{Name: "scancut", Doc: "chains of a scan end at multiples of so many bytes, where rows begin anywhere: 32, 64 or 128; 16: with any channel; 0: 32 if large and in training", Values: []int{0}, Max: scanLine},
		{Name: "scansmall", Doc: "of a small scan; 1: the next kernel begins early; 2: a chain is one tile, too, where it fits", Values: []int{0}, Max: smallSole},
	}
}

// lanesAsked are the most lanes of chained tiles.
func lanesAsked(a asked) int {
	if a.wide == 0 {
		return engineLanes
	}
	return min(a.wide, 4*engineLanes)
}

// large reports whether the scan moves more than stays in the L2 cache. Smaller ones take narrow chains, which are more.
func large(s *Scan, p driver.Properties) bool {
	return float64(s.moved()/s.width)*float64(s.Steps)*float64(s.Batch())*float64(s.Hidden()) >= float64(p.L2)/2
}

// single reports whether all that is written is in single precision: an end within a sector takes 7 channels more.
func single(s *Scan) bool {
	return !slices.ContainsFunc(s.groups, func(g codegen.Group) bool { return g.Written && g.Element != driver.Single })
}

// dealtWide is the scan with channels dealt out to chains for blocks that draw tiles. By an H100's times, chains of 128
// channels are fastest: 92 to 94 % of a copy in inference and backward where those of 32 reach 66 to 80. What is kept for
// a gradient is written fastest by whole sectors, too, where chains are many. Where they are few, and rows of three warps,
// chains of 64 are faster: 17 × 147 × 5,003 reaches 74, 65 and 81 % of a copy where it reached 60, 61 and 63 (gilr).
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

// cutTeam is the scan with chains that end at sectors, for a team. Passes that write much are 2 to 14 points nearer to a
// copy with that, by an H100's times, but those of fewer channels than two chains', and those that store 16 bits, lose as much.
func cutTeam(s *Scan, p driver.Properties) (t Scan, ok bool) {
	t = *s
	t.sector = sectorBytes
	return t, s.sector == 0 && !s.inference() && s.Hidden() > 2*engineLanes && single(s) && large(s, p)
}

// overlap is how many channels a chain has besides its own, so that it can end at multiples of the bytes that are asked for.
// It is 0 where so few lanes have no room for those.
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

// inPlace reports whether a matrix is read and written step by step: then nobody may read what another chain writes.
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

// decline is why s does not do what knobs ask for, nil if it does.
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
			return reject(name, "it is for scans whose rows begin anywhere, on a GPU of compute capability 9.0 or later")
		}
	}
	if k["scanlanes"] == rowsAsked && !walked(&s.geometry) {
		return reject("scanlanes", "it is for 33 to %d channels of all sequences that the copy engine brings in one stretch", rowsAsked)
	}
	if k["scanlanes"] == splitAsked && !walked(&s.geometry) {
		return reject("scanlanes", "it is for sequences of more than %d channels, and fewer chains than multiprocessors", splitAsked)
	}
	if k["scanlanes"] > engineLanes && s.members > 0 && !walked(&s.geometry) {
		return reject("scanlanes", "a scan of so few channels has chains of %d at most", engineLanes)
	}
	if k["scancut"] > anywhere && s.over == 0 {
		switch most := lanesAsked(s.asked); {
		case s.members > 0 && s.chains == 1: // stretches that leave by the copy engine begin at such multiples
			if s.staged() == 0 {
				return reject("scancut", "rows of the chain are longer than a line")
			}
			return nil
		case inPlace(&s.geometry):
			return reject("scancut", "the scan writes where it reads")
		case s.units == s.Hidden():
			return reject("scancut", "a chain has all channels of its sequences")
		default:
			return reject("scancut", "chains of %d channels have no room for such an end", most)
		}
	}
	if k["scansmall"] == smallSole && (s.members > 0 || s.tiles > 1) {
		return reject("scansmall", "no tile has room for all steps of its channels")
	}
	return nil
}

// ownText is a condition for writing r, besides that there is a step.
func ownText(s *writer, r cell.Ref) string {
	if s.over == 0 {
		return ""
	}
	return fmt.Sprintf(" && owns<%d>(to_%v, g.x(), t.u)", s.sector/s.element(argument(r)).Bytes(), r)
}

// takenText has a backward pass say that a thread has read the gradients of the last states of channels that are the
// next chain's. That chain leaves those of the first states in their place.
func takenText(s *writer, chain, run string) string {
	if s.over == 0 || !s.backward {
		return ""
	}
	return fmt.Sprintf("        if (g.x() >= UNITS) take(g.taken(%s, g.x()), %s);\n", chain, run)
}

// untakenText has a thread that is to leave gradients there wait for that.
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
