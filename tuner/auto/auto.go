// Package auto decides what the technique "auto" stands for at a point. It follows the wisdom of that
// point or a near one. Where there is none, it takes the technique and settings that the device's cost
// model predicts to be the fastest.
package auto

import (
	"fmt"
	"slices"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// Name is the technique name that auto replaces.
const Name = "auto"

// The grounds of a choice, besides wisdom.Exact and wisdom.Nearest.
const (
	Predicted = "predicted" // the device's cost model
	Raced     = "raced"     // a short measurement of the best predictions
	Default   = "default"   // a rule; the device has no model of this point
)

// An Oracle decides for one device.
type Oracle struct {
	Device     device.Device
	Info       device.Info
	Techniques []rnn.Technique
	Allowed    func(technique string) bool // whether auto may choose it
	Limit      int64                       // bytes that a technique may take; 0: unknown
	Steady     bool                        // inference keeps its weights from run to run, as for a host program
	Verified   bool                        // whoever runs a choice verifies its answer, so its technique may be iterative

	Read      func() (*wisdom.Book, error) // the wisdom, read once
	Cache     string                       // "hot" or "cold": only such entries count
	Objective string                       // "" for time, or record.OfEnergy: only such entries count
	Tool      string                       // version of the program; entries of others are stale
	Libraries map[string]string            // versions of the device's libraries, likewise

	// Race measures specs at a point briefly, and keeps the result as wisdom. It returns the
	// seconds of a run of each spec; 0: not measured. If Race is nil, predictions decide.
	Race func(record.Point, []grid.Spec) []float64

	book  *wisdom.Book               // nil: not read yet
	known map[record.Point]grid.Spec // answers so far, without their labels
}

// Decide replaces auto by the technique and settings chosen at p. It returns other specs unchanged.
// Errors are mistakes of the user or a broken device.
func (o *Oracle) Decide(p record.Point, s grid.Spec) (grid.Spec, error) {
	if s.Name != Name || s.Choice != nil {
		return s, nil
	}
	if len(s.Knobs) > 0 {
		return s, fmt.Errorf("--impl %s: auto chooses its own settings: omit %s", s, s.Knobs)
	}
	found, ok := o.known[p]
	if !ok {
		var err error
		if found, err = o.decide(p); err != nil {
			return s, err
		}
		if o.known == nil {
			o.known = map[record.Point]grid.Spec{}
		}
		o.known[p] = found
	}
	found.Label = s.Label
	if found.Instead != nil {
		instead := *found.Instead
		instead.Label, found.Instead = s.Label, &instead
	}
	return found, nil
}

// decide is Decide for a point that was not decided before.
func (o *Oracle) decide(p record.Point) (grid.Spec, error) {
	if o.book == nil {
		var err error
		if o.book, err = o.Read(); err != nil {
			return grid.Spec{}, err
		}
	}
	s, remarks, err := o.tuned(p)
	if err != nil || s.Choice != nil && !o.iterates(s) {
		return s, err
	}
	if o.Objective == record.OfEnergy {
		remarks += "; nothing near this point is tuned for energy, so this choice is by time"
	}
	all, declined, err := o.predict(p)
	if err != nil {
		return s, err
	}
	if s.Choice == nil {
		s, err = o.pick(p, all, declined, remarks)
	}
	if err != nil || !o.iterates(s) {
		return s, err
	}
	instead, err := o.direct(p, all, declined)
	s.Instead = &instead
	return s, err
}

// pick chooses among the contenders of predict or, where there are none, by a rule.
func (o *Oracle) pick(p record.Point, all []contender, declined, remarks string) (grid.Spec, error) {
	if len(all) > 0 {
		return o.cheapest(p, all, remarks)
	}
	return o.usual(p, remarks+declined)
}

// direct chooses among the contenders that need no iterations, without a race.
func (o *Oracle) direct(p record.Point, all []contender, declined string) (grid.Spec, error) {
	without := *o
	without.Verified, without.Race = false, nil
	return without.pick(p, slices.DeleteFunc(all, func(c contender) bool { return o.iterates(c.spec) }), declined, "")
}

// may reports whether auto may choose t: iterative techniques only where their answers are verified.
func (o *Oracle) may(t rnn.Technique) bool {
	_, iterative := t.(rnn.Iterative)
	return o.Allowed(t.Name()) && (o.Verified || !iterative)
}

// iterates reports whether the technique of s is iterative.
func (o *Oracle) iterates(s grid.Spec) bool {
	_, yes := o.lookup(s.Name).(rnn.Iterative)
	return yes
}

// choose completes a spec with the reason for its choice.
func (o *Oracle) choose(p record.Point, s grid.Spec, c record.Choice) grid.Spec {
	c.By, c.Impl, c.Objective = Name, o.format(p, s), o.Objective
	s.Choice = &c
	return s
}

func (o *Oracle) format(p record.Point, s grid.Spec) string {
	return tuner.FormatSpec(o.Techniques, o.Device.Vocabulary(), o.Info.Name != "cpu", s.Name, s.Knobs, p)
}

// lookup returns a technique by its name; nil: there is none.
func (o *Oracle) lookup(name string) rnn.Technique {
	i := slices.IndexFunc(o.Techniques, func(t rnn.Technique) bool { return t.Name() == name })
	if i < 0 {
		return nil
	}
	return o.Techniques[i]
}

// accepted lays s out at p. Its Reason says why it cannot run.
func (o *Oracle) accepted(p record.Point, s grid.Spec) (*tuner.Layout, error) {
	l, err := tuner.Adapt(o.Device, o.Techniques, p, s, o.Limit)
	if err == nil {
		l.Fit(o.Limit)
	}
	return l, err
}

// with returns knobs with one more setting.
func with(knobs knob.Params, name string, value int) knob.Params {
	out := knob.Params{name: value}
	for k, v := range knobs {
		if k != name {
			out[k] = v
		}
	}
	return out
}
