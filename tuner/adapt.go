package tuner

import (
	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// Adapt lays out the winner of another point at p, as LayOutWithin does. Settings that p does not
// accept, such as a block of more steps than p has, keep their defaults.
func Adapt(d device.Device, techniques []rnn.Technique, p record.Point, spec grid.Spec, limit int64) (*Layout, error) {
	fixed := spec.Knobs
	spec.Knobs = nil
	l, err := settle(techniques, p, spec, launches(d))
	if err != nil || l.Reason != "" {
		return l, err
	}
	if p.Streams > 0 { // the point's own streams win
		fixed = without(fixed, "streams")
	}
	spec.Knobs = accepted(fixed, l.offered)
	if l, err = LayOutWithin(d, techniques, p, spec, limit); err != nil || l.Reason != "" {
		return l, err
	}
	d = l.host(d)
	offered := d.Knobs(l.Schedule)
	l.Spec.Knobs = accepted(fixed, append(offered, l.offered...))
	_, theirs := l.Spec.Knobs.Split(offered)
	if err := l.settleDevice(d, theirs); err != nil {
		return l, err
	}
	return l, l.weigh(d)
}

// accepted returns the settings of p that knobs accept.
func accepted(p knob.Params, knobs []knob.Knob) knob.Params {
	out := knob.Params{}
	for _, k := range knobs {
		if v, ok := p[k.Name]; ok && k.Accepts(v) {
			out[k.Name] = v
		}
	}
	return out
}

func without(p knob.Params, name string) knob.Params {
	out := knob.Params{}
	for k, v := range p {
		if k != name {
			out[k] = v
		}
	}
	return out
}
