package auto

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/grid"
)

// fallback is what auto chooses where nothing else is known: what libraries do.
const fallback = "cudnnstyle"

// usual chooses the first technique of Usual that can run, or the fastest of them in a race.
func (o *Oracle) usual(p record.Point, remarks string) (grid.Spec, error) {
	var can []contender
	names := o.allowed(p)
	if len(names) == 0 {
		return grid.Spec{}, errors.New("auto has no technique left to choose: shorten --skip-impl")
	}
	for _, name := range names {
		s := grid.Spec{Name: name}
		l, err := o.accepted(p, s)
		if err != nil {
			return s, err
		}
		if l.Reason == "" || name == names[len(names)-1] { // if the last cannot run, its record says why
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
	return o.choose(p, can[0].spec, record.Choice{Match: Default, Why: "no tuned entry at or near this point" + remarks}), nil
}

// allowed lists the usual techniques that auto may choose, then all others if the fallback is not one of them.
func (o *Oracle) allowed(p record.Point) []string {
	names := Usual(o.Info.Key, p)
	if !o.Allowed(fallback) {
		for _, t := range o.Techniques {
			if _, iterative := t.(rnn.Iterative); !iterative && !slices.Contains(names, t.Name()) {
				names = append(names, t.Name())
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !o.Allowed(name) })
}

// Usual lists the techniques that auto tries, in this order and with their defaults, where neither
// wisdom nor a cost model covers p. They are mostly the fastest in recorded runs: scan for linear
// recurrences, persistent for other layers. The device's key has no effect so far.
func Usual(_ string, p record.Point) []string {
	var names []string
	if c := cell.Lookup(p.Cell); c != nil {
		if c.Recurrent == 0 && (c.Recurrence != nil || c.Scanned != nil) || c.Surrogate != nil {
			names = append(names, "scan")
		}
		if (c.Recurrent > 0 || c.Recurrence == nil && c.Scanned == nil) && p.Steps > 1 {
			names = append(names, "persistent")
		}
	}
	return append(names, fallback)
}
