package tuner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An outlook holds the times that the device's cost model predicts for the settings of one point.
// Settings predicted to be far behind are dropped before anything is compiled.
//
// The model's error is the standard deviation of the logarithm of predicted over measured.
// A setting is dropped if its predicted time is more than 1 + margin × error times the fastest
// one's. The effort limits how many of the rest run. Each technique's default and its best setting
// always run, and so do settings without a prediction and those measured before.
//
// A prediction takes milliseconds, and there are thousands of settings. So the model predicts
// the defaults, then each knob alone. The effect of several knobs together is guessed from these,
// and the model predicts the best guesses.
type outlook struct {
	model device.Predictor
	tune  *Tune
	keep  []string // keys of settings that are never dropped
	most  int      // predicted settings that run; 0: any number

	best   float64               // predicted seconds of the fastest that can run; 0: none is known
	bestOf map[string]float64    // by technique
	alone  map[string]*contender // by place: settings with at most one knob turned come first
}

const (
	margin          = 4   // model errors by which a setting may be behind
	perTechnique    = 8   // settings within the margin that each technique runs before any technique runs more,
	perTie          = 3   // and settings of equal predicted time: most of these run the same kernels
	mostQuick       = 60  // predicted settings that run at effort quick
	mostNormal      = 160 // and at effort normal
	predictedPerRun = 3   // settings of several knobs that the model predicts for each one that may run
)

// By how much a guess may exceed the true time, as a factor. Guesses are divided by it, so that the
// model predicts every setting that may be within the bound.
const (
	oneKnob      = 4   // guessed from the default: the knob graph saves that much
	ownKnobs     = 2   // several knobs of the technique, which may help only together
	severalKnobs = 1.3 // several knobs, some of the device
)

// outlook starts the outlook of a point. It is nil where the device has no cost model or all
// settings are to run.
func (t *Tune) outlook(keep []string) *outlook {
	model, ok := t.Device.(device.Predictor)
	if !ok || t.Search.Strategy != "racing" || t.Objective == record.OfEnergy { // the model is of time
		return nil
	}
	o := &outlook{model: model, tune: t, keep: keep, bestOf: map[string]float64{}, alone: map[string]*contender{}}
	switch t.Settings.Effort {
	case "quick":
		o.most = mostQuick
	case "normal":
		o.most = mostNormal
	}
	return o
}

// bound is how many times the fastest time a setting's predicted time may be.
func bound(error float64) float64 { return 1 + margin*error }

// choose predicts the settings of list that may be fast, and marks the others as dropped.
func (o *outlook) choose(ctx context.Context, list []*contender) error {
	var rounds [3][]*contender // defaults, one knob, several
	for _, c := range list {
		n := min(len(c.turned), len(rounds)-1)
		rounds[n] = append(rounds[n], c)
	}
	for n, all := range rounds {
		likely := o.likely(all, n == len(rounds)-1)
		if err := o.ask(ctx, likely); err != nil {
			return err
		}
		for _, c := range all {
			c.dropped = true
		}
		for _, c := range likely {
			c.dropped = c.seconds > 0
		}
		for _, c := range all {
			if o.alone[place(c)] == nil {
				o.alone[place(c)] = c
			}
		}
	}
	o.sift(list)
	return nil
}

// place identifies the specification and the turned knobs of c.
func place(c *contender) string { return c.sheet.with(c.turned) }

func (s *sheet) with(turned knob.Params) string { return fmt.Sprint(s.base, " ", turned) }

// must reports whether c runs whatever its predicted time.
func (o *outlook) must(c *contender) bool {
	return len(c.turned) == 0 || slices.Contains(o.keep, c.key) || o.tune.recall(c.key) != nil
}

// likely lists the settings to predict: those that run anyhow, then those guessed to be within the
// bound, the best guess first. If many says that all turn several knobs, the list is cut.
func (o *outlook) likely(all []*contender, many bool) []*contender {
	type guess struct {
		*contender
		seconds float64
		doubted bool
	}
	var list []guess
	var out []*contender
	for _, c := range all {
		switch seconds, error, doubted := o.guess(c); {
		case c.layout.Reason != "":
		case seconds == 0 || o.must(c):
			out = append(out, c)
		case o.best == 0 || seconds <= bound(error)*o.best:
			list = append(list, guess{c, seconds, doubted})
		}
	}
	runs := len(out)
	slices.SortStableFunc(list, func(a, b guess) int {
		return cmp.Or(cmp.Compare(rank(a.doubted), rank(b.doubted)), cmp.Compare(a.seconds, b.seconds), len(a.turned)-len(b.turned))
	})
	times := make([]float64, len(list))
	for i, g := range list {
		times[i] = g.seconds
	}
	var ties []*contender
	for i, n := range tiesBefore(times) {
		if n < perTie {
			out = append(out, list[i].contender)
		} else {
			ties = append(ties, list[i].contender)
		}
	}
	if out = append(out, ties...); many && o.most > 0 && o.best > 0 {
		out = out[:min(len(out), runs+predictedPerRun*o.most)]
	}
	return out
}

