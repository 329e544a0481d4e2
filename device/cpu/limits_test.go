package cpu

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

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
