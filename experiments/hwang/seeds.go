package hwang

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"rnnbench/experiments/estimate"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// wordSeeds is how many times each network of hwang-train learns, each time from another seed. The loss
// is a mean over them; speeds and curves are of the first.
const wordSeeds = 3

// repeats returns the trainings of t from further seeds, for their loss alone.
func repeats(t study.Training) (all []study.Training) {
	for n := 1; n < wordSeeds; n++ {
		more := t
		more.Plan.Repeat, more.Plan.Beside = n, false
		more.Specs = slices.Clone(t.Specs)
		for i := range more.Specs {
			more.Specs[i].Label += fmt.Sprintf(", repeat %d", n)
		}
		all = append(all, more)
	}
	return all
}

// seedsOf returns the curves of a network, a seed each, the first one first.
func (w wordRuns) seedsOf(p record.Point) [][]*record.Record {
	list := [][]*record.Record{curve(w.learnt, p)}
	for n := 1; n < wordSeeds; n++ {
		some := slices.DeleteFunc(slices.Clone(w.repeated), func(r record.Record) bool { return r.Training.Repeat != n })
		if c := curve(some, p); len(c) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// lowest is the lowest held-out loss of a curve within so many words; NaN if none was evaluated.
func lowest(curve []*record.Record, words int64) float64 {
	loss := math.NaN()
	for _, r := range curve {
		if h := r.Training.HeldOut; h != nil && r.Training.Frames <= words && !(loss <= h.Loss) {
			loss = h.Loss
		}
	}
	return loss
}

// meanOver is the mean of values from several seeds, with Student's interval of 95 %. Of one value, the
// interval is unknown.
func meanOver(values []float64) estimate.Estimate {
	if len(values) == 0 {
		return estimate.Estimate{At: math.NaN(), Lo: 0, Hi: estimate.Inf}
	}
	mean := stat.Mean(values, nil)
	if len(values) == 1 {
		return estimate.Estimate{At: mean, Lo: 0, Hi: estimate.Inf}
	}
	n := float64(len(values))
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * stat.StdDev(values, nil) / math.Sqrt(n)
	return estimate.Estimate{At: mean, Lo: mean - half, Hi: mean + half}
}

// lossCell is the cell of the lowest held-out loss.
func (s streamsRun) lossCell() table.Cell {
	if s.seeds < 2 {
		return show.Number(s.loss, "%.3f")
	}
	return table.Number(s.mean.At, s.mean.Text("%.3f", ""))
}

// overSeeds says which of list learns most within words, as means over seeds; "" unless each learnt from
// several.
func overSeeds(list []streamsRun, words int64, name string) string {
	best, worst, seeds := list[0], list[0], math.MaxInt
	for _, s := range list {
		seeds = min(seeds, s.seeds)
		if s.mean.At < best.mean.At {
			best = s
		}
		if s.mean.At > worst.mean.At {
			worst = s
		}
	}
	if seeds < 2 {
		return ""
	}
	told := "the intervals overlap, so which learns more cannot be told"
	if best.mean.Hi < worst.mean.Lo {
		told = fmt.Sprintf("N = %d clearly learns more", best.point.Batch)
	}
	return fmt.Sprintf("%s: within %s words, lowest held-out losses, means over %d seeds, range from %s nats with N = %d to %s with N = %d; %s",
		name, quantity.SI(float64(words), ""), seeds, best.mean.Text("%.3f", ""), best.point.Batch, worst.mean.Text("%.3f", ""), worst.point.Batch, told)
}
