package impl_test

import (
	"errors"
	"testing"

	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestPacksOnce: a run packs no weights twice in the same way, whatever the number of steps and blocks.
func TestPacksOnce(t *testing.T) {
	for _, c := range cell.All() {
		p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 5, Hidden: 6, Layers: 2, Batch: 3, Steps: 7}
		for _, tech := range impl.Direct() {
			for _, k := range knob.OneAtATime(tech.Knobs(p)) {
				_, s, err := rnn.Layout(tech, p, k)
				if errors.Is(err, schedule.ErrUnsupported) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				seen := map[schedule.Pack]bool{}
				for op := range s.Operations() {
					if pack, ok := op.(schedule.Pack); ok {
						pack.Dst = schedule.View{}
						if seen[pack] {
							t.Errorf("%v, %s %v: %v twice", p, tech.Name(), k, pack)
						}
						seen[pack] = true
					}
				}
			}
		}
	}
}
