package main

import (
	"fmt"
	"io/fs"
	"os"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// systemRoot holds /proc and /sys, where Linux publishes its counters. Tests replace it.
var systemRoot fs.FS = os.DirFS("/")

// otherRuns warns of other runs of rnnbench on this machine's processors: both runs then measure times
// that neither would have alone. Runs on GPUs may be on different ones.
func otherRuns(b *bench) []record.Advice {
	if record.OnGPU(b.info.Key) {
		return nil
	}
	runs := b.around.Runs()
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
func company(b *bench) []record.Advice {
	d, onGPU := b.around.Since(b.opened, record.OnGPU(b.info.Key)), record.OnGPU(b.info.Key)
	var list []record.Advice
	if d.Crowded(onGPU) {
		used := fmt.Sprintf("%.1f of %s", *d.Others, quantity.Plural(d.Processors, "processor"))
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
