package cpu

import (
	"slices"
	"time"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
)

var _ device.Meter = (*Device)(nil)

// limitTrials is how many short trials each limit has, the best of which counts: what disturbs them only ever slows
// them.
const limitTrials = 12

// Copies have fewer where caches are so large that one takes long: at least fewTrials, and no
// further ones after copyTime.
const (
	fewTrials = 3
	copyTime  = 300 * time.Millisecond
)

// Limits measures the peaks of arithmetic and the copy rate of all workers together.
func (d *Device) Limits() (device.Limits, error) {
	l, err := d.peaks()
	if err != nil {
		return l, err
	}
	// Each of the two arrays is as large as the last cache, so that both together never stay
	// there, but an eighth of what is free at most.
	floats := max(32<<20, cpuid.CPU.Cache.L3/4)
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
	for trial, start := 0, time.Now(); trial < fewTrials || trial < limitTrials && time.Since(start) < copyTime; trial++ {
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

// peaks are those of arithmetic: of multiply-adds, and of bf16 where the kernels multiply it as it is.
func (d *Device) peaks() (l device.Limits, err error) {
	if l.FLOPS, err = d.peak(d.kernels.FMAPeak); err != nil || !d.kernels.Rounds() {
		return l, err
	}
	half, err := d.peak(d.kernels.BF16Peak)
	l.More = append(l.More, device.Rate{Name: "bf16 products", Value: half, Unit: "FLOP/s"})
	return l, err
}

// peak is the rate of arithmetic on registers that nothing exceeds: the sum of what each worker did in its best trial,
// by its own clock, while all were at it. Operations per second; run does about twice n.
func (d *Device) peak(run func(n int) int64) (float64, error) {
	const n = 8 << 20
	best := make([]float64, d.workers)
	for range limitTrials {
		if _, err := d.together(func(w int) {
			start := time.Now()
			done := run(n)
			best[w] = max(best[w], float64(done)/time.Since(start).Seconds())
		}); err != nil {
			return 0, err
		}
	}
	sum := 0.0
	for _, b := range best {
		sum += b
	}
	return sum, nil
}

// together runs f on every worker at once and returns the seconds from when the
// first began until the last was done: where others want the processors, too,
// any worker may be late.
func (d *Device) together(f func(worker int)) (float64, error) {
	var finished counter
	ready := d.pool.barrier(d.workers, 0, d.workers)
	starts := make([]time.Time, d.workers)
	var end time.Time
	err := d.pool.on(d.pool.seats(d.workers), func(w int) {
		d.pool.meet(ready, w, d.workers)
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
