package danieli

import (
	"fmt"
	"math"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
)

// A prediction says at how many channels Newton's method and the serial kernel are equally fast. The
// kernel takes the latency of its chain at each step, however many channels there are. Newton's method
// moves bytes in each iteration, and its launches take time of their own.
type prediction struct {
	latency    float64 // s a step: the least of the serial kernel
	bytes      float64 // of a channel, step and iteration, the input's product included
	iterations float64 // the median
	start      float64 // s of all launches, as a graph
	rate       float64 // bytes/s
	source     string  // of the rate
}

// predict takes the rate of a copy and the time of a launch from the device, and the rest from the records
// of all. Without a copy's rate it takes the highest of Newton's method. It is false where records lack
// either technique.
func predict(all []race, on study.Target) (m prediction, known bool) {
	m.latency = math.Inf(1)
	var bytes, took, launches []float64
	own := 0.0
	for _, x := range all {
		if x.serial != nil {
			m.latency = min(m.latency, x.serial.Seconds()/float64(x.Steps))
		}
		n := float64(iterations(x.newton))
		if n == 0 {
			continue
		}
		moved := float64(x.newton.Work.Bytes)
		bytes, took = append(bytes, moved/n/float64(x.channels()*x.Steps)), append(took, n)
		own = max(own, moved/x.newton.Seconds())
		count := 0
		for _, k := range x.newton.Kernels {
			count += k.Launches
		}
		launches = append(launches, float64(count))
	}
	if len(bytes) == 0 || math.IsInf(m.latency, 0) {
		return m, false
	}
	m.bytes, m.iterations, m.start = estimate.Middle(bytes), estimate.Middle(took), on.InGraph*estimate.Middle(launches)
	m.rate, m.source = on.Copy, "a copy's rate"
	if m.rate == 0 {
		m.rate, m.source = own, "newton's highest rate"
	}
	return m, true
}

// channels is where both are equally fast; 0: Newton's method is slower however few there are.
func (m prediction) channels(steps float64) float64 {
	return max(0, m.latency*steps-m.start) * m.rate / (m.iterations * m.bytes * steps)
}

// String spells the equation of the channels.
func (m prediction) String() string {
	s := fmt.Sprintf("at %s, %s × %s / (%.3g × %.0f bytes) = %.0f channels", m.source, quantity.SI(m.latency, "s"), quantity.SI(m.rate, "B/s"), m.iterations, m.bytes, m.latency*m.rate/(m.iterations*m.bytes))
	if m.start > 0 {
		s += fmt.Sprintf(", and fewer where launches, %s in all, count", quantity.SI(m.start, "s"))
	}
	return s
}

// right counts the layers with a clear winner at which m names it.
func (m prediction) right(all []race) (v estimate.Votes) {
	for _, x := range all {
		if a := x.lead(); a != estimate.Open {
			v.Add(estimate.AnswerOf((a == estimate.Yes) == (float64(x.channels()) < m.channels(float64(x.Steps)))))
		}
	}
	return v
}

// guides returns the predicted line from the fewest steps to the most, as far as it is near the layers.
func (m prediction) guides(all []race) (line []plots.Guide) {
	first, last, fewest, most := math.Inf(1), 0.0, math.Inf(1), 0.0
	for _, x := range all {
		first, last = min(first, float64(x.Steps)), max(last, float64(x.Steps))
		fewest, most = min(fewest, float64(x.channels())), max(most, float64(x.channels()))
	}
	const beyond = 4
	pieces := 1 // of a line that is level
	if m.start > 0 {
		pieces = 8
	}
	place := func(i int) float64 { return first * math.Pow(last/first, float64(i)/float64(pieces)) }
	for i := range pieces {
		g := plots.Guide{X0: place(i), X1: place(i + 1)}
		if g.Y0, g.Y1 = m.channels(g.X0), m.channels(g.X1); m.start == 0 {
			g.Y1 = g.Y0 // to the last bit, for its label
		}
		if near := fewest / beyond; min(g.Y0, g.Y1) < near || max(g.Y0, g.Y1) > most*beyond || first == last {
			continue
		}
		line = append(line, g)
	}
	if n := len(line); n > 0 {
		line[n/2].Label = "predicted, at " + m.source
	}
	return line
}
