package main

import "rnnbench/device"

// warnOfOthers warns if other programs use the device. The device then serves them in turns, so
// each run may take twice as long without a sign of it: the clock and the spread stay as they are.
// It must be called before rivals start, since they are programs too.
func warnOfOthers(p *program, b *bench) {
	i, ok := b.Device.(device.Inspector)
	if !ok {
		return
	}
	findings, err := i.Inspect()
	if err != nil {
		p.log.Debug("the device's state is unknown", "error", err)
		return
	}
	for _, f := range findings {
		if f.Name == device.OtherPrograms && f.Remedy != "" {
			b.others = f.Value
			p.warn("other programs use %s (%s): %s, because runs take turns with theirs", b.info.Name, f.Value, f.Remedy)
		}
	}
}
