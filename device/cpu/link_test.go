package cpu

import (
	"runtime"
	"testing"
)

// TestLink: the measured link of replicas has plausible values: more than a megabyte a second, and
// less than a second.
func TestLink(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	for _, threads := range []int{1, 2} {
		d, err := Open(Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		l, err := d.link()
		if one := threads == 1; err != nil || one != (l.Rate == 0) || !one && (l.Rate < 1e6 || l.Seconds <= 0 || l.Seconds > 1) {
			t.Errorf("%d workers: %+v, %v", threads, l, err)
		}
		t.Logf("%d workers: %.3g GB/s, %.3g µs", threads, l.Rate/1e9, l.Seconds*1e6)
		d.Close()
	}
}
