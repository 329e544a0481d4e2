package synthetic

import (
	"time"

	"rnnbench/record"
)

// Calls returns records of one-step calls. Most calls take about the median time, some much longer.
func Calls(hidden, batch []int) []record.Record {
	m := &Machine{}
	var list []record.Record
	for _, h := range hidden {
		for _, b := range batch {
			for i, label := range []string{"naive", "cudnnstyle", "persistent"} {
				p := Point(h, b, 1)
				p.Calls = 4000
				r := m.Record(p, label, 1e-5/float64(1+i), 0.2+0.2*float64(i))
				var wall, run []time.Duration
				for n := range 400 {
					late := 1 + 0.1*m.noise() + 3e-7*float64(n*n*n)/400
					t := r.Stats.Median * 1e9 * late
					wall, run = append(wall, time.Duration(t)), append(run, time.Duration(0.8*t))
				}
				r.Latency = record.NewLatency(wall, run)
				list = append(list, r)
			}
		}
	}
	return list
}
