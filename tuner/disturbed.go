package tuner

import (
	"rnnbench/results"
	"rnnbench/results/around"
)

// disturbance returns what disturbed the program since a reading of the counters; nil: unknown. Other
// runs of rnnbench are looked for only if other programs took processors, since that takes longer.
func (s *Sweep) disturbance(since *around.Counters) *results.Disturbance {
	d := s.Around.Between(since, s.Around.Read())
	if d.Crowded(results.OnGPU(s.Device.Info().Key)) {
		for _, r := range s.Around.Runs() {
			d.Runs = append(d.Runs, r.PID)
		}
	}
	return d
}

// disturbed records that d happened while c was measured; nil: it is unknown.
func (c *candidate) disturbed(d *results.Disturbance) {
	c.record.Disturbance = d
	for _, w := range d.Words(results.OnGPU(c.record.Device)) {
		c.warn(w)
	}
}
