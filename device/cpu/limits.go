package cpu

import (
	"slices"
	"time"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
)

var _ device.Meter = (*Device)(nil)

// Limits measures the peak of multiply-adds and the copy rate of all workers
// together: the best of several short trials, since what disturbs them only
// ever slows them.
func (d *Device) Limits() (device.Limits, error) {
	const trials = 12
	flops := make([]int64, d.workers)
	var l device.Limits
	for range trials {
		sec, err := d.together(func(w int) { flops[w] = d.kernels.FMAPeak(4 << 20) })
		if err != nil {
			return l, err
		}
		var sum int64
		for _, f := range flops {
			sum += f
		}
		l.FLOPS = max(l.FLOPS, float64(sum)/sec)
	}
	// Each of the two arrays is twice the last cache, but an eighth of what is
	// free at most.
	floats := max(32<<20, 2*cpuid.CPU.Cache.L3/4)
	if free := available(); free > 0 {
		floats = min(floats, int(free/8/4))
	}
	each := max(line, floats/d.workers/line*line)
	arena, free, err := allocate(2 * each * d.workers)
	if err != nil {
		return l, err
	}
	// Memory that nobody has written to is one page of zeros, in the caches.
	if _, err := d.together(func(w int) { fill(arena[2*each*w : 2*each*(w+1)]) }); err != nil {
		return l, err
	}
	for range trials {
		sec, err := d.together(func(w int) {
			from := 2 * each * w
			d.kernels.Stream(arena[from:from+each], arena[from+each:from+2*each])
		})
		if err != nil {
			return l, err
		}
		l.Copy = max(l.Copy, 8*float64(each*d.workers)/sec)
	}
	return l, free()
}

// together runs f on every worker at once and returns the seconds from when the
// first began until the last was done: where others want the processors, too,
// any worker may be late.
func (d *Device) together(f func(worker int)) (float64, error) {
	var ready, finished counter
	starts := make([]time.Time, d.workers)
	var end time.Time
	err := d.pool.do(func(w int) {
		d.pool.meet(&ready, d.workers)
		starts[w] = time.Now()
		f(w)
		finished.Add(1)
		if w == 0 {
			d.pool.await(&finished, uint64(d.workers))
			end = time.Now()
		}
	})
	return end.Sub(slices.MinFunc(starts, time.Time.Compare)).Seconds(), err
}
