package tuner

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/grid"
)

// A Layout is a point as a technique lays it out for a device.
type Layout struct {
	Point     record.Point
	Spec      grid.Spec
	Technique rnn.Technique
	Problem   rnn.Problem

	// Reason says in a sentence why the point is not run, and Code is its reason code of package
	// results. Both are "" if the point can run; then all other fields are set.
	Code, Reason string

	Knobs       knob.Params // of the technique
	DeviceKnobs knob.Params
	Plan        *rnn.Plan
	Schedule    *schedule.Schedule
	Memory      int64 // bytes on the device
	Laid        int64 // bytes of host memory that the schedule itself takes

	offered  []knob.Knob // the technique's knobs at this point
	rest     knob.Params // settings that are not the technique's, so must be the device's
	apart    bool        // the device has memory of its own
	hostFree int64       // bytes of the host's memory that may be used if the device is apart; 0: unknown
}

// LayOut lays p out for d by the technique that spec names, which must be one of techniques. A
// declined point is no error; its Reason is set. Errors are mistakes of the user.
func LayOut(d device.Device, techniques []rnn.Technique, p record.Point, spec grid.Spec) (*Layout, error) {
	return LayOutWithin(d, techniques, p, spec, 0)
}

// LayOutWithin is LayOut, but declines a schedule that would itself take more than limit bytes,
// before it is built; 0 is no limit. Fit checks the other memory.
func LayOutWithin(d device.Device, techniques []rnn.Technique, p record.Point, spec grid.Spec, limit int64) (*Layout, error) {
	l, err := draft(d, techniques, p, spec, limit)
	if err != nil || l.Reason != "" {
		return l, err
	}
	return l, l.weigh(d)
}

// draft is LayOutWithin without asking for the device memory, which may take a device long to tell.
func draft(d device.Device, techniques []rnn.Technique, p record.Point, spec grid.Spec, limit int64) (*Layout, error) {
	l, err := settle(techniques, p, spec, launches(d))
	if err != nil || l.Reason != "" {
		return l, err
	}
	info := d.Info()
	if l.apart = launches(d); l.apart {
		l.hostFree = info.Host / 10 * 9
	}
	if !slices.Contains(info.Precision, p.Precision) {
		l.refuse(record.ReasonPrecision, fmt.Sprintf("%s supports %s, not %s", info.Name, strings.Join(info.Precision, ", "), p.Precision))
		return l, nil
	}
	l.Plan, l.Schedule, err = rnn.LayoutWithin(l.Technique, l.Problem, l.Knobs, l.mostLaid(limit))
	if large := (*rnn.TooLarge)(nil); errors.As(err, &large) {
		l.Laid = large.Bytes
		l.Fit(limit)
		return l, nil
	}
	if errors.Is(err, schedule.ErrUnsupported) {
		l.refuse(ReasonOf(err, record.ReasonShape), err.Error())
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.Laid = rnn.ScheduleBytes(l.Schedule)
	if err := ensureStarted(d); err != nil {
		return l, err
	}
	return l, l.settleDevice(l.host(d), l.rest)
}

// launches reports whether d launches operations, as all devices but the CPU do.
func launches(d device.Device) bool { return d.Info().Name != "cpu" }

// settleDevice takes the settings of the device's knobs from rest. A setting that d does not offer
// for this schedule declines the point. A knob that is not in d's vocabulary is an error.
func (l *Layout) settleDevice(d device.Device, rest knob.Params) error {
	return l.settleOffered(d, d.Knobs(l.Schedule), rest)
}

// settleOffered is settleDevice with the knobs that d offers for this schedule.
func (l *Layout) settleOffered(d device.Device, offered []knob.Knob, rest knob.Params) error {
	vocabulary := d.Vocabulary()
	usual, err := knob.Params{}.Complete(offered)
	if err != nil {
		return err
	}
	l.DeviceKnobs = usual
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		v := rest[name]
		here, known := knob.Find(offered, name), knob.Find(vocabulary, name)
		if here == nil && known != nil && v == known.Values[0] {
			continue // the default holds without the knob
		}
		l.DeviceKnobs[name] = v
		switch {
		case here != nil && here.Accepts(v):
		case known == nil: // most likely it was meant for the technique
			err = l.unknownKnob(name, knob.Names(slices.Concat(l.offered, offered)))
			return fmt.Errorf("%s: %w", l.Spec.Name, err)
		case !known.Accepts(v):
			return fmt.Errorf("%s: %w", l.Spec.Name, known.Reject(v))
		case here != nil:
			l.refuse(record.ReasonKnob, fmt.Sprintf("%s=%d: %s accepts %s at this point", name, v, d.Info().Name, here.Offer()))
		default:
			l.refuse(record.ReasonKnob, fmt.Sprintf("%s=%d: %s does not use this knob at this point", name, v, d.Info().Name))
		}
	}
	return nil
}

