package layer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/internal/nearest"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/grid"
)

// Race is the technique name for the fastest of a short race.
const Race = "race"

// A Plan is a layer at one shape: a compiled program, with the memory that is bound to its tensors.
type Plan struct {
	layer   *Layer
	key     string
	spec    grid.Spec
	bytes   int64
	program device.Hosted
	tensors []tensor
	stale   bool // parameters must be read
	kept    bool // forward has run, and backward has not
	train   bool
	closed  bool

	// The work of calls. The addresses of moves are set at each call.
	first, forward, backward device.Work // first also reads the parameters
}

// A tensor is a slot with the memory that the host program has bound to it.
type tensor struct {
	rnn.Slot
	places []device.Place
	memory unsafe.Pointer
	format device.Type
	bound  bool
}

// racer returns the race of an oracle.
func racer(o *auto.Oracle, path string) func(record.Point, []grid.Spec) []float64 {
	return func(p record.Point, specs []grid.Spec) []float64 {
		return o.Measure(context.Background(), path, p, specs)
	}
}

// Plan returns a plan for r that is not between its passes. It makes one if there is none.
func (l *Layer) Plan(r Request) (*Plan, error) {
	leave, err := l.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	key := r.key()
	for _, p := range l.plans {
		if p.key == key && !p.kept {
			return p, nil
		}
	}
	p, s, deviceKnobs, err := l.draft(r)
	if err != nil {
		return nil, err
	}
	program, err := l.device.device.Compile(s, deviceKnobs)
	if err != nil {
		return nil, err
	}
	hosted, ok := program.(device.Hosted)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%w: device %s cannot run in a host program", schedule.ErrUnsupported, l.device.device.Info().Name), program.Close())
	}
	made := &Plan{layer: l, key: key, spec: p.spec, bytes: p.bytes, program: hosted, train: p.plan.Pass == rnn.Train, stale: true}
	if err := errors.Join(rnn.WriteConstants(p.plan, program), made.place(p.plan, r.Lengths)); err != nil {
		return nil, errors.Join(err, program.Close())
	}
	l.plans = append(l.plans, made)
	return made, nil
}

// Memory returns the bytes that the plan of r would allocate on the device.
func (l *Layer) Memory(r Request) (int64, error) {
	leave, err := l.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	p, _, _, err := l.draft(r)
	return p.bytes, err
}

// A drafted plan has a technique and a schedule, but no memory.
type drafted struct {
	plan  *rnn.Plan
	spec  grid.Spec
	bytes int64
}

// draft chooses the technique of r and lays it out, with the device's settings.
func (l *Layer) draft(r Request) (d drafted, s *schedule.Schedule, deviceKnobs map[string]int, err error) {
	problem, err := l.shaped(r)
	if err != nil {
		return d, nil, nil, err
	}
	point := pointOf(problem)
	chosen, err := l.choose(r, problem, point)
	if err != nil {
		return d, nil, nil, err
	}
	if d.plan, s, err = rnn.LayoutHosted(chosen.Technique, problem, chosen.Knobs); err != nil {
		return d, nil, nil, err
	}
	d.spec = chosen.Spec
	if d.bytes, err = l.device.device.Memory(s, chosen.DeviceKnobs); err != nil {
		return d, nil, nil, err
	}
	if free := l.device.free(); free > 0 && d.bytes > free {
		return d, nil, nil, fmt.Errorf("%w: the plan takes %d MiB, and %d MiB are free", device.ErrMemory, d.bytes>>20, free>>20)
	}
	return d, s, chosen.DeviceKnobs, nil
}

// choose returns the technique of r with its settings, laid out at a point.
func (l *Layer) choose(r Request, problem rnn.Problem, point record.Point) (*tuner.Layout, error) {
	d := l.device
	if r.Technique != auto.Name && r.Technique != Race {
		var names []string
		for _, t := range impl.Own() {
			names = append(names, t.Name())
		}
		spec, err := grid.ParseSpec(r.Technique, append(names, auto.Name, Race))
		if err != nil {
			return nil, invalid("%w", err)
		}
		if err := tuner.CheckKnobs(d.device, impl.Own(), point, spec); err != nil {
			return nil, invalid("%w", err)
		}
		found, err := tuner.LayOutWithin(d.device, impl.Own(), point, spec, d.free())
		return able(found, err)
	}
	full := point // lengths differ from minibatch to minibatch, and a choice takes many times as long as a plan
	full.Lengths = ""
	spec, err := d.oracle(problem.Pass, r.Technique == Race).Decide(full, grid.Spec{Name: auto.Name})
	if err != nil {
		return nil, err
	}
	found, err := tuner.Adapt(d.device, impl.Own(), point, spec, d.free())
	return able(found, err)
}

