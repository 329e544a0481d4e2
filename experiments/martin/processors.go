package martin

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// fasterFrom is section 2.1's claim on the number of processors.
const fasterFrom = "a parallel scan is faster from 3 processors on (section 2.1)"

// processorCounts returns the numbers of workers, the paper's processors, that scan on a CPU.
func processorCounts(on study.Target) []int {
	all := max(on.Workers, 2) // 0: unknown
	return slices.DeleteFunc([]int{1, 2, 3, 4, 8, 16}, func(n int) bool { return n > all })
}

// processorLabel is the label of a scan alone by n workers.
func processorLabel(n int) string { return "scan alone, " + quantity.Plural(n, "processor") }

// processorWays returns the recurrence alone, without gates and products, by each number of workers
// that divide time among themselves. One worker scans serially.
func processorWays(on study.Target) (all []grid.Spec) {
	for _, n := range processorCounts(on) {
		all = append(all, study.Spec(processorLabel(n), "scan", knob.Params{"inputbatch": 0, "alone": 1, "scanworkers": n, "scansplit": n}))
	}
	return all
}

// overProcessors adds the time of the recurrence alone by each number of processors, and when it is
// faster than by one.
func overProcessors(rep *study.Report, recs []record.Record, on study.Target) {
	t := &table.Table{Title: "The recurrence alone: times as fast with p processors as with one, and by the model of section 2.1 in brackets",
		Columns: []table.Column{{Name: "n", Key: "hidden", Right: true}, {Name: "T", Key: "steps", Right: true}, {Name: "p=1", Key: "one_s", Right: true}}}
	var counts []int
	for _, n := range []int{2, 3, 4, 8, 16} {
		if slices.ContainsFunc(recs, func(r record.Record) bool { return r.Impl.Label == processorLabel(n) }) {
			counts = append(counts, n)
			t.Columns = append(t.Columns, table.Column{Name: fmt.Sprintf("p=%d", n), Key: fmt.Sprintf("speedup_%d", n), Right: true})
		}
	}
	longest := 0
	gains := map[int][]quantity.Interval{}
	for _, p := range pick.Points(recs) {
		here := func(q record.Point) bool { return q == p }
		one := pick.Find(recs, processorLabel(1), here)
		if one == nil {
			continue
		}
		longest = max(longest, p.Steps)
		row := []table.Cell{table.Int(p.Hidden), table.Int(p.Steps), table.Time(one)}
		for _, n := range counts {
			r := pick.Find(recs, processorLabel(n), here)
			if r == nil {
				row = append(row, show.Missing())
				continue
			}
			v := estimate.MoreEvents(r, one)
			gains[n] = append(gains[n], v)
			predicted := model.SerialScan(1, p.Steps) / model.ParallelScan(1, p.Steps, n)
			row = append(row, table.Number(v.Value, fmt.Sprintf("%.2f (%.2f)", v.Value, predicted)))
		}
		t.Rows = append(t.Rows, row)
	}
	if len(gains) == 0 {
		study.NotMeasured(rep, fasterFrom, "the recurrence alone by several numbers of processors")
		return
	}
	rep.Tables = append(rep.Tables, t)
	least := quantity.Interval{Value: math.Inf(1)}
	here := ""
	for _, n := range counts {
		v := meanGain(gains[n])
		if here != "" {
			here += ", "
		}
		if here += fmt.Sprintf("%s with %d", estimate.Of(v).Times(), n); n >= 3 && v.Value < least.Value {
			least = v
		}
	}
	here += fmt.Sprintf(" processors (geometric means of %d points)", len(gains[counts[0]]))
	rep.Findings = append(rep.Findings, fmt.Sprintf("The recurrence alone, times as fast as by one processor: %s. By section 2.1, 6n(T/p + lg p) operations stand against 2nT. The model counts neither memory nor starting workers; by it, a scan is faster from %d processors on at %d steps.", here, model.ScanCrossover(longest), longest))
	if math.IsInf(least.Value, 1) {
		study.NotMeasured(rep, fasterFrom, "3 processors")
		return
	}
	study.ClaimAbove(rep, on, fasterFrom, here, least, 1, "")
}

// meanGain is the geometric mean of values, between those of their limits.
func meanGain(all []quantity.Interval) quantity.Interval {
	var values, lows, highs []float64
	for _, v := range all {
		values, lows, highs = append(values, v.Value), append(lows, v.Lo), append(highs, v.Hi)
	}
	return quantity.Interval{Value: estimate.Geomean(values), Lo: estimate.Geomean(lows), Hi: estimate.Geomean(highs)}
}

// Section 2.3: below these sizes, a GPU's scan does not reach its peak.
const (
	peakSteps    = 2000 // several thousand
	peakChannels = 32
)

// kernelOnGPU adds what a scan on a GPU gains over one kernel that loops over time and over operations step
// by step, and where it is near its peak.
func kernelOnGPU(r *study.Report, recs []record.Record, on study.Target, overSerial, overSteps, overGraphs []float64) {
	study.NotMeasured(r, fasterFrom, "other numbers of processors: a GPU's scan runs as many threads as its sizes give")
	if n := len(overSerial); n > 0 {
		r.Findings = append(r.Findings, fmt.Sprintf("A scan is %s× as fast as one kernel with a thread per channel that loops over time (geometric mean of %d points), between %s× and %s×.", quantity.Ratio(estimate.Geomean(overSerial)), n, quantity.Ratio(slices.Min(overSerial)), quantity.Ratio(slices.Max(overSerial))))
	}
	for _, steps := range []struct {
		times []float64
		by    string
	}{{overGraphs, "the same launches replayed as a graph"}, {overSteps, "launches at each step"}} {
		if len(steps.times) > 0 {
			r.Findings = append(r.Findings, fmt.Sprintf("A scan is %s× as fast as %s (geometric mean of %d points), between %s× and %s×.", quantity.Ratio(estimate.Geomean(steps.times)), steps.by, len(steps.times), quantity.Ratio(slices.Min(steps.times)), quantity.Ratio(slices.Max(steps.times))))
		}
	}
	var peak, small *record.Record // the fastest of all, and of small sizes
	rate := func(r *record.Record) float64 { return float64(r.Point.Hidden) * estimate.Events(r) }
	for _, p := range pick.Points(recs) {
		one := pick.Find(recs, "scan", func(q record.Point) bool { return q == p })
		if one == nil {
			continue
		}
		if peak == nil || rate(one) > rate(peak) {
			peak = one
		}
		if (p.Steps < peakSteps || p.Hidden < peakChannels) && (small == nil || rate(one) > rate(small)) {
			small = one
		}
	}
	const claim = "a scan reaches its peak only from several thousand steps and 32 channels on (section 2.3)"
	if small == nil || peak == small {
		study.NotMeasured(r, claim, "sizes on both sides")
		return
	}
	v, scale := estimate.MoreEvents(peak, small), float64(peak.Point.Hidden)/float64(small.Point.Hidden)
	v = quantity.Interval{Value: scale * v.Value, Lo: scale * v.Lo, Hi: scale * v.Hi}
	study.ClaimAbove(r, on, claim, fmt.Sprintf("%s of the peak at %d steps and %d channels, the best of fewer than %d steps or %d channels",
		show.Share(1/v.Value), small.Point.Steps, small.Point.Hidden, peakSteps, peakChannels), v, 1/estimate.Almost, "")
}
