package study

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/experiments/pick"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A Quality says how well records were measured.
type Quality struct {
	Records             int     // with a time
	Least, Median, Most int     // rounds of a record
	Throttled           int     // records during which the device's clock was held down
	Noisy               int     // records whose interval did not reach the target
	Half, Widest        float64 // half-widths of intervals: in the median record, and the widest; 0.05: 5 %
	Unknown             int     // records of too few rounds for an interval

	Sittings Sittings

	Slow, Usual float64 // clock of the device in hertz: the lowest, and the median of all samples; 0: unknown
}

// QualityOf returns the quality of the newest records that have a time. It leaves out trainings,
// which have no rounds.
func QualityOf(recs []record.Record) Quality {
	q := Quality{Sittings: sittingsOf(recs)}
	var rounds []int
	var halves, clocks []float64
	for _, r := range quantity.Latest(recs) {
		if r.Status != record.OK || r.Stats == nil || r.Training != nil {
			continue
		}
		rounds = append(rounds, r.Stats.N)
		if slices.Contains(r.Warnings, record.WarnThrottled) {
			q.Throttled++
		}
		if slices.Contains(r.Warnings, record.WarnNoisy) {
			q.Noisy++
		}
		if r.Samples != nil {
			clocks = append(clocks, r.Samples.Clock...)
		}
		if w, ok := r.Stats.HalfWidth(); ok {
			halves = append(halves, w)
		} else {
			q.Unknown++
		}
	}
	if q.Records = len(rounds); q.Records == 0 {
		return q
	}
	slices.Sort(rounds)
	slices.Sort(halves)
	slices.Sort(clocks)
	if n := len(clocks); n > 0 {
		q.Slow, q.Usual = clocks[0], clocks[n/2]
	}
	q.Least, q.Median, q.Most = rounds[0], rounds[len(rounds)/2], rounds[len(rounds)-1]
	if n := len(halves); n > 0 {
		q.Half, q.Widest = halves[n/2], halves[n-1]
	}
	return q
}

// Rounds spells the number of rounds: "6", or "2 to 6, median 6".
func (q Quality) Rounds() string {
	if q.Records == 0 {
		return ""
	}
	if q.Least == q.Most {
		return fmt.Sprint(q.Median)
	}
	return fmt.Sprintf("%d to %d, median %d", q.Least, q.Most, q.Median)
}

// String is the quality in sentences; empty where there is no record.
func (q Quality) String() string {
	if q.Records == 0 {
		return ""
	}
	s := fmt.Sprintf("Measured %v: %s; rounds: %s.", q.Sittings, quantity.Plural(q.Records, "record"), q.Rounds())
	if q.Unknown < q.Records {
		s += fmt.Sprintf(" Half the width of a median's interval is %s in the median record, and %s at most.", quantity.Half(q.Half), quantity.Half(q.Widest))
	}
	if q.Noisy > 0 {
		s += fmt.Sprintf(" %d of %d are noisy: their intervals are wider than was asked for.", q.Noisy, q.Records)
	}
	if q.Unknown > 0 {
		s += fmt.Sprintf(" %d of %d have too few rounds for an interval.", q.Unknown, q.Records)
	}
	if q.Usual > 0 {
		s += fmt.Sprintf(" After samples, the clock is %s in the median and %s at least.", quantity.SI(q.Usual, "Hz"), quantity.SI(q.Slow, "Hz"))
	}
	switch {
	case q.Throttled == 0 && q.Usual > 0: // whatever reads the clock also reads why it is held down
		s += " It was throttled during no record."
	case q.Throttled > 0:
		s += " " + q.throttling()
	}
	return s
}

// throttling says how many records were throttled; empty if none was.
func (q Quality) throttling() string {
	if q.Throttled == 0 {
		return ""
	}
	return fmt.Sprintf("The clock was throttled during %d of %d records (%.0f %%).", q.Throttled, q.Records, 100*float64(q.Throttled)/float64(q.Records))
}

// A Repeat says how far two runs of one experiment are from each other.
type Repeat struct {
	Pairs        int     // records of both
	Typical, Far float64 // median and largest difference of medians; 0.05: 5 %
}

// RepeatOf compares the times of two runs.
func RepeatOf(a, b []record.Record) Repeat {
	var r Repeat
	var far []float64
	for _, x := range quantity.Latest(a) {
		if x.Seconds() <= 0 || x.Training != nil {
			continue
		}
		if y := pick.Find(b, x.Impl.Label, func(p record.Point) bool { return p == x.Point }); y != nil && y.Seconds() > 0 && y.Training == nil {
			far = append(far, math.Expm1(math.Abs(math.Log(x.Seconds()/y.Seconds()))))
		}
	}
	slices.Sort(far)
	if r.Pairs = len(far); r.Pairs > 0 {
		r.Typical, r.Far = far[(r.Pairs-1)/2], far[r.Pairs-1]
	}
	return r
}

// String is the difference in a phrase; empty where there is no pair.
func (r Repeat) String() string {
	if r.Pairs == 0 {
		return ""
	}
	return fmt.Sprintf("two runs differ by %.1f %% (median of %d), %.1f %% at most", 100*r.Typical, r.Pairs, 100*r.Far)
}
