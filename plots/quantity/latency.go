package quantity

import "rnnbench/record"

// latencies returns the measures of single calls. The interval of the median reaches to the 99th
// percentile: it shows the spread of calls, not the confidence of the median.
func latencies() []Measure {
	of := func(name, title, key string, pick func(l *record.Latency) Interval) Measure {
		return Measure{Name: name, Title: title, Unit: "s", Key: key, Less: true, Scaled: true, of: func(r, _ *record.Record) (Interval, bool) {
			if r.Latency == nil || r.Status != record.OK {
				return Interval{}, false
			}
			v := pick(r.Latency)
			return v, v.Value > 0
		}}
	}
	same := func(v float64) Interval { return Interval{v, v, v} }
	latency := of("latency", "latency of a call", "latency_p50_s", func(l *record.Latency) Interval { return Interval{l.P50, l.P50, l.P99} })
	latency.Bars = "Marks are the medians of single calls (p50). Bars reach to the 99th percentile (p99), with a tick at the 90th (p90)."
	latency.Ticks = func(r *record.Record) []float64 { return []float64{r.Latency.P90} }
	return []Measure{
		latency,
		of("p90", "90th percentile of calls", "latency_p90_s", func(l *record.Latency) Interval { return same(l.P90) }),
		of("p99", "99th percentile of calls", "latency_p99_s", func(l *record.Latency) Interval { return same(l.P99) }),
		of("slowest", "slowest call", "latency_max_s", func(l *record.Latency) Interval { return same(l.Max) }),
		of("call-run", "run of a call without transfers", "latency_run_p50_s", func(l *record.Latency) Interval { return same(l.Run.P50) }),
	}
}
