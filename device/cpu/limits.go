package cpu

import (
	"slices"
	"time"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
	"rnnbench/internal/memory"
)

var _ device.Meter = (*Device)(nil)

// limitTrials is the number of short trials of each limit. The best one counts, since disturbances
// only slow a trial down.
const limitTrials = 12

// Copies have fewer trials if caches are so large that one takes long: at least fewTrials, and none
// after copyTime.
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
	// Each of the two arrays is as large as the last cache, which so cannot hold both. But it takes
	// at most an eighth of the free memory.
	floats := max(32<<20, cpuid.CPU.Cache.L3/4)
	if free := memory.Available(); free > 0 {
		floats = min(floats, int(free/8/4))
	}
	each := max(line, floats/d.workers/line*line)
	arena, free, err := allocate(2 * each * d.workers)
	if err != nil {
		return l, err
	}
	// Write first: memory that was never written is one page of zeros, which caches hold.
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

// peaks measures the peak of multiply-adds and, if the kernels multiply bf16 in hardware, that of
// bf16.
func (d *Device) peaks() (l device.Limits, err error) {
	if l.FLOPS, err = d.peak(d.kernels.FMAPeak); err != nil || !d.kernels.Rounds() {
		return l, err
	}
	half, err := d.peak(d.kernels.BF16Peak)
	l.More = append(l.More, device.Rate{Name: "bf16 products", Value: half, Unit: "FLOP/s"})
	return l, err
}

// peak returns the peak rate of arithmetic on registers, in operations per second. It is the sum
// over workers of each one's best trial, by its own clock, while all run. run(n) returns how many
// operations it did, about 2n.
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

// together runs f on every worker at once. It returns the seconds from when the first one began
// until the last one ended: any worker may be late if other programs use the processors.
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
