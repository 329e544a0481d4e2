package cpu

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"rnnbench/device/cpu/simd"
)

// TestPeakIsTheSumOfBestTrials: a peak is the sum of each worker's fastest trial, even if the
// worker began late. All of the trial is timed.
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

// TestPeakOfBF16: bf16 has a peak of its own exactly if the kernels multiply it in hardware.
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

// TestTogetherTimesFromFirstToLast: together times from the start of the first worker to the end of
// the last, also with more workers than processors. So a rate never exceeds the work that was done.
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
