package agenda

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
)

// A Division divides an agenda among shards. It depends only on the agenda and the number of shards, so
// every machine computes the same division, whatever its speed and memory.
type Division struct {
	whole   Agenda
	control record.Point
	trained bool                 // the whole agenda is trained; then the control belongs to no shard
	shard   map[record.Point]int // of each place, from 0
	Seconds []float64            // estimate for each shard, with the control point
	Points  []int                // of each shard, without it
}

// A place is a group of points that stay together in one shard, with the seconds that they take.
type place struct {
	at                      record.Point
	points                  int
	swept, trained, control float64 // control: to measure the pass of what is trained
}

func (x *place) seconds() float64 { return x.swept + x.trained }

// Divide divides the points of a among n shards that take about equally long. The longest points come
// first, each to the shard with the least time so far. Points that differ only in streams are rivals
// and stay together, and so do a trained network and its pass. The control is the point of median
// time, among swept points if there are any.
func (a Agenda) Divide(n int, gpu bool) (*Division, error) {
	if a.Records() == 0 {
		return nil, fmt.Errorf("%s: there is nothing to divide", a.Summary)
	}
	all, err := a.places(gpu)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *place) int { return cmp.Compare(b.seconds(), a.seconds()) })
	d := &Division{whole: a, shard: map[record.Point]int{}, Seconds: make([]float64, n), Points: make([]int, n)}
	swept := slices.DeleteFunc(slices.Clone(all), func(x *place) bool { return x.swept == 0 })
	if d.trained = len(swept) == 0; d.trained {
		swept = all
	}
	control := swept[len(swept)/2]
	d.control = control.at
	for i := range n {
		d.Seconds[i] = control.swept
		if d.trained {
			d.Seconds[i] = control.control
		}
	}
	if !d.trained {
		d.shard[control.at], d.Points[0] = 0, control.points
		d.Seconds[0] += control.trained
	}
	for _, x := range all {
		if x == control && !d.trained {
			continue
		}
		least := 0
		for i, t := range d.Seconds {
			if less := d.Seconds[least]; t < less || t == less && d.Points[i] < d.Points[least] {
				least = i
			}
		}
		d.shard[x.at] = least
		d.Seconds[least] += x.seconds()
		d.Points[least] += x.points
	}
	return d, nil
}

// places returns the places of an agenda, in its order.
func (a Agenda) places(gpu bool) ([]*place, error) {
	var all []*place
	of := map[record.Point]*place{}
	for _, q := range a.Parts {
		for _, at := range q.Points {
			x := of[at.Place()]
			if x == nil {
				x = &place{at: at.Place()}
				of[at.Place()] = x
				all = append(all, x)
			}
			problem, err := tuner.Problem(at)
			if err != nil {
				return nil, err
			}
			x.points++
			t := sweeping(problem, len(q.Specs), gpu)
			if q.Training == nil {
				x.swept += t
				continue
			}
			x.control += t
			x.trained += training(problem, *q.Training, gpu) * float64(len(q.Specs))
		}
	}
	return all, nil
}

// Shard is the part of the agenda that shard s measures: the control point, and then its own points.
// name is the name of the run that all shards form together.
func (d *Division) Shard(s record.Shard, name string) Agenda {
	s.Own, s.Trained = d.Points[s.Index-1], d.trained
	s.Tune = d.whole.Kind != "" && len(d.whole.Networks()) == 0
	s.Of, s.Points, s.Records, s.Control = name, d.whole.Points(), d.whole.Records(), d.control
	q := d.whole
	q.Shard, q.whole = &s, d.whole.Hash()
	q.Summary = fmt.Sprintf("%s; shard %v", d.whole.Summary, s)
	isControl := func(part *Part, at record.Point) bool {
		return at.Place() == d.control && (part.Training == nil || d.trained)
	}
	control := d.pick(isControl)
	for i := range control { // of a network, only its pass is measured
		control[i].Training, control[i].before = nil, nil
	}
	q.Parts = append(control, d.pick(func(part *Part, at record.Point) bool {
		return d.shard[at.Place()] == s.Index-1 && (d.trained || !isControl(part, at))
	})...)
	if d.trained || s.Extra(d.control) {
		q.control = len(control)
	}
	s.Networks = len(q.Networks())
	return q
}

// pick returns the parts of the whole agenda with only the wanted points.
func (d *Division) pick(want func(*Part, record.Point) bool) []Part {
	var list []Part
	networks := 0
	for i := range d.whole.Parts {
		q := &d.whole.Parts[i]
		part := Part{Specs: q.Specs, Training: q.Training}
		for _, at := range q.Points {
			if want(q, at) {
				part.Points, part.before = append(part.Points, at), append(part.before, networks)
			}
			if q.Training != nil {
				networks += len(q.Specs)
			}
		}
		if part.Points != nil {
			list = append(list, part)
		}
	}
	return list
}

// Control is the part of a shard's agenda that belongs to another shard. Own is the rest.
func (a Agenda) Control() Agenda {
	a.Parts, a.control = a.Parts[:a.control], 0
	return a
}

// Own is the agenda without the control point, unless that belongs to this shard.
func (a Agenda) Own() Agenda {
	a.Parts, a.control = a.Parts[a.control:], 0
	return a
}

// Share says in words how large a part of the agenda shard s is.
func (d *Division) Share(s record.Shard) string {
	sum := 0.0
	for _, t := range d.Seconds {
		sum += t
	}
	share := func(t float64) float64 { return 100 * t / sum }
	i := s.Index - 1
	return fmt.Sprintf("shard %v: %d of %d points, %.1f %% of the estimated time; shards have from %.1f to %.1f %%; control point %v",
		s, d.Points[i], d.whole.Points(), share(d.Seconds[i]), share(slices.Min(d.Seconds)), share(slices.Max(d.Seconds)), d.control)
}

// rough estimates the seconds that a run of a problem takes, without laying it out.
func rough(p rnn.Problem, gpu bool) float64 {
	rate, perOp := 200e9, 0.5e-6 // of a few processors
	if gpu {
		rate, perOp = 5e12, 3e-6
	}
	const opsPerStep = 8
	ops := float64(opsPerStep) * float64(p.Steps) * float64(p.Reads())
	return ops*perOp + float64(p.FLOPs())/(rate/2)
}

// sweeping estimates the seconds that measuring some techniques takes.
func sweeping(p rnn.Problem, techniques int, gpu bool) float64 {
	run := rough(p, gpu)
	x := Estimator{Device: device.Info{}, Measure: config.Default()}
	t := 0.0
	for i := range techniques {
		t += x.measuring(run, p, i == 0)
	}
	return math.Max(t, 1e-3)
}

// training estimates the seconds of training a network.
func training(p rnn.Problem, until record.TrainingPlan, gpu bool) float64 {
	const unknown = 1000 // iterations until a loss is reached
	n := until.Iterations
	if n == 0 && until.Time == 0 {
		n = unknown
	}
	t := rough(p, gpu) * float64(n)
	if until.Time > 0 && (n == 0 || t > until.Time) {
		t = until.Time
	}
	return math.Max(t, 1e-3)
}
