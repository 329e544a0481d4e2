package auto

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// A contender is a technique in one form, with its predicted time.
type contender struct {
	spec    grid.Spec
	seconds float64 // predicted; 0: unknown
	error   float64 // of the model, relative

	iterations int // of an iterative technique, the fewest to be expected; 0: it is none
}

// dominated lists techniques that are never predicted, since another one does the same work in fewer
// operations.
var dominated = []string{"naive"}

// furtherSettings lists settings of a technique that are predicted besides its defaults. In training, a
// persistent layer's weight gradients can run beside the layers below. On an H200 that saved 0.4 to
// 12 % in ten measurements. Where weights are steady, they can be packed once before all runs.
func (o *Oracle) furtherSettings(technique string, p record.Point) (all []knob.Params) {
	train := p.Pass == rnn.Train.String()
	switch {
	case technique == "persistent" && train && p.Streams == 0:
		all = append(all, knob.Params{"streams": 2, "inputbatch": p.Steps})
	case (technique == "cudnnstyle" || technique == "scc") && o.Steady && !train && p.Calls == 0:
		all = append(all, knob.Params{"transposed": 2})
	}
	return all
}

// forms lists device knobs that decide how a schedule is launched. Each value is a form of its own.
var forms = []string{"graph"}

// predict lists the contenders that can run at p, the fastest predicted first. It is empty where the
// device has no model. declined says which techniques cannot run, and why.
func (o *Oracle) predict(p record.Point) (all []contender, declined string, err error) {
	model, ok := o.Device.(device.Predictor)
	if !ok {
		return nil, "", nil
	}
	for _, t := range o.Techniques {
		if slices.Contains(dominated, t.Name()) || !o.may(t) {
			continue
		}
		for i, knobs := range append([]knob.Params{nil}, o.furtherSettings(t.Name(), p)...) {
			l, err := o.accepted(p, grid.Spec{Name: t.Name(), Knobs: knobs})
			if err != nil {
				return nil, "", err
			}
			if l.Reason != "" {
				if i == 0 {
					declined += fmt.Sprintf("; %s cannot run here: %s", t.Name(), l.Reason)
				}
				break
			}
			found, err := o.predictForms(model, l)
			if err != nil {
				return nil, "", err
			}
			all = append(all, found...)
		}
	}
	slices.SortStableFunc(all, func(a, b contender) int { return cmp.Compare(a.seconds, b.seconds) })
	return all, declined, nil
}

// predictForms lists the forms of a layout that the model can predict.
func (o *Oracle) predictForms(model device.Predictor, l *tuner.Layout) (all []contender, err error) {
	specs := []grid.Spec{l.Spec}
	for _, name := range forms {
		for _, k := range o.Device.Knobs(l.Schedule) {
			if k.Name != name {
				continue
			}
			for _, v := range k.Values[1:] {
				s := l.Spec
				s.Knobs = with(s.Knobs, name, v)
				specs = append(specs, s)
			}
		}
	}
	for _, s := range specs {
		knobs := l.DeviceKnobs
		for _, name := range forms {
			if v, ok := s.Knobs[name]; ok {
				knobs = with(knobs, name, v)
			}
		}
		found, err := model.Predict(l.Schedule, knobs)
		if errors.Is(err, schedule.ErrUnsupported) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("auto: %s: %w", s, err)
		}
		if found.Seconds > 0 {
			all = append(all, contender{spec: s, seconds: found.Seconds, error: found.Error, iterations: l.Plan.Iterations})
		}
	}
	return all, nil
}

// cheapest picks the first of all that can run. If the model cannot tell it from the next ones, they
// race.
func (o *Oracle) cheapest(p record.Point, all []contender, remarks string) (grid.Spec, error) {
	for len(all) > 0 {
		l, err := o.accepted(p, all[0].spec)
		if err != nil {
			return grid.Spec{}, err
		}
		if l.Reason == "" {
			break
		}
		remarks += fmt.Sprintf("; %s cannot run here: %s", o.format(p, all[0].spec), l.Reason)
		all = all[1:]
	}
	if len(all) == 0 {
		return o.usual(p, remarks)
	}
	if s, ok := o.race(p, all, remarks); ok {
		return s, nil
	}
	best := all[0]
	x := &record.Expected{Seconds: best.seconds, Error: best.error}
	c := record.Choice{Match: Predicted, Expected: x, Why: "predicted to take " + quantity.SI(best.seconds, "s")}
	if best.iterations > 0 {
		c.Why += " with " + quantity.Plural(best.iterations, "iteration") + ", the fewest that such answers took"
	}
	if i := rival(all); i > 0 {
		x.RunnerUp, x.Margin = o.format(p, all[i].spec), all[i].seconds/best.seconds-1
		c.Why += fmt.Sprintf("; %s would take %s", x.RunnerUp, quantity.SI(all[i].seconds, "s"))
	}
	c.Why += remarks
	return o.choose(p, best.spec, c), nil
}

// rival is the index of the first contender with another technique than all[0], or else of the next
// form; 0: there is none.
func rival(all []contender) int {
	if i := slices.IndexFunc(all, func(c contender) bool { return c.spec.Name != all[0].spec.Name }); i > 0 {
		return i
	}
	return min(1, len(all)-1)
}
