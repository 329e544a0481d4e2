// Package agenda says what a sweep or a tune measures, and forecasts its time and memory.
package agenda

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// A Part is a product of points and techniques.
type Part struct {
	Points []record.Point
	Specs  []grid.Spec

	Training *record.TrainingPlan // nil: it is swept
	before   []int                // for each point, how many networks of the whole agenda come before its own; nil: the agenda is whole
}

// An Agenda says what to measure: every technique of each part at every point of that part.
type Agenda struct {
	Parts   []Part
	Summary string
	Kind    string // what the agenda is for; "": a sweep
	Aside   bool   // commands that are given no run ignore this agenda's run

	Shard   *record.Shard // which part of a larger agenda this is; nil: it is whole
	whole   string        // hash of the larger agenda
	control int           // how many of the first parts belong to another shard
}

// A Target is the device and the words that an agenda is made for.
type Target struct {
	Device     device.Info
	Vocabulary grid.Vocabulary
	// Decide replaces a spec that leaves the technique open at a point.
	Decide func(record.Point, grid.Spec) (grid.Spec, error)
}

// New makes an agenda from a request.
func New(r grid.Request, t Target) (Agenda, error) {
	g, err := grid.New(r, t.Vocabulary)
	if err != nil {
		return Agenda{}, err
	}
	points, err := g.Points()
	if err != nil {
		return Agenda{}, err
	}
	var a Agenda
	for _, at := range points {
		if !slices.Contains(t.Device.Precision, at.Precision) {
			return Agenda{}, fmt.Errorf("--precision %s: device %s supports only %s", at.Precision, t.Device.Name, strings.Join(t.Device.Precision, ", "))
		}
		var specs []grid.Spec
		for _, s := range g.Specs() {
			ok, err := g.Wants(at, s)
			if err != nil {
				return a, err
			}
			if ok {
				if s, err = t.Decide(at, s); err != nil {
					return a, err
				}
				specs = append(specs, s)
			}
		}
		if n := len(a.Parts); n > 0 && slices.EqualFunc(a.Parts[n-1].Specs, specs, sameSpec) {
			a.Parts[n-1].Points = append(a.Parts[n-1].Points, at)
		} else {
			a.Parts = append(a.Parts, Part{Points: []record.Point{at}, Specs: specs})
		}
	}
	a.Summary, err = g.Summary()
	return a, err
}

// Decided is the agenda in which decide has replaced the specs that leave the technique open, at each
// point. A run keeps the hash of a itself, since decide may choose other techniques elsewhere.
func (a Agenda) Decided(decide func(record.Point, grid.Spec) (grid.Spec, error)) (Agenda, error) {
	q := a
	q.Parts, q.control = nil, 0
	for i, part := range a.Parts {
		first := len(q.Parts)
		for k, at := range part.Points {
			specs := slices.Clone(part.Specs)
			for j, s := range part.Specs {
				var err error
				if specs[j], err = decide(at, s); err != nil {
					return a, err
				}
				if other := specs[j].Instead; other != nil && part.Training != nil { // which verifies no answer
					specs[j] = *other
				}
			}
			if n := len(q.Parts); n == first || !slices.EqualFunc(q.Parts[n-1].Specs, specs, sameSpec) {
				q.Parts = append(q.Parts, Part{Specs: specs, Training: part.Training})
			}
			last := &q.Parts[len(q.Parts)-1]
			last.Points = append(last.Points, at)
			if part.before != nil {
				last.before = append(last.before, part.before[k])
			}
		}
		if i < a.control {
			q.control = len(q.Parts)
		}
	}
	return q, nil
}

// sameSpec reports whether two specs are one technique with the same settings, label and choice.
func sameSpec(a, b grid.Spec) bool {
	return a.Label == b.Label && a.String() == b.String() && a.Choice == b.Choice
}

// Points counts the points of all parts.
func (a Agenda) Points() (n int) {
	for _, q := range a.Parts {
		n += len(q.Points)
	}
	return n
}

// Records counts the records that the agenda will make: one for each technique at each point.
func (a Agenda) Records() (n int) {
	for _, q := range a.Parts {
		n += len(q.Points) * len(q.Specs)
	}
	return n
}

// Specs lists every technique at every point.
func (a Agenda) Specs() []grid.Spec {
	var list []grid.Spec
	for _, q := range a.Parts {
		for range q.Points {
			list = append(list, q.Specs...)
		}
	}
	return list
}

// Labels lists the techniques by their labels, each once.
func (a Agenda) Labels() []string {
	var list []string
	for _, q := range a.Parts {
		for _, s := range q.Specs {
			if !slices.Contains(list, s.Label) {
				list = append(list, s.Label)
			}
		}
	}
	return list
}

// Each calls do with every point and its techniques. It stops at the first error and returns it.
func (a Agenda) Each(do func(record.Point, []grid.Spec) error) error {
	for _, q := range a.Parts {
		for _, at := range q.Points {
			if err := do(at, q.Specs); err != nil {
				return err
			}
		}
	}
	return nil
}

// Tasks is the agenda as a list of a sweep's tasks.
func (a Agenda) Tasks() []tuner.Task {
	var list []tuner.Task
	for _, q := range a.Parts {
		for _, at := range q.Points {
			list = append(list, tuner.Task{Point: at, Specs: q.Specs})
		}
	}
	return list
}

// Hash is the hash of the agenda: the same points and techniques have the same hash. Shards have that of
// the whole agenda.
func (a Agenda) Hash() string {
	if a.Shard != nil {
		return a.whole
	}
	var list []string
	for _, q := range a.Parts {
		list = append(list, grid.Hash(q.Points, q.Specs))
		if q.Training != nil && a.Kind == "" {
			list = append(list, "train "+q.Training.Data+" "+q.Training.Optimizer) // limits do not count: training may continue
		}
	}
	if a.Kind != "" {
		list = append(list, a.Kind)
	}
	if len(list) == 1 {
		return list[0]
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(list, " "))))[:16]
}

// Scope sums the agenda up for its run's manifest.
func (a Agenda) Scope() record.Scope {
	return record.Scope{Hash: a.Hash(), Points: a.Points(), Records: a.Records(), Summary: a.Summary, Shard: a.Shard}
}

// Mismatch says why a run with manifest m is not a run of this agenda on device d; "": it is one.
func (a Agenda) Mismatch(m record.Manifest, d record.Device) string {
	switch {
	case m.Scope.Hash == a.Hash():
	case m.Scope.Summary == a.Summary:
		return fmt.Sprintf("its plan differs from the requested plan of the same size (%s)", a.Summary)
	default:
		return fmt.Sprintf("its plan (%s) differs from the requested plan (%s)", m.Scope.Summary, a.Summary)
	}
	switch was := m.Scope.Shard; {
	case was == nil && a.Shard != nil:
		return fmt.Sprintf("its plan was not divided, and the requested one is shard %v", a.Shard)
	case was != nil && a.Shard == nil:
		return fmt.Sprintf("it is shard %v of the requested plan", was)
	case was != nil && (was.Index != a.Shard.Index || was.Count != a.Shard.Count):
		return fmt.Sprintf("it is shard %v, not %v", was, a.Shard)
	}
	if len(m.Devices) == 0 || m.Devices[0].Key != d.Key {
		return fmt.Sprintf("its device is not %s", d.Key)
	}
	if was := m.Devices[0].Facts["simd"]; was != d.Facts["simd"] {
		return fmt.Sprintf("its instruction set is %s, not %s", was, d.Facts["simd"])
	}
	return ""
}
