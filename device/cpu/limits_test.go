package cpu

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"rnnbench/device/cpu/simd"
)

// TestPeakIsTheSumOfBestTrials holds that a peak adds up what each worker did in its fastest trial, however late it
// began, and that it is timed around all of that.
func TestPeakIsTheSumOfBestTrials(t *testing.T) {
	d, err := Open(Options{Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var mu sync.Mutex
	var trials []float64 // operations per second
	peak, err := d.peak(func(n int) int64 {
		start := time.Now()
		for time.Since(start) < 50*time.Microsecond {
		}
		mu.Lock()
		trials = append(trials, float64(n)/time.Since(start).Seconds())
		mu.Unlock()
		return int64(n)
	})
	if err != nil {
		t.Fatal(err)
	}
	if most := slices.Max(trials); len(trials) != 3*limitTrials || !(peak > 0) || peak > 3*most*1.01 {
		t.Errorf("a peak of %g after %d trials, the best of which did %g", peak, len(trials), most)
	}
}

// TestPeakOfBF16 wants a peak of its own for bf16 where the kernels multiply it, and no other.
func TestPeakOfBF16(t *testing.T) {
	for l := simd.Generic; l <= simd.Detect(); l++ {
		d, err := Open(Options{Threads: 1, Level: &l})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		limits, err := d.peaks()
		if err != nil {
			t.Fatal(err)
		}
		if want := l >= simd.AVX512BF16; !(limits.FLOPS > 0) || want != (len(limits.More) == 1 && limits.More[0].Name == "bf16 products" && limits.More[0].Value > 0) {
			t.Errorf("%v: %+v", l, limits)
		}
		half, err := d.half()
		if err != nil || (half >= 1) != (l >= simd.AVX512BF16) {
			t.Errorf("%v: bf16 is %g times as fast, %v", l, half, err)
		}
	}
}

// TestTogetherTimesFromFirstToLast holds that what workers do together is timed from the first to the
// last, where there are more of them than processors as well: a rate is never
// more than was done.
func TestTogetherTimesFromFirstToLast(t *testing.T) {
	d, err := Open(Options{Threads: 4 * runtime.NumCPU()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	from, to := make([]time.Time, d.workers), make([]time.Time, d.workers)
	for range 20 {
		sec, err := d.together(func(w int) {
			from[w] = time.Now()
			for to[w] = time.Now(); to[w].Sub(from[w]) < 100*time.Microsecond; to[w] = time.Now() {
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if spent := slices.MaxFunc(to, time.Time.Compare).Sub(slices.MinFunc(from, time.Time.Compare)); sec < spent.Seconds() {
			t.Errorf("%v were timed as %g s", spent, sec)
		}
	}
}
