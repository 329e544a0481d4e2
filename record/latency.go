package record

import (
	"slices"
	"time"
)

// Latency describes the times of calls, each timed alone. A call begins before its input is written
// and ends once its output is read. Times are in seconds, over all calls of all rounds.
type Latency struct {
	Calls int     `json:"calls"` // timed calls
	P50   float64 `json:"p50_s"`
	P90   float64 `json:"p90_s"`
	P99   float64 `json:"p99_s"`
	Max   float64 `json:"max_s"`

	Run Quantiles `json:"run"` // without writing and reading: by the device's own clock, if it has one

	Percentiles []float64 `json:"percentiles_s"` // 0, 1, … 100
}

// Quantiles holds some quantiles of a distribution, in seconds.
type Quantiles struct {
	P50 float64 `json:"p50_s"`
	P90 float64 `json:"p90_s"`
	P99 float64 `json:"p99_s"`
	Max float64 `json:"max_s"`
}

// NewLatency summarises the times of calls and of their runs. There must be at least one call.
func NewLatency(wall, run []time.Duration) *Latency {
	l := &Latency{Calls: len(wall), Run: quantilesOf(run), Percentiles: make([]float64, 101)}
	sorted := secondsOf(wall)
	for i := range l.Percentiles {
		l.Percentiles[i] = quantile(sorted, float64(i)/100)
	}
	l.P50, l.P90, l.P99, l.Max = l.Percentiles[50], l.Percentiles[90], l.Percentiles[99], l.Percentiles[100]
	return l
}

// MedianOf is the median of times in seconds. times must not be empty.
func MedianOf(times []time.Duration) float64 { return quantile(secondsOf(times), 0.5) }

func quantilesOf(times []time.Duration) Quantiles {
	sorted := secondsOf(times)
	return Quantiles{quantile(sorted, 0.5), quantile(sorted, 0.9), quantile(sorted, 0.99), sorted[len(sorted)-1]}
}

// secondsOf returns times in seconds, sorted.
func secondsOf(times []time.Duration) []float64 {
	out := make([]float64, len(times))
	for i, t := range times {
		out[i] = t.Seconds()
	}
	slices.Sort(out)
	return out
}
