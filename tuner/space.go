package tuner

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// A contender is one technique with its settings at one point, as known before it runs.
type contender struct {
	spec   grid.Spec // its label names the knobs that differ from the defaults
	key    string    // of its record
	memory int64
	bound  float64 // seconds
	layout Layout  // without plan and schedule, which are large
	ops    int     // of the schedule

	sheet   *sheet
	turned  knob.Params // knobs that differ from the given spec or else from the defaults
	seconds float64     // that a run is predicted to take; 0: unknown
	error   float64     // of that prediction
	dropped bool        // it is predicted to be far behind, and does not run
}

// A sheet holds what contenders with the same technique knobs share: they have one schedule.
type sheet struct {
	base    int // number of the given spec
	spec    grid.Spec
	limit   int64       // of memory
	offered []knob.Knob // by the device
}

// put assigns c to p, with the turned knobs.
func (p *sheet) put(c *contender, turned knob.Params) *contender {
	c.sheet, c.turned = p, turned
	return c
}

// contenders lists the settings that may run p. A technique of specs has every setting in which at
// most t.Depth knobs, its own or the device's, differ from its spec or else from the defaults.
// Of settings with the same program, or declined for the same reason, only the first is kept. same
// counts the others. Settings that the device's model predicts far behind are marked as dropped,
// except those whose keys are in keep.
func (t *Tune) contenders(ctx context.Context, p record.Point, specs []grid.Spec, keep []string) (list []*contender, same int, err error) {
	o := t.outlook(keep)
	if list, same, err = t.settings(ctx, p, specs, o == nil); err == nil && o != nil {
		err = o.choose(ctx, list)
	}
	return list, same, err
}

// settings is contenders with none dropped. Unless weighed, their memory is not known yet.
func (t *Tune) settings(ctx context.Context, p record.Point, specs []grid.Spec, weighed bool) (list []*contender, same int, err error) {
	device := t.Device.Info().Key
	seen := map[string]bool{}
	add := func(c *contender, program string) {
		if seen[program] {
			same++
			return
		}
		seen[program] = true
		list = append(list, c)
	}
	for number, spec := range specs {
		base, err := settle(t.Techniques, p, spec, launches(t.Device))
		if err != nil {
			return nil, 0, err
		}
		free := slices.DeleteFunc(slices.Clone(base.offered), func(k knob.Knob) bool {
			_, fixed := spec.Knobs[k.Name]
			return fixed || k.Name == "streams" && p.Streams > 0
		})
		for _, own := range knob.Combinations(free, t.Depth) {
			if err := ctx.Err(); err != nil {
				return nil, 0, err
			}
			s := with(spec, own)
			limit := t.memory()
			l, err := LayOutWithin(t.Device, t.Techniques, p, s, limit)
			if err != nil {
				return nil, 0, err
			}
			page := &sheet{base: number, spec: s, limit: limit}
			if l.Code == record.ReasonKnob && len(own) > 0 { // own makes a knob that spec sets useless
				continue
			}
			if l.Reason != "" {
				add(page.put(t.contender(l, s, device), own), s.Name+": "+l.Reason)
				continue
			}
			hash := sha256.New()
			if err := l.Schedule.Dump(hash); err != nil {
				return nil, 0, err
			}
			host := l.host(t.Device)
			offered := host.Knobs(l.Schedule)
			page.offered = offered
			theirs := slices.DeleteFunc(slices.Clone(offered), func(k knob.Knob) bool { _, fixed := spec.Knobs[k.Name]; return fixed })
			for _, more := range knob.Combinations(theirs, t.Depth-len(own)) {
				s := with(s, more)
				at := *l
				_, settings := s.Knobs.Split(offered)
				if err := at.settleOffered(host, offered, settings); err != nil {
					return nil, 0, err
				}
				if weighed {
					if err := at.weigh(t.Device); err != nil {
						return nil, 0, err
					}
					at.Fit(limit)
				}
				add(page.put(t.contender(&at, s, device), union(own, more)), fmt.Sprintf("%x %v %s", hash.Sum(nil), at.DeviceKnobs, at.Reason))
			}
		}
	}
	return list, same, nil
}

// withSetting adds the setting of was if its technique takes part, it can run here and all lacks it. It may
// turn more knobs than t.Depth allows.
func (t *Tune) withSetting(all []*contender, p record.Point, specs []grid.Spec, was *record.Record) ([]*contender, error) {
	takesPart := slices.ContainsFunc(specs, func(s grid.Spec) bool { return s.Name == was.Impl.Name && len(s.Knobs) == 0 })
	if !takesPart || slices.ContainsFunc(all, func(c *contender) bool { return c.key == was.Key() }) {
		return all, nil
	}
	limit := t.memory()
	l, err := Adapt(t.Device, t.Techniques, p, grid.Spec{Name: was.Impl.Name, Knobs: was.Impl.Knobs}, limit)
	if err != nil {
		return nil, err
	}
	if l.Fit(limit); l.Reason != "" || l.Settings().String() != knob.Params(was.Impl.Knobs).String() {
		return all, nil // another version found it, or one with more memory
	}
	l.Spec.Label = l.Spec.String()
	return append(all, t.contender(l, l.Spec, t.Device.Info().Key)), nil
}

// union returns the knobs that a and b turn together.
func union(a, b knob.Params) knob.Params {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// with returns spec with more knobs set and a label that names them.
func with(spec grid.Spec, more knob.Params) grid.Spec {
	knobs := maps.Clone(spec.Knobs)
	if knobs == nil {
		knobs = knob.Params{}
	}
	maps.Copy(knobs, more)
	spec.Knobs = knobs
	spec.Label = spec.String()
	return spec
}

// contender makes a contender of s, which was laid out as l, on the device with that key.
func (t *Tune) contender(l *Layout, s grid.Spec, device string) *contender {
	c := &contender{spec: s, memory: l.Memory, layout: *l}
	c.layout.Plan, c.layout.Schedule = nil, nil
	c.key = l.Key(device)
	if l.Reason == "" {
		c.bound, c.ops = Bound(l.Point, device, l.Schedule.FLOPs(), t.Limits.FLOPS), len(l.Schedule.Nodes)
	}
	return c
}

// Bound is the least time of a run in seconds: its FLOPs at 1.25 times the peak, since the
// measurement of the peak may have been disturbed. device is a key. Bound is 0 where the peak is
// unknown, in precisions other than fp32, and on GPUs, whose tensor cores exceed the fp32 peak.
func Bound(p record.Point, device string, flops int64, peak float64) float64 {
	const reserve = 1.25
	if peak <= 0 || p.Precision != "fp32" || record.OnGPU(device) {
		return 0
	}
	return float64(flops) / (reserve * peak)
}