// weigh asks d how much memory l takes, unless l is declined already.
func (l *Layout) weigh(d device.Device) error {
	if l.Reason != "" {
		return nil
	}
	var err error
	d = l.host(d)
	l.Memory, err = d.Memory(l.Schedule, l.DeviceKnobs)
	if errors.Is(err, device.ErrKilled) {
		l.Memory, err = d.Memory(l.Schedule, l.DeviceKnobs)
	}
	if errors.Is(err, schedule.ErrUnsupported) {
		l.refuse(ReasonOf(err, record.ReasonResource), err.Error())
		return nil
	}
	return err
}

// CheckKnobs returns an error for a setting of spec that neither its technique at p nor any device
// of d's kind accepts. It lays nothing out.
func CheckKnobs(d device.Device, techniques []rnn.Technique, p record.Point, spec grid.Spec) error {
	l, err := settle(techniques, p, spec, launches(d))
	if err != nil {
		return err
	}
	vocabulary := l.host(d).Vocabulary()
	for _, name := range slices.Sorted(maps.Keys(l.rest)) {
		switch known, v := knob.Find(vocabulary, name), l.rest[name]; {
		case known == nil:
			return fmt.Errorf("%s: %w", spec.Name, l.unknownKnob(name, knob.Names(slices.Concat(l.offered, vocabulary))))
		case !known.Accepts(v):
			return fmt.Errorf("%s: %w", spec.Name, known.Reject(v))
		}
	}
	return nil
}

// settle finds the problem, the technique and the settings of its knobs. The device's knobs depend
// on the schedule, so the technique takes its own settings first and the others become rest.
// launched says that the device launches operations, which may change defaults.
func settle(techniques []rnn.Technique, p record.Point, spec grid.Spec, launched bool) (*Layout, error) {
	l := &Layout{Point: p, Spec: spec, Knobs: maps.Clone(spec.Knobs)}
	if l.Knobs == nil {
		l.Knobs = knob.Params{}
	}
	var err error
	if l.Problem, err = Problem(p); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(techniques, func(t rnn.Technique) bool { return t.Name() == spec.Name })
	if i < 0 {
		var names []string
		for _, t := range techniques {
			names = append(names, t.Name())
		}
		return nil, fmt.Errorf("tuner: %w", grid.Unknown("technique", spec.Name, names))
	}
	l.Technique = techniques[i]
	l.offered = rnn.KnobsOf(l.Technique, l.Problem, launched)
	if p.Streams > 0 {
		if knob.Find(l.offered, "streams") != nil {
			if own, ok := l.Knobs["streams"]; ok && own != p.Streams {
				return nil, fmt.Errorf("%s: knob streams is %d, but the point has S=%d: remove one of them", spec.Name, own, p.Streams)
			}
			l.Knobs["streams"] = p.Streams
		} else if p.Streams > 1 {
			l.refuse(record.ReasonStreams, fmt.Sprintf("%s runs on one stream, not %d", spec.Name, p.Streams))
			return l, nil
		}
	}
	var own knob.Params
	l.rest, own = l.Knobs.Split(l.offered)
	if l.Knobs, err = own.Complete(l.offered); err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	return l, nil
}

