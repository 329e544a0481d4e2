package cpu

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// declined declines settings of knobs that no operation can be shared by.
func (p *program) declined() error {
	scans, cut := 0, false
	for _, n := range p.nodes {
		switch w := n.work.(type) {
		case *persistent:
			if err := p.banded(&w.band, n.stream); err != nil {
				return err
			}
		case *persistentBackward:
			if err := p.banded(&w.band, n.stream); err != nil {
				return err
			}
		case *scan:
			scans++
			cut = cut || w.cut > 1
			if w.most%w.cut > 0 {
				return fmt.Errorf("cpu: scansplit=%d: %w: %d workers take part in a scan, and that is no divisor of it", w.cut, schedule.ErrUnsupported, w.most)
			}
		}
	}
	if n := p.knobs["scanchunk"]; n > 0 && scans > 0 && !cut {
		return fmt.Errorf("cpu: scanchunk=%d: %w: workers split channels here, not time: set scansplit", n, schedule.ErrUnsupported)
	}
	return nil
}

// banded declines more bands than a layer on that stream has.
func (p *program) banded(b *band, stream int) error {
	n, members := p.knobs["bands"], p.members(stream%p.teams)
	switch strips := ceil(b.hidden, line); {
	case n > strips:
		return fmt.Errorf("cpu: bands=%d: %w: %d units are %d bands of %d at most", n, schedule.ErrUnsupported, b.hidden, strips, line)
	case n > members:
		return fmt.Errorf("cpu: bands=%d: %w: a team has %d workers: set fewer teams", n, schedule.ErrUnsupported, members)
	}
	return nil
}

// pieces is how many pieces of op each worker of a team gets: at least one where knobs
// share it.
func (p *program) pieces(op schedule.Op) int {
	n := p.device.pieces(op)
	asked := false
	switch op.(type) {
	case schedule.Persistent, schedule.PersistentBackward:
		asked = p.knobs["bands"] > 1
	case schedule.Scan, schedule.ScanBackward:
		asked = p.knobs["scansplit"] > 1 || p.knobs["scanworkers"] > 1
	}
	if asked {
		return max(1, n)
	}
	return n
}
