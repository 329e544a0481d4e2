package bench

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// otherRuns warns of other runs of rnnbench on this machine's processors: both runs then measure times
// that neither would have alone. Runs on GPUs may be on different ones.
func (b *Bench) otherRuns() []record.Advice {
	if record.OnGPU(b.Info.Key) {
		return nil
	}
	runs := b.Around.Runs()
	if len(runs) == 0 {
		return nil
	}
	what := fmt.Sprintf("another run of rnnbench uses this machine (%v)", runs[0])
	if n := len(runs); n > 1 {
		what = fmt.Sprintf("%d other runs of rnnbench use this machine (the first is %v)", n, runs[0])
	}
	return []record.Advice{{What: what, Remedy: "measure one after the other, because they take processors and memory from each other"}}
}

// company warns of what took processors since the device was opened, as far as the counters tell. The
// manifest then says how much other programs used.
func (b *Bench) company() []record.Advice {
	d := b.Around.Since(b.opened, record.OnGPU(b.Info.Key))
	var list []record.Advice
	if used := b.usedByOthers(d); used != "" {
		if b.others == "" {
			b.others = used
		}
		list = append(list, record.Advice{What: "other programs use " + used, Remedy: "stop them, because times are longer and vary with what they do"})
	}
	if d.Held() {
		list = append(list, record.Advice{
			What:   fmt.Sprintf("the control group's quota (%.4g processors) stops the program for %.0f %% of the time", *d.Quota, 100**d.Stopped),
			Remedy: "raise the quota, or set --threads below it, because times include these pauses"})
	}
	return list
}

// usedByOthers says how much of the processors other programs used during d; "": not much, or unknown.
func (b *Bench) usedByOthers(d *record.Disturbance) string {
	if !d.Crowded(record.OnGPU(b.Info.Key)) {
		return ""
	}
	return fmt.Sprintf("%.1f of %s", *d.Others, quantity.Plural(d.Processors, "processor"))
}

// warnOfOthers warns if other programs use the device. The device then serves them in turns, so
// each run may take twice as long without a sign of it: the clock and the spread stay as they are.
// It must be called before rivals start, since they are programs too.
func (b *Bench) warnOfOthers() {
	i, ok := b.Device.(device.Inspector)
	if !ok {
		return
	}
	findings, err := i.Inspect()
	if err != nil {
		b.tell.Logger().Debug("the device's state is unknown", "error", err)
		return
	}
	for _, f := range findings {
		if f.Name == device.OtherPrograms && f.Remedy != "" {
			b.others = f.Value
			b.tell.Warn("other programs use %s (%s): %s, because runs take turns with theirs", b.Info.Name, f.Value, f.Remedy)
		}
	}
}