// able turns the reason why a technique is declined into an error.
func able(l *tuner.Layout, err error) (*tuner.Layout, error) {
	if err == nil && l.Reason != "" {
		said := schedule.ErrUnsupported.Error() + ": "
		err = fmt.Errorf("%w: %s", schedule.ErrUnsupported, strings.Replace(l.Reason, said, "", 1))
	}
	return l, err
}

// pointOf returns p as a point, by which wisdom and techniques are looked up.
func pointOf(p rnn.Problem) record.Point {
	return record.Point{
		Cell: p.Cell.Name, Pass: p.Pass.String(), Hidden: p.Hidden, Input: p.Input, Batch: p.Batch, Steps: p.Steps, Layers: p.Layers,
		Precision: p.Precision.String(), Heads: p.Heads, Projection: p.Projection, Direction: directionOf(p), Lengths: axis.SequenceLengths(p.Lengths),
	}
}

// directionOf returns p's direction as points have it.
func directionOf(p rnn.Problem) axis.Direction {
	if p.Direction == rnn.FromFirst {
		return ""
	}
	return axis.Direction(p.Direction.String())
}

// place prepares the moves of all tensors.
func (p *Plan) place(plan *rnn.Plan, lengths []int) error {
	if plan.Lengths == "" {
		lengths = nil
	}
	for _, s := range plan.Slots(lengths, p.layer.batchFirst) {
		t := tensor{Slot: s}
		for _, piece := range s.Pieces {
			at, err := p.program.Place(piece.View, piece.Offsets)
			if err != nil {
				return err
			}
			t.places = append(t.places, at)
		}
		p.tensors = append(p.tensors, t)
	}
	moves := func(kinds ...rnn.SlotKind) (all []device.Move) {
		for _, k := range kinds {
			for i := range p.tensors {
				if t := &p.tensors[i]; t.Kind == k {
					for _, at := range t.places {
						all = append(all, device.Move{Place: at})
					}
				}
			}
		}
		return all
	}
	p.forward = device.Work{In: moves(rnn.ForwardGiven), Part: 0, Out: moves(rnn.ForwardTaken)}
	p.first = device.Work{In: moves(rnn.Parameter, rnn.ForwardGiven), Prepare: true, Part: 0, Out: moves(rnn.ForwardTaken)}
	p.backward = device.Work{In: moves(rnn.BackwardGiven), Part: 1, Out: moves(rnn.BackwardTaken)}
	return nil
}

// address sets the addresses of the moves of tensors of some kinds, in the order in which place made
// them.
func (p *Plan) address(moves []device.Move, kinds ...rnn.SlotKind) {
	n := 0
	for _, k := range kinds {
		for i := range p.tensors {
			t := &p.tensors[i]
			if t.Kind != k {
				continue
			}
			for j := range t.places {
				at := t.memory
				if at != nil {
					at = unsafe.Add(at, t.Pieces[j].From*t.format.Bytes())
				}
				moves[n].At, moves[n].Type = at, t.format
				n++
			}
		}
	}
}

// enter begins a call.
func (p *Plan) enter() (leave func(), err error) {
	if leave, err = p.layer.enter(); err != nil {
		return nil, err
	}
	if p.closed {
		leave()
		return nil, invalid("the plan is closed")
	}
	return leave, nil
}

// Tensor returns the name, the kind and the shape of tensor i; ok is false beyond the last one.
func (p *Plan) Tensor(i int) (slot rnn.Slot, ok bool, err error) {
	leave, err := p.enter()
	if err != nil {
		return slot, false, err
	}
	defer leave()
	if i < 0 || i >= len(p.tensors) {
		return slot, false, nil
	}
	return p.tensors[i].Slot, true, nil
}

// Bind binds memory to the tensor of that name.
func (p *Plan) Bind(name string, memory unsafe.Pointer, format device.Type) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	i := slices.IndexFunc(p.tensors, func(t tensor) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range p.tensors {
			names = append(names, t.Name)
		}
		return invalid("%w", nearest.Unknown("tensor", name, names))
	}
	return p.bind(i, memory, format)
}

