package tuner

import "rnnbench/device"

// sideBySide is how many candidates have their kernels compiled side by side. The device waits for all that was begun, so
// that of thousands a budget or an interruption would wait for minutes.
const sideBySide = 64

// precompile has the kernels of the next entrants that are to start compiled side by side. Large schedules, which take time
// to lay out once more, have few kernels.
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
