package cpu

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu/simd"
)

// TestRateOfWorkersThatTakeTurns: the operations of all workers count over one interval. So workers
// that take turns on a processor have its rate once, and those that run at once are summed.
func TestRateOfWorkersThatTakeTurns(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for _, c := range []struct {
		what   string
		stints []stint
		want   float64
	}{
		{"one worker", []stint{{from: at(0), to: at(10), done: 1000}}, 1e5},
		{"two at once", []stint{{from: at(0), to: at(10), done: 1000}, {from: at(0), to: at(10), done: 1000}}, 2e5},
		{"two in turn", []stint{{from: at(10), to: at(20), done: 1000}, {from: at(0), to: at(10), done: 1000}}, 1e5},
	} {
		if got := rateOf(c.stints); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("%s: %g operations per second, want %g", c.what, got, c.want)
		}
	}
}

// TestPeakExceedsNoInterval: no peak exceeds the operations that were done over the time from the
// first call to the last, however many workers share a processor.
func TestPeakExceedsNoInterval(t *testing.T) {
	d, err := Open(Options{Threads: 4 * runtime.NumCPU()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var most atomic.Int64
	var turn sync.Mutex // all workers share one processor
	peak, sure, err := d.peak(func(n int) int64 {
		turn.Lock()
		defer turn.Unlock()
		start := time.Now()
		for time.Since(start) < 50*time.Microsecond {
		}
		if rate := int64(float64(n) / time.Since(start).Seconds()); rate > most.Load() {
			most.Store(rate)
		}
		return int64(n)
	})
	if err != nil || !(peak > 0) || peak > 1.001*float64(most.Load()) {
		t.Errorf("a peak of %g (sure: %v), but one call at a time did at most %d; %v", peak, sure, most.Load(), err)
	}
}

// TestAttainable: what workers reach by their own clocks is what they reach together, but for those
// that share processors.
func TestAttainable(t *testing.T) {
	four := []stint{{best: 1e9}, {best: 2e9}, {best: 1e9}, {best: 2e9}}
	for processors, want := range map[int]float64{8: 6e9, 4: 6e9, 2: 3e9, 1: 1.5e9} {
		if got := attainable(four, processors); got != want {
			t.Errorf("%d processors attain %g, want %g", processors, got, want)
		}
	}
}

// TestRepeated: a best trial that no other comes near was probably not undisturbed either.
func TestRepeated(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  bool
	}{{nil, false}, {[]float64{5}, false}, {[]float64{1, 10, 2}, false}, {[]float64{9.5, 1, 10}, true}} {
		if repeated(c.rates) != c.want {
			t.Errorf("%v repeat: %v", c.rates, !c.want)
		}
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
		half, _, err := d.half()
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

// TestRatesOfMemories: a memory that is slower than one farther out is measured again, and is unsure
// if it stays slower. A disturbed trial of another memory does no harm.
func TestRatesOfMemories(t *testing.T) {
	for _, c := range []struct {
		what   string
		trials [][]float64 // of each memory; the last one repeats
		want   []float64
		unsure []string
	}{
		{"in order", [][]float64{{100}, {80}, {20}}, []float64{100, 80, 20}, nil},
		{"disturbed once", [][]float64{{15, 100}, {80}, {20}}, []float64{100, 80, 20}, nil},
		{"as fast, but for noise", [][]float64{{75, 100}, {80}, {20}}, []float64{75, 80, 20}, nil},
		{"disturbed always", [][]float64{{15, 12}, {80}, {20}}, []float64{15, 80, 20}, []string{"L1"}},
		{"slower than the one after the next", [][]float64{{40}, {15}, {50}}, []float64{40, 15, 50}, []string{"L1", "L2"}},
	} {
		all := []device.Memory{{Name: "L1"}, {Name: "L2"}, {Name: "DRAM"}}
		done := make([]int, len(all))
		unsure, err := readRates(all, func(i int) (float64, error) {
			rate := c.trials[i][min(done[i], len(c.trials[i])-1)]
			done[i]++
			return rate, nil
		})
		if err != nil || !slices.Equal(unsure, c.unsure) {
			t.Errorf("%s: %v are unsure, want %v; %v", c.what, unsure, c.unsure, err)
		}
		for i, m := range all {
			if m.PerCore != c.want[i] {
				t.Errorf("%s: %s has the rate %g, want %g", c.what, m.Name, m.PerCore, c.want[i])
			}
		}
	}
}