// BindAll binds memory to the first tensors.
func (p *Plan) BindAll(memory []unsafe.Pointer, formats []int32) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	if len(memory) > len(p.tensors) {
		return invalid("the plan has %d tensors, not %d", len(p.tensors), len(memory))
	}
	for i, m := range memory {
		if err := p.bind(i, m, device.Type(formats[i])); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) bind(i int, memory unsafe.Pointer, format device.Type) error {
	t := &p.tensors[i]
	switch {
	case format < 0 || int(format) >= len(device.Types()):
		return invalid("%s has number format %d: there are %d", t.Name, format, len(device.Types()))
	case memory != nil && uintptr(memory)%uintptr(format.Bytes()) != 0:
		return invalid("the memory of %s is not aligned to its values of %d bytes", t.Name, format.Bytes())
	}
	t.memory, t.format, t.bound = memory, format, true
	return nil
}

// Update makes the next forward pass read the parameters.
func (p *Plan) Update() error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	p.stale = true
	return nil
}

// needs reports a tensor of kind k that must be bound and is not.
func (p *Plan) needs(k rnn.SlotKind, names ...string) error {
	for i := range p.tensors {
		t := &p.tensors[i]
		switch {
		case t.Kind != k || names != nil && !slices.Contains(names, t.Name):
		case !t.bound:
			return invalid("no memory is bound to %s", t.Name)
		case t.memory == nil && names != nil:
			return invalid("%s must have memory, not NULL", t.Name)
		}
	}
	return nil
}

// Forward runs the forward pass. On a GPU it returns before that is done.
func (p *Plan) Forward(stream uintptr) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := cmp.Or(p.needs(rnn.ForwardGiven, "input"), p.needs(rnn.ForwardTaken, "output")); err != nil {
		return err
	}
	w := &p.forward
	if p.stale {
		if err := p.needs(rnn.Parameter); err != nil {
			return err
		}
		w = &p.first
		p.address(w.In, rnn.Parameter, rnn.ForwardGiven)
	} else {
		p.address(w.In, rnn.ForwardGiven)
	}
	p.address(w.Out, rnn.ForwardTaken)
	if err := p.program.Do(*w, stream); err != nil {
		return err
	}
	p.stale, p.kept = false, p.train
	return nil
}

// Backward runs the backward pass of the latest forward pass.
func (p *Plan) Backward(stream uintptr) error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	switch {
	case !p.train:
		return invalid("the plan is of the forward pass: plan the pass \"train\"")
	case !p.kept:
		return invalid("there is no forward pass to go back through: run forward first, and backward once")
	}
	if err := p.needs(rnn.BackwardGiven, "grad_output"); err != nil {
		return err
	}
	w := &p.backward
	p.address(w.In, rnn.BackwardGiven)
	p.address(w.Out, rnn.BackwardTaken)
	p.kept = false
	return p.program.Do(*w, stream)
}

// Release forgets a forward pass whose backward pass will not come.
func (p *Plan) Release() error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	p.kept = false
	return nil
}

// Wait waits for all work of the plan and returns its error.
func (p *Plan) Wait() error {
	leave, err := p.enter()
	if err != nil {
		return err
	}
	defer leave()
	return p.program.Settle()
}

// Describe returns the plan as JSON.
func (p *Plan) Describe() (string, error) {
	leave, err := p.enter()
	if err != nil {
		return "", err
	}
	defer leave()
	out := struct {
		Technique string `json:"technique"` // with its settings
		Why       string `json:"why,omitempty"`
		Bytes     int64  `json:"bytes"`
		Tensors   int    `json:"tensors"`
	}{Technique: p.spec.String(), Bytes: p.bytes, Tensors: len(p.tensors)}
	if p.spec.Choice != nil {
		out.Why = p.spec.Choice.Match + ": " + p.spec.Choice.Why
	}
	return text(out)
}

// Close frees the plan. Closing it again does nothing.
func (p *Plan) Close() error {
	leave, err := p.enter()
	if err != nil {
		return nil
	}
	defer leave()
	p.layer.plans = slices.DeleteFunc(p.layer.plans, func(o *Plan) bool { return o == p })
	return p.close()
}

func (p *Plan) close() error {
	p.closed = true
	return p.program.Close()
}
