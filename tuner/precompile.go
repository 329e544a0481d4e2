package tuner

import "rnnbench/device"

// sideBySide is how many candidates have their kernels compiled side by side. The device cannot
// cancel compilations, so thousands of them would delay the end of a budget by minutes.
const sideBySide = 64

// precompile compiles the kernels of the next entrants to start, side by side. It leaves out large
// schedules, which take long to lay out again and have few kernels.
func (c *contest) precompile() {
	const large = 1 << 12 // operations
	d, ok := c.Device.(device.Precompiler)
	if !ok {
		return
	}
	next := c.order[:min(sideBySide, len(c.order))]
	c.order = c.order[len(next):]
	for _, i := range next {
		e := c.entrants[i]
		if e.ahead = true; c.verdict.Records[i] != nil || e.ops > large {
			continue
		}
		if l, err := draft(c.Device, c.Techniques, c.verdict.Point, e.spec, c.memory()); err == nil && l.Reason == "" && l.host(c.Device) == c.Device {
			d.Precompile(l.Schedule, l.DeviceKnobs)
		}
	}
}