// tiesBefore counts for each time how many of those right before it are equal to it, within 0.1 %.
func tiesBefore(times []float64) []int {
	const same = 1.001
	out := make([]int, len(times))
	first := 0
	for i, t := range times {
		if t > same*times[first] || t < times[first] {
			first = i
		}
		out[i] = i - first
	}
	return out
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// guess is the least time in seconds that c may take, from the effect of each knob alone; 0: unknown.
// It is doubted if a knob alone is declined, and infinite if a knob alone was too slow to predict.
func (o *outlook) guess(c *contender) (seconds, error float64, doubted bool) {
	plain := o.alone[c.sheet.with(nil)]
	if plain == nil || len(c.turned) == 0 {
		return 0, 0, false
	}
	known, declined := plain.seconds > 0 && plain.layout.Reason == "", plain.layout.Reason != ""
	if len(c.turned) == 1 {
		return plain.seconds / oneKnob, plain.error, false
	}
	factor, refused := 1.0, 0
	for _, name := range slices.Sorted(maps.Keys(c.turned)) {
		one := o.alone[c.sheet.with(knob.Params{name: c.turned[name]})]
		switch {
		case one == nil: // its program is another setting's
		case one.layout.Reason != "":
			refused++
		case known && one.seconds > 0:
			factor *= one.seconds / plain.seconds
		case known && one.dropped: // it was not predicted
			return math.Inf(1), plain.error, true
		}
	}
	switch {
	case declined && refused == len(c.turned):
		return math.Inf(1), 0, true
	case !known:
		return 0, 0, false
	}
	if own, _ := c.turned.Split(c.sheet.offered); len(own) == len(c.turned) {
		return plain.seconds * factor / ownKnobs, plain.error, refused > 0
	}
	return plain.seconds * factor / severalKnobs, plain.error, refused > 0
}

// ask has the model predict list, and finds out whether settings that may run fit in memory.
func (o *outlook) ask(ctx context.Context, list []*contender) error {
	sheets := map[*sheet][]*contender{}
	var order []*sheet
	for _, c := range list {
		if sheets[c.sheet] == nil {
			order = append(order, c.sheet)
		}
		sheets[c.sheet] = append(sheets[c.sheet], c)
	}
	t := o.tune
	for _, page := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := draft(t.Device, t.Techniques, sheets[page][0].layout.Point, page.spec, page.limit)
		if err != nil {
			return err
		}
		for _, c := range sheets[page] {
			if l.Reason != "" {
				c.layout.refuse(l.Code, l.Reason)
				continue
			}
			at := *l
			at.DeviceKnobs = c.layout.DeviceKnobs
			if err := o.expect(c, &at); err != nil {
				return fmt.Errorf("tuner: cannot predict the time of %s: %w", c.spec, err)
			}
		}
	}
	return nil
}

// expect predicts c, which is laid out as l. It asks for c's memory unless c is sure to be dropped.
func (o *outlook) expect(c *contender, l *Layout) error {
	var p device.Prediction
	var err error
	if l.host(o.tune.Device) == o.tune.Device { // rivals have no model
		p, err = o.model.Predict(l.Schedule, l.DeviceKnobs)
		if errors.Is(err, device.ErrKilled) {
			p, err = o.model.Predict(l.Schedule, l.DeviceKnobs)
		}
	}
	if errors.Is(err, schedule.ErrUnsupported) {
		c.layout.refuse(ReasonOf(err, record.ReasonResource), err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	if p.Seconds > 0 && !math.IsInf(p.Seconds, 0) {
		c.seconds, c.error = p.Seconds, max(0, p.Error)
	}
	name := c.spec.Name
	leads := o.bestOf[name] == 0 || c.seconds < o.bestOf[name]
	if c.seconds > 0 && o.best > 0 && c.seconds > bound(c.error)*o.best && !leads && !o.must(c) {
		return nil
	}
	if err := l.weigh(o.tune.Device); err != nil {
		return err
	}
	l.Fit(c.sheet.limit)
	c.memory, c.layout.Memory, c.layout.Code, c.layout.Reason = l.Memory, l.Memory, l.Code, l.Reason
	if c.seconds == 0 || l.Reason != "" {
		return nil
	}
	if leads {
		o.bestOf[name] = c.seconds
	}
	if o.best == 0 || c.seconds < o.best {
		o.best = c.seconds
	}
	return nil
}

// sift chooses which predicted settings of list run, and marks the others as dropped.
func (o *outlook) sift(list []*contender) {
	var rivals []*contender
	for _, c := range list {
		if c.layout.Reason != "" {
			c.dropped = false // it is declined
		} else if c.seconds > 0 {
			rivals = append(rivals, c)
		}
	}
	slices.SortStableFunc(rivals, func(a, b *contender) int {
		return cmp.Or(cmp.Compare(a.seconds, b.seconds), len(a.turned)-len(b.turned))
	})
	running, of := 0, map[string]int{}
	run := func(c *contender) {
		c.dropped = false
		running++
		of[c.spec.Name]++
	}
	for _, c := range rivals {
		if len(c.turned) == 0 || of[c.spec.Name] == 0 {
			run(c)
		}
	}
	times := make([]float64, len(rivals))
	for i, c := range rivals {
		times[i] = c.seconds
	}
	equals := tiesBefore(times)
	for _, most := range []struct{ each, level int }{{perTechnique, perTie}, {math.MaxInt, perTie}, {math.MaxInt, math.MaxInt}} {
		for i, c := range rivals {
			room := (o.most == 0 || running < o.most) && of[c.spec.Name] < most.each && equals[i] < most.level
			if room && c.dropped && c.seconds <= bound(c.error)*o.best {
				run(c)
			}
		}
	}
	for _, c := range rivals {
		if o.must(c) {
			c.dropped = false
		}
	}
}
