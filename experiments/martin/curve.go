package martin

import (
	"math"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/plots/quantity"
)

// A lossCurve is a loss over the seconds of a training, at each record.
type lossCurve struct{ seconds, loss []float64 }

// add appends a record; a loss that is not a number was not evaluated.
func (c *lossCurve) add(seconds, loss float64) {
	if !math.IsNaN(loss) {
		c.seconds, c.loss = append(c.seconds, seconds), append(c.loss, loss)
	}
}

// end is the time of the last record; 0: there is none.
func (c lossCurve) end() float64 {
	if len(c.seconds) == 0 {
		return 0
	}
	return c.seconds[len(c.seconds)-1]
}

// least is the lowest loss; infinite: there is none.
func (c lossCurve) least() float64 {
	best := math.Inf(1)
	for _, v := range c.loss {
		best = min(best, v)
	}
	return best
}

// at is the loss at a time, interpolated linearly between two records; not a number before the first
// record and after the last.
func (c lossCurve) at(seconds float64) float64 {
	i, exact := slices.BinarySearch(c.seconds, seconds)
	switch {
	case exact:
		return c.loss[i]
	case i == 0 || i == len(c.seconds):
		return math.NaN()
	}
	share := (seconds - c.seconds[i-1]) / (c.seconds[i] - c.seconds[i-1])
	return c.loss[i-1] + share*(c.loss[i]-c.loss[i-1])
}

// reaches is the time at which the loss has first fallen to level, interpolated linearly between two
// records; infinite: it has not. If the first record is below level already, early is set: the time
// was that of the record or an earlier one.
func (c lossCurve) reaches(level float64) (seconds float64, early bool) {
	for i, now := range c.loss {
		if now > level {
			continue
		}
		if i == 0 {
			return c.seconds[0], now < level
		}
		before := c.seconds[i-1]
		return before + (c.seconds[i]-before)*(c.loss[i-1]-level)/(c.loss[i-1]-now), false
	}
	return math.Inf(1), false
}

// smooth returns c with the mean of the records of the last twentieth of the whole time at each
// record, which is less noisy.
func (c lossCurve) smooth() lossCurve {
	out := lossCurve{seconds: c.seconds}
	sum, from := 0.0, 0
	for i, v := range c.loss {
		for sum += v; c.seconds[i]-c.seconds[from] > c.end()/20; from++ {
			sum -= c.loss[from]
		}
		out.loss = append(out.loss, sum/float64(i-from+1))
	}
	return out
}

// mean is the mean loss of the records after from until to, in seconds, and their number.
func (c lossCurve) mean(from, to float64) (mean float64, n int) {
	for i, v := range c.loss {
		if c.seconds[i] > from && c.seconds[i] <= to {
			mean, n = mean+v, n+1
		}
	}
	return mean / float64(n), n
}

// noise is the standard deviation of a record's loss: of the distances from the line between its
// neighbours, robustly. It counts the curve's bends as noise, so it errs on the wide side.
func (c lossCurve) noise() float64 {
	var far []float64
	for i := 1; i+1 < len(c.loss); i++ {
		share := (c.seconds[i] - c.seconds[i-1]) / (c.seconds[i+1] - c.seconds[i-1])
		far = append(far, math.Abs(c.loss[i]-(1-share)*c.loss[i-1]-share*c.loss[i+1]))
	}
	if far == nil {
		return math.NaN()
	}
	return 1.4826 * estimate.Middle(far) / math.Sqrt(1.5) // from a median to a deviation; two neighbours add half of its square
}

// plusMinus is value with an interval of two standard deviations; without one if that is unknown.
func plusMinus(value, deviation float64) quantity.Interval {
	if math.IsNaN(deviation) {
		deviation = 0
	}
	return quantity.Interval{Value: value, Lo: value - 2*deviation, Hi: value + 2*deviation}
}

// last is the mean loss of the last quarter of a training, with an interval.
func (c lossCurve) last() quantity.Interval {
	mean, n := c.mean(0.75*c.end(), c.end())
	return plusMinus(mean, c.noise()/math.Sqrt(float64(n)))
}

// falls is by how much the mean loss of the last quarter is below that of the quarter before.
func (c lossCurve) falls() quantity.Interval {
	before, n := c.mean(0.5*c.end(), 0.75*c.end())
	after, m := c.mean(0.75*c.end(), c.end())
	return plusMinus(before-after, c.noise()*math.Sqrt(1/float64(n)+1/float64(m)))
}

// lossBelow is by how much a's value is below b's, where both have intervals.
func lossBelow(a, b quantity.Interval) quantity.Interval {
	return plusMinus(b.Value-a.Value, math.Hypot(a.Hi-a.Value, b.Hi-b.Value)/2)
}
