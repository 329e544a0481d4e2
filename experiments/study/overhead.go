package study

import (
	"fmt"
	"math"

	"rnnbench/experiments/estimate"
	"rnnbench/record"
)

// The target: the most that whole training may take beyond forward and backward alone, in percent.
const (
	overheadGPU = 10
	overheadCPU = 5
)

// An Overhead compares an iteration with forward and backward alone, embedding and output layer
// included. Both were timed in turns.
type Overhead struct {
	Ratio float64 // of an iteration over a pass: median over the records; NaN: unknown
	least float64 // the least iteration over the least pass of all records
	Pass  float64 // seconds: median over the records

	// unsure is how far the median of another training may lie to either side: half of the notch
	// of a box plot (McGill and others 1978).
	unsure float64
}

// OverheadOf returns the overhead of a network's records.
func OverheadOf(recs []*record.Record) Overhead {
	var ratios, passes []float64
	iteration, pass := math.Inf(1), math.Inf(1)
	for _, r := range recs {
		if r.Training == nil || r.Training.Beside == nil {
			continue
		}
		b := r.Training.Beside
		ratios, passes = append(ratios, b.Ratio), append(passes, b.Pass)
		iteration, pass = min(iteration, b.LeastIteration), min(pass, b.LeastPass)
	}
	o := Overhead{Ratio: estimate.Middle(ratios), least: iteration / pass, Pass: estimate.Middle(passes)}
	if n := len(ratios); n > 0 { // which middle has sorted
		o.unsure = 1.57 * (ratios[n*3/4] - ratios[n/4]) / math.Sqrt(float64(n))
	}
	return o
}

// Known reports whether it was measured.
func (o Overhead) Known() bool { return !math.IsNaN(o.Ratio) }

// Percent is how much longer an iteration takes.
func (o Overhead) Percent() float64 { return 100 * (o.Ratio - 1) }

// OverheadSays compares the overheads of networks of some name with the target; "": none is known.
func (t Target) OverheadSays(name string, all []Overhead) string {
	low, high, least, most := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	unsure := 0.0 // of the network that takes most
	for _, o := range all {
		if !o.Known() {
			continue
		}
		if o.Percent() > high {
			high, unsure = o.Percent(), 100*o.unsure
		}
		low = min(low, o.Percent())
		least, most = min(least, 100*(o.least-1)), max(most, 100*(o.least-1))
	}
	if high < low {
		return ""
	}
	return fmt.Sprintf("%s: timed in turns, an iteration takes %s more than forward and backward alone, or by the shortest times %s. %s",
		name, percents(low, high), percents(least, most), t.meets(high, unsure))
}

// percents spells a range of percentages.
func percents(low, high float64) string {
	least, most := fmt.Sprintf("%.1f", low), fmt.Sprintf("%.1f", high)
	if least == most {
		return least + " %"
	}
	return least + " to " + most + " %"
}

// meets says whether an overhead in percent, give or take unsure, meets the target.
func (t Target) meets(percent, unsure float64) string {
	target, device := overheadCPU, "CPU"
	if t.GPU {
		target, device = overheadGPU, "GPU"
	}
	is := "it is met."
	switch {
	case t.Reduced:
		is = "it applies to the full size alone."
	case math.Abs(percent-float64(target)) <= unsure:
		is = "records differ too much to tell whether it is met."
	case percent > float64(target):
		is = "it is missed."
	}
	return fmt.Sprintf("rnnbench's target on a %s is at most %d %%: %s", device, target, is)
}
