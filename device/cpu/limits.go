package cpu

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device"
	"rnnbench/internal/memory"
)

var _ device.Meter = (*Device)(nil)

// Each limit has limitTrials trials, and up to patience times as many while they are disturbed. The
// best one counts, since disturbances only slow a trial down.
const (
	limitTrials = 12
	patience    = 4
)

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
		return l, fmt.Errorf("cpu: cannot allocate %d MiB to measure the copy rate: %w", 2*each*d.workers>>18, err)
	}
	// Write first: memory that was never written is one page of zeros, which caches hold.
	if _, err := d.together(func(w int) { fill(arena[2*each*w : 2*each*(w+1)]) }); err != nil {
		return l, err
	}
	var rates []float64
	for start := time.Now(); len(rates) < fewTrials || len(rates) < patience*limitTrials && time.Since(start) < copyTime; {
		sec, err := d.together(func(w int) {
			from := 2 * each * w
			d.kernels.Stream(arena[from:from+each], arena[from+each:from+2*each])
		})
		if err != nil {
			return l, err
		}
		rates = append(rates, 8*float64(each*d.workers)/sec)
	}
	l.Copy = slices.Max(rates)
	if !repeated(rates) || slices.Contains(l.Unsure, device.LimitFLOPS) {
		l.Unsure = append(l.Unsure, device.LimitCopy)
	}
	return l, free()
}

// repeated reports whether another trial comes within a tenth of the best one. If none does, probably
// all were disturbed.
func repeated(rates []float64) bool {
	sorted := slices.Sorted(slices.Values(rates))
	return len(sorted) > 1 && sorted[len(sorted)-2] >= 0.9*sorted[len(sorted)-1]
}

// peaks measures the peak of multiply-adds and, if the kernels multiply bf16 in hardware, that of
// bf16.
func (d *Device) peaks() (l device.Limits, err error) {
	sure := false
	if l.FLOPS, sure, err = d.peak(d.kernels.FMAPeak); err != nil {
		return l, err
	}
	if !sure {
		l.Unsure = append(l.Unsure, device.LimitFLOPS)
	}
	if !d.kernels.Rounds() {
		return l, nil
	}
	half := device.Rate{Name: "bf16 products", Unit: "FLOP/s"}
	if half.Value, sure, err = d.peak(d.kernels.BF16Peak); !sure {
		l.Unsure = append(l.Unsure, half.Name)
	}
	l.More = append(l.More, half)
	return l, err
}

// peak returns the peak rate of arithmetic on registers of all workers together, in operations per
// second. run(n) returns how many operations it did, about 2n. The peak is not sure if something
// else took processors from the workers in every trial.
func (d *Device) peak(run func(n int) int64) (rate float64, sure bool, err error) {
	const n, length = 1 << 20, 2 * time.Millisecond
	stints := make([]stint, d.workers)
	for trial := 0; trial < limitTrials || trial < patience*limitTrials && !sure; trial++ {
		var began atomic.Pointer[time.Time]
		if _, err := d.together(func(w int) {
			now := time.Now()
			began.CompareAndSwap(nil, &now)
			s := stint{from: now, best: stints[w].best}
			for s.to = now; s.done == 0 || s.to.Sub(*began.Load()) < length; {
				done, before := run(n), s.to
				s.to, s.done = time.Now(), s.done+done
				s.best = max(s.best, float64(done)/s.to.Sub(before).Seconds())
			}
			stints[w] = s
		}); err != nil {
			return 0, false, err
		}
		rate = max(rate, rateOf(stints))
		sure = rate >= undisturbed*attainable(stints, len(d.pool.host.Processors))
	}
	return rate, sure, nil
}

// A stint is what one worker did in a trial.
type stint struct {
	from, to time.Time
	done     int64   // operations
	best     float64 // the worker's highest rate of a call in any trial, in operations per second
}

// rateOf returns the operations of all workers over the time from when the first one began until
// the last one ended, in operations per second. So workers that take turns on a processor count
// once.
func rateOf(stints []stint) float64 {
	from, to, done := stints[0].from, stints[0].to, int64(0)
	for _, s := range stints {
		if s.from.Before(from) {
			from = s.from
		}
		if s.to.After(to) {
			to = s.to
		}
		done += s.done
	}
	return float64(done) / to.Sub(from).Seconds()
}

// undisturbed is the least share of the attainable rate that a trial has if nothing else takes the
// processors.
const undisturbed = 0.85

// attainable is the rate of workers that each always compute as in their best call, on so many
// processors.
func attainable(stints []stint, processors int) float64 {
	sum := 0.0
	for _, s := range stints {
		sum += s.best
	}
	return sum * min(1, float64(processors)/float64(len(stints)))
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
