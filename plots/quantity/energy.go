package quantity

import "rnnbench/record"

// energy returns a measure of joules divided by share. The interval reaches from the least to the
// most joules of a window.
func energy(name, title, key string, share func(p record.Point) float64) Measure {
	return Measure{Name: name, Title: title, Unit: "J", Key: key, Less: true, Scaled: true, of: func(r, _ *record.Record) (Interval, bool) {
		n := share(r.Point)
		if r.Energy == nil || r.Energy.Joules == nil || r.Status != record.OK || n <= 0 {
			return Interval{}, false
		}
		v := Interval{*r.Energy.Joules, *r.Energy.Joules, *r.Energy.Joules}
		for _, w := range r.Energy.Windows {
			v.Lo, v.Hi = min(v.Lo, w), max(v.Hi, w)
		}
		return Interval{v.Value / n, v.Lo / n, v.Hi / n}, true
	}}
}

// energies returns the measures of energy. A cell step is a step of one layer for all sequences.
func energies() []Measure {
	joules := energy("energy", "energy per run", "energy_j", func(record.Point) float64 { return 1 })
	return []Measure{
		joules,
		energy("energy-step", "energy per cell step", "energy_step_j", func(p record.Point) float64 { return float64(p.Reads()) * float64(p.Steps) }),
		energy("energy-sequence", "energy per sequence", "energy_sequence_j", func(p record.Point) float64 { return float64(p.Batch) }),
		{Name: "per-watt", Title: "throughput per watt", Unit: "FLOP/s/W", Key: "flops_per_s_per_w", Scaled: true, of: func(r, _ *record.Record) (Interval, bool) {
			v, ok := joules.of(r, nil)
			w := float64(r.Work.Flops)
			if !ok || w <= 0 || v.Lo <= 0 {
				return Interval{}, false
			}
			return Interval{w / v.Value, w / v.Hi, w / v.Lo}, true
		}},
		{Name: "power", Title: "mean power", Unit: "W", Key: "power_w", Less: true, of: func(r, _ *record.Record) (Interval, bool) {
			if r.Energy == nil || r.Energy.Watts == nil || r.Status != record.OK {
				return Interval{}, false
			}
			w := *r.Energy.Watts
			return Interval{w, w, w}, true
		}},
	}
}
