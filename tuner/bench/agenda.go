package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// Agenda makes the agenda of a grid, and checks its calls and knobs before anything is measured.
func (b *Bench) Agenda(c config.Config) (agenda.Agenda, error) {
	defer b.tell.Busy("laying out the grid")()
	q, err := agenda.New(c.Grid, agenda.Target{Device: b.Info, Vocabulary: b.Vocabulary(), Decide: b.Decide})
	if err == nil {
		err = tuner.CheckCalls(q.Tasks(), c.Measure)
	}
	if err != nil {
		return q, err
	}
	techniques := b.Techniques()
	return q, q.Each(func(at record.Point, specs []grid.Spec) error {
		for _, s := range specs {
			if err := tuner.CheckKnobs(b.Device, techniques, at, s); err != nil {
				return fmt.Errorf("%v: %w", at, err)
			}
		}
		return nil
	})
}

// Choose replaces auto at each point of an agenda by its choice, and tells the choices.
func (b *Bench) Choose(q agenda.Agenda) (agenda.Agenda, error) {
	defer b.tell.Busy("choosing techniques")()
	decided, err := q.Decided(b.Decide)
	if err == nil {
		b.TellChoices(decided.Specs())
	}
	return decided, err
}

// Patience limits how long a sweep estimates before it begins. Tests shorten it.
var Patience = 500 * time.Millisecond

// Estimator returns an estimator of measuring time. It leaves out energy that cannot be counted.
func (b *Bench) Estimator(m config.Measure) *agenda.Estimator {
	m.Energy = m.Energy && tuner.NeedsMeter(b.Device) == nil
	others := b.usedByOthers(b.Around.Between(b.opened, b.Around.Read()))
	return &agenda.Estimator{Device: b.Info, Limits: b.Limits, Free: b.Free(), Measure: m, Others: others, LayOut: b.LayOut}
}

// Forecast estimates the time and memory of q, for as long as Patience allows.
func (b *Bench) Forecast(ctx context.Context, q agenda.Agenda, m config.Measure) (*agenda.Forecast, error) {
	defer b.tell.Busy("estimating time and memory")()
	return b.Estimator(m).Forecast(ctx, q, Patience, func(int) {})
}

// Sweep returns a sweep on the device with settings m.
func (b *Bench) Sweep(m config.Measure) tuner.Sweep {
	return tuner.Sweep{
		Device: b.Device, Techniques: b.Techniques(), Settings: m, Limits: b.Limits, Machine: b.FloorMachine(), MaxMemory: b.MaxMemory, Around: b.Around,
	}
}

// Reference stands for the float64 reference where techniques are named.
const Reference = "reference"

// OnePoint lays out a request's point with each of its techniques. A second point is an error.
func (b *Bench) OnePoint(r grid.Request, v grid.Vocabulary) ([]*tuner.Layout, error) {
	g, err := grid.New(r, v)
	if err != nil {
		return nil, err
	}
	points, err := g.Points()
	if err != nil {
		return nil, err
	}
	if len(points) > 1 {
		advice := "as in --point H=512,B=32,T=50"
		if len(r.Models) > 0 {
			advice = "with --layer (see rnnbench list layers)"
		}
		return nil, fmt.Errorf("the flags name %d points, such as %v and %v: name one, %s", len(points), points[0], points[1], advice)
	}
	var list []*tuner.Layout
	for _, s := range g.Specs() {
		if s.Name == Reference {
			problem, err := tuner.Problem(points[0])
			if err == nil {
				err = rnn.Declined(problem)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", Reference, err)
			}
			list = append(list, &tuner.Layout{Point: points[0], Spec: s, Problem: problem})
			continue
		}
		l, err := b.LayOut(points[0], s)
		if err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// Answer runs a layout once and returns its outputs and gradients. An iterative technique gets as many
// iterations as its states take to settle, unless the user has set how many. l has them afterwards.
func (b *Bench) Answer(l *tuner.Layout, data *rnn.Data) ([]oracle.Tensor, error) {
	for {
		answer, residual, err := once(b.Device, l, data)
		if err != nil || residual == 0 {
			return answer, err
		}
		name, _, most := l.Technique.(rnn.Iterative).IterationsKnob(l.Problem) // others have no residual
		n, remedy := l.Plan.Iterations, "use another technique"
		if l.Spec.Knobs[name] > 0 {
			remedy = fmt.Sprintf("set more, or leave %s out", name)
		} else if n < most {
			spec := l.Spec
			spec.Knobs = maps.Clone(spec.Knobs)
			if spec.Knobs == nil {
				spec.Knobs = knob.Params{}
			}
			spec.Knobs[name] = min(2*n, most)
			more, err := b.LayOut(l.Point, spec)
			if err != nil {
				return nil, err
			}
			if more.Fit(b.Free()); more.Reason != "" {
				return nil, errors.New(more.Reason)
			}
			more.Spec, *l = l.Spec, *more
			continue
		}
		return nil, fmt.Errorf("after %d iterations the states of %s still change by %.2g of the largest: %s", n, l.Spec.Name, residual, remedy)
	}
}

// once runs a layout once on d. residual is by how much the states of an iterative technique still change; 0: they
// have settled.
func once(d device.Device, l *tuner.Layout, data *rnn.Data) (answer []oracle.Tensor, residual float64, err error) {
	prog, err := d.Compile(l.Schedule, l.DeviceKnobs)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, prog.Close()) }()
	if err := l.Plan.Write(prog, data); err != nil {
		return nil, 0, err
	}
	if err := prog.Prepare(); err != nil {
		return nil, 0, err
	}
	if _, err := prog.Run(1); err != nil {
		return nil, 0, err
	}
	residual, unsettled, err := oracle.Unconverged(l.Plan, prog, oracle.Tolerance(l.Problem, false, 0))
	if err != nil || unsettled {
		return nil, residual, err
	}
	answer, err = oracle.Read(l.Plan, prog)
	return answer, 0, err
}
