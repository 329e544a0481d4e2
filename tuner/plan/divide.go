package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"rnnbench/device"
	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A Division is a plan dealt out to shards. It depends on the plan and the number of
// shards alone: every machine comes to the same one, whatever its speed and memory.
type Division struct {
	whole   Plan
	control results.Point
	shard   map[results.Point]int // of each place, from 0
	Seconds []float64             // estimate of each shard, with the control point
	Points  []int                 // of each shard, without it
}

// Divide deals the points of p out to n shards that take about equally long: the longest
// points first, each to the shard with the least so far. Points that differ in streams
// alone are rivals and stay together. The point of median length is the control.
func (p Plan) Divide(n int, gpu bool) (*Division, error) {
	if p.Records() == 0 {
		return nil, fmt.Errorf("%s: there is nothing to divide", p.Summary)
	}
	if len(p.Networks()) > 0 {
		return nil, fmt.Errorf("%s: trainings are not divided among shards: add --shard off", p.Summary)
	}
	type place struct {
		at      results.Point
		points  int
		seconds float64
	}
	var all []*place
	of := map[results.Point]*place{}
	err := p.Each(func(at results.Point, specs []grid.Spec) error {
		x := of[at.Place()]
		if x == nil {
			x = &place{at: at.Place()}
			of[at.Place()] = x
			all = append(all, x)
		}
		t, err := rough(at, len(specs), gpu)
		x.points, x.seconds = x.points+1, x.seconds+t
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *place) int { return cmp.Compare(b.seconds, a.seconds) })
	control := all[len(all)/2]
	d := &Division{whole: p, control: control.at, shard: map[results.Point]int{control.at: 0}, Seconds: make([]float64, n), Points: make([]int, n)}
	for i := range n {
		d.Seconds[i] = control.seconds
	}
	d.Points[0] = control.points
	for _, x := range all {
		if x == control {
			continue
		}
		least := 0
		for i, t := range d.Seconds {
			if less := d.Seconds[least]; t < less || t == less && d.Points[i] < d.Points[least] {
				least = i
			}
		}
		d.shard[x.at] = least
		d.Seconds[least] += x.seconds
		d.Points[least] += x.points
	}
	return d, nil
}

// Shard is the part of the plan that shard s measures: the control point, and then its own
// points. Name is that of the run that all shards together are.
func (d *Division) Shard(s results.Shard, name string) Plan {
	s.Own, s.Tune = d.Points[s.Index-1], d.whole.Kind != ""
	s.Of, s.Points, s.Records, s.Control = name, d.whole.Points(), d.whole.Records(), d.control
	q := d.whole
	q.Shard, q.whole = &s, d.whole.Hash()
	q.Summary = fmt.Sprintf("%s; shard %v", d.whole.Summary, s)
	control := d.pick(func(at results.Point) bool { return at.Place() == d.control })
	q.Parts = append(control, d.pick(func(at results.Point) bool { return d.shard[at.Place()] == s.Index-1 && at.Place() != d.control })...)
	if s.Extra(d.control) {
		q.control = len(control)
	}
	return q
}

// pick is the parts of the whole plan with the points that are wanted.
func (d *Division) pick(want func(results.Point) bool) []Part {
	var list []Part
	for _, part := range d.whole.Parts {
		var points []results.Point
		for _, at := range part.Points {
			if want(at) {
				points = append(points, at)
			}
		}
		if points != nil {
			list = append(list, Part{Points: points, Specs: part.Specs})
		}
	}
	return list
}

// Control is the part of a shard's plan that is another shard's, and Own the rest.
func (p Plan) Control() Plan {
	p.Parts, p.control = p.Parts[:p.control], 0
	return p
}

// Own is the plan without the control point, unless that is its own.
func (p Plan) Own() Plan {
	p.Parts, p.control = p.Parts[p.control:], 0
	return p
}

// Share says what part of the plan shard s is, for a dry run.
func (d *Division) Share(s results.Shard) string {
	sum := 0.0
	for _, t := range d.Seconds {
		sum += t
	}
	share := func(t float64) float64 { return 100 * t / sum }
	i := s.Index - 1
	return fmt.Sprintf("shard %v: %d of %d points, %.1f %% of the estimated time; shards have from %.1f to %.1f %%; control point %v",
		s, d.Points[i], d.whole.Points(), share(d.Seconds[i]), share(slices.Min(d.Seconds)), share(slices.Max(d.Seconds)), d.control)
}

// rough estimates the seconds that measuring some techniques at a point takes, without
// laying them out.
func rough(at results.Point, techniques int, gpu bool) (float64, error) {
	problem, err := tuner.Problem(at)
	if err != nil {
		return 0, err
	}
	rate, perOp := 200e9, 0.5e-6 // of a few processors, and below of a GPU
	if gpu {
		rate, perOp = 5e12, 3e-6
	}
	const opsPerStep = 8
	ops := float64(opsPerStep) * float64(at.Steps) * float64(at.Layers)
	run := ops*perOp + float64(problem.FLOPs())/(rate/2)
	x := Estimator{Device: device.Info{}, Measure: config.Default()}
	t := 0.0
	for i := range techniques {
		t += x.measuring(run, problem, i == 0)
	}
	return math.Max(t, 1e-3), nil
}
