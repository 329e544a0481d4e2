package record

import (
	"math"
	"testing"
	"time"
)

// TestLatency checks the percentiles of calls that take 1 to 1000 ms.
func TestLatency(t *testing.T) {
	var wall, run []time.Duration
	for i := range 1000 {
		ms := time.Duration((i*617)%1000+1) * time.Millisecond // each once, out of order
		wall, run = append(wall, ms), append(run, ms/2)
	}
	l := NewLatency(wall, run)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"p50", l.P50, 0.5005}, {"p90", l.P90, 0.9001}, {"p99", l.P99, 0.99001}, {"max", l.Max, 1}, {"min", l.Percentiles[0], 0.001},
		{"p25", l.Percentiles[25], 0.25075}, {"p50 of runs", l.Run.P50, 0.25025}, {"p90 of runs", l.Run.P90, 0.45005}, {"p99 of runs", l.Run.P99, 0.495005}, {"max of runs", l.Run.Max, 0.5}, {"median", MedianOf(wall), 0.5005},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", c.name, c.got, c.want)
		}
	}
	if l.Calls != 1000 || len(l.Percentiles) != 101 {
		t.Errorf("%+v", l)
	}
	if l = NewLatency(wall[:1], run[:1]); l.P50 != l.Max || l.P50 != wall[0].Seconds() || l.Run.P99 != run[0].Seconds() {
		t.Errorf("one call: %+v", l)
	}
}