// unknownKnob reports a knob that nothing offers at the point of l. It may belong to training, or to
// sequences with lengths of their own.
func (l *Layout) unknownKnob(name string, known []string) error {
	if train := l.Problem; train.Pass != rnn.Train {
		train.Pass = rnn.Train
		if knob.Find(rnn.KnobsOf(l.Technique, train, false), name) != nil {
			return fmt.Errorf("knob %q belongs to training, and this pass is %v: use --pass train, or omit the knob", name, l.Problem.Pass)
		}
	}
	if uneven := l.Problem; uneven.Lengths == "" {
		if uneven.Lengths = "uniform:50%"; knob.Find(rnn.KnobsOf(l.Technique, uneven, false), name) != nil {
			return fmt.Errorf("knob %q belongs to sequences with lengths of their own, and here all are full: set --lengths, or omit the knob", name)
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("unknown knob %q: it has no knobs", name)
	}
	return grid.Unknown("knob", name, known)
}

func (l *Layout) refuse(code, reason string) { l.Code, l.Reason = code, reason }

// Settings returns the settings of all knobs, the technique's and the device's.
func (l *Layout) Settings() knob.Params {
	all := maps.Clone(l.Knobs)
	maps.Copy(all, l.DeviceKnobs)
	return all
}

// Key is the key of the record that l gets when it is measured on the device with that key.
func (l *Layout) Key(device string) string {
	r := record.Record{Point: l.Point, Device: device, Impl: record.Impl{Name: l.Spec.Name, Knobs: l.Settings(), Choice: l.Spec.Choice}}
	return r.Key()
}

// Need is the memory that measuring takes at most, in bytes, host memory included.
func (l *Layout) Need() int64 { return l.Own() + l.Shared() }

// Own is the part of Need that l takes beside other techniques at its point, in bytes.
func (l *Layout) Own() int64 { return l.Memory + l.Laid }

// Shared is the part of Need that techniques measured side by side take once, in bytes. Where another
// technique may have to be checked first, as a peer, that one's program is counted.
func (l *Layout) Shared() int64 {
	if _, checked := sample(l.Problem); l.Problem.Calls > 0 || checked == l.Problem || l.stepwise() {
		return hostMemory(l.Problem)
	}
	return hostMemory(l.Problem) + max(l.Own(), peerMemory(l.Problem))
}

// peerMemory is roughly what the program and the schedule of a peer take, in bytes: it keeps all
// states and gradients of each step.
func peerMemory(p rnn.Problem) int64 {
	const laid = 3 << 10 // bytes for each step of a layer
	perUnit := 2*(len(p.Cell.Gates)+len(p.Cell.States)) + p.Cell.Recurrent
	if p.Pass == rnn.Train {
		perUnit += p.Cell.Saved
	}
	steps := int64(p.Reads()) * int64(p.Frames())
	return steps*(laid+4*int64(p.Batch)*int64(p.Hidden)*int64(perUnit)) + 8*weights(p)
}

// stepwise reports whether the run itself can be checked step by step.
func (l *Layout) stepwise() bool {
	if l.Plan == nil { // it has not been laid out
		return false
	}
	states, gradients := oracle.Steps(l.Plan)
	return states && gradients
}

// Fit declines l if it needs more than limit bytes, or more of the host's memory than there is beside
// a device with memory of its own; 0 is no limit.
func (l *Layout) Fit(limit int64) {
	decline := func(what string, need, most int64) {
		l.refuse(record.ReasonMemory, fmt.Sprintf("needs %s%s, but only %s may be used", quantity.Bytes(float64(need)), what, quantity.Bytes(float64(most))))
	}
	switch {
	case l.Reason != "":
	case limit > 0 && l.Need() > limit:
		decline("", l.Need(), limit)
	case l.hostFree > 0 && l.hostNeed() > l.hostFree:
		decline(" of the host's memory", l.hostNeed(), l.hostFree)
	}
}

// A layout for a GPU takes perLaid times Laid of the host's memory: 0.8 times in this process, and
// 6.4 times in the worker, which also keeps the commands. This was measured with 3.8 million
// operations of naive.
const perLaid = 8

// hostNeed is the host's memory that measuring takes if the device has its own, in bytes.
func (l *Layout) hostNeed() int64 { return perLaid*l.Laid + hostMemory(l.Problem) }

// mostLaid returns how many bytes the schedule itself may take. limit is how many bytes the whole
// layout may take on the device. 0 is no limit.
func (l *Layout) mostLaid(limit int64) int64 {
	if host := l.hostFree / perLaid; host > 0 && (limit == 0 || host < limit) {
		return host
	}
	return limit
}

// Free is the memory of a device that one technique may take, in bytes: nine tenths. 0: unknown.
func Free(d device.Info) int64 { return d.Memory / 10 * 9 }

// Problem turns a point into a problem. The error names the word or size that is wrong.
func Problem(p record.Point) (rnn.Problem, error) {
	q, err := rnn.Of(p)
	return q, errors.Join(err, checkCalls(p))
}

// hostMemory is the host memory that inputs, weights and checks take at most, in bytes.
func hostMemory(p rnn.Problem) int64 {
	perWeight := int64(16) // bytes: as data, written, turned and rounded
	distinct, checked := sample(p)
	given := p.Given() // values per step and sequence
	if p.Pass == rnn.Train {
		perWeight += 24 // gradients: of the run, the reference and a rounded one
		if p.Output == 0 {
			given += p.Out()
		}
	}
	if p.Calls > 0 {
		of := serviceOf(p)
		return perWeight*weights(p) + 4*int64(given)*int64(of.served.Steps)*int64(of.distinct) + of.bytes()
	}
	check := oracle.ReferenceBytes(checked, distinct)
	if checked != p {
		check = max(check, (100+stepwiseGarbage)*oracle.StepwiseBytes(p, distinct)/100+oracle.MeasureBytes(p, distinct))
	}
	if rnn.Kinked(p) { // the whole answer is read if a part is off
		check += oracle.AnswerBytes(p)
	}
	moved := 4*int64(given)*int64(p.Frames())*int64(distinct+p.Batch) + 2*oracle.LargestBytes(p) // to a program and from it
	return perWeight*weights(p) + 4*int64(given)*int64(p.Frames())*int64(distinct) + moved + check
}

// weights is the number of p's weights, the output layer's left out.
func weights(p rnn.Problem) int64 {
	n := p.Symbols * p.Embedding
	for l := range p.Layers {
		n += p.Ways() * p.Hidden * (len(p.Cell.Gates)*p.FanIn(l) + p.Cell.Multiplied()*p.HeadUnits() + p.Projection)
	}
	return int64(n)
}
