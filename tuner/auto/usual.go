package auto

import (
	"fmt"
	"strings"

	"rnnbench/results"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/grid"
)

// fallback is what auto chooses where nothing else is known: what libraries do.
const fallback = "cudnnstyle"

// usual chooses the first technique of Usual that can run, or the fastest of them in a race.
func (o *Oracle) usual(p results.Point, remarks string) (grid.Spec, error) {
	var can []contender
	for _, name := range Usual(o.Info.Key, p) {
		s := grid.Spec{Name: name}
		l, err := o.accepted(p, s)
		if err != nil {
			return s, err
		}
		if l.Reason == "" || name == fallback { // if the fallback cannot run, its record says why
			can = append(can, contender{spec: s})
			continue
		}
		if reason := fmt.Sprintf("; %s cannot run here: %s", name, l.Reason); !strings.Contains(remarks, reason) {
			remarks += reason
		}
	}
	if s, ok := o.race(p, can, remarks); ok {
		return s, nil
	}
	return o.choose(p, can[0].spec, results.Choice{Match: Default, Why: "no tuned entry at or near this point" + remarks}), nil
}

// Usual lists the techniques that auto tries, in this order and with their defaults, where neither
// wisdom nor a cost model covers p. They are mostly the fastest in recorded runs: scan for linear
// recurrences, persistent for other layers. The device's key has no effect so far.
func Usual(_ string, p results.Point) []string {
	var names []string
	if c := cell.Lookup(p.Cell); c != nil {
		if c.Recurrent == 0 || c.Surrogate != nil {
			names = append(names, "scan")
		}
		if c.Recurrent > 0 && p.Steps > 1 {
			names = append(names, "persistent")
		}
	}
	return append(names, fallback)
}
