package auto

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// tuned is the choice of the nearest entry that can run at p. s.Choice is nil if there is none. Then
// remarks says which entries were passed over, and why.
func (o *Oracle) tuned(p record.Point) (s grid.Spec, remarks string, err error) {
	declined, strange := "", ""
	for _, m := range o.book.LookupFor(o.Objective, o.Info.Key, o.Cache, p) {
		if o.lookup(m.Impl) == nil {
			strange += passedOver(m, grid.Unknown("technique", m.Impl, o.names()))
			continue
		}
		if !o.may(o.lookup(m.Impl)) {
			continue
		}
		l, err := o.accepted(p, grid.Spec{Name: m.Impl, Knobs: knob.Params(m.Knobs)})
		if err != nil {
			return s, "", err
		}
		if l.Reason != "" {
			declined += fmt.Sprintf("; %s of %v cannot run here: %s", m.Impl, m.Point, l.Reason)
			continue
		}
		if err := o.unknownKnob(m, l); err != nil {
			strange += passedOver(m, err)
			continue
		}
		s.Name, s.Knobs = m.Impl, l.Spec.Knobs
		return o.choose(p, s, record.Choice{Match: m.Kind, Octaves: m.Distance, Why: o.why(m) + declined + strange}), "", nil
	}
	return s, declined + strange, nil
}

func (o *Oracle) names() (names []string) {
	for _, t := range o.Techniques {
		names = append(names, t.Name())
	}
	return names
}

// unfollowed marks, in the reason of a choice, entries that this program does not understand.
const unfollowed = " cannot be used: "

func passedOver(m wisdom.Match, err error) string {
	return fmt.Sprintf("; the tuned entry for %v%s%v", m.Point, unfollowed, err)
}

// unknownKnob returns an error if an entry sets a knob that nothing knows: neither l, its layout at
// this point, nor its layout at its own point, nor any device of this kind.
func (o *Oracle) unknownKnob(m wisdom.Match, l *tuner.Layout) error {
	known := l.Settings()
	for _, k := range o.Device.Vocabulary() {
		known[k.Name] = 0
	}
	unknown := func() string {
		for _, name := range slices.Sorted(maps.Keys(m.Knobs)) {
			if _, ok := known[name]; !ok && m.Knobs[name] != 0 { // at 0, a knob of an earlier version was not turned
				return name
			}
		}
		return ""
	}
	if unknown() != "" && m.Kind != wisdom.Exact {
		own, err := tuner.Adapt(o.Device, o.Techniques, m.Point, grid.Spec{Name: m.Impl, Knobs: knob.Params(m.Knobs)}, o.Limit)
		if err != nil {
			return err
		}
		maps.Copy(known, own.Settings())
	}
	if name := unknown(); name != "" {
		return grid.Unknown("knob", name, slices.Sorted(maps.Keys(known)))
	}
	return nil
}

// doublings formats a distance between shapes.
func doublings(n float64) string {
	if s := fmt.Sprintf("%.2g", n); s != "1" {
		return s + " doublings"
	}
	return "1 doubling"
}

// why says in words what the choice of m rests on.
func (o *Oracle) why(m wisdom.Match) string {
	at, more := "the fastest", "was %.1f %% slower"
	if m.Objective == record.OfEnergy {
		at, more = "the one with the least energy", "took %.1f %% more"
	}
	if m.Tried > 1 {
		at += fmt.Sprintf(" of %d", m.Tried)
	}
	if m.Kind == wisdom.Nearest {
		at += fmt.Sprintf(" at %v, %s away", m.Point, doublings(m.Distance))
	}
	if m.By == wisdom.ByRace {
		at += " in a short race"
	}
	if m.RunnerUp != "" && m.Lead > 0 {
		at += fmt.Sprintf("; %s "+more, m.RunnerUp, 100*m.Lead)
	}
	if m.Unsure {
		at += "; unsure: the lead may be chance"
	}
	if stale := m.Stale(o.Tool, o.Libraries); stale != nil {
		at += staleMark + strings.Join(stale, ", ")
	}
	return at
}

// staleMark begins the part of a reason that lists versions which have changed since.
const staleMark = "; stale: "
