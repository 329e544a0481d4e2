package oracle

import (
	"math"
	"slices"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// wrongValues are values that no right answer has.
var wrongValues = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e30, -1e30}

// TestDeviationIsNoNumber: a deviation that is not a number is the worst, and is not right.
func TestDeviationIsNoNumber(t *testing.T) {
	good := Deviation{Tensor: "good", Error: 0.5, Tolerance: 1}
	for _, bad := range []Deviation{{Error: math.NaN(), Tolerance: 1}, {Error: math.Inf(1), Tolerance: 1}, {Error: 1, Tolerance: math.NaN()}, {Error: math.Inf(1), Tolerance: math.Inf(1)}} {
		if bad.OK() || good.OrWorse(bad) == good || bad.OrWorse(good) == good {
			t.Errorf("%+v counts as right", bad)
		}
	}
}

// TestWrongValuesOfWholeAnswers: no part of an answer may have such a value, whatever the kind of
// cell. Nor may an answer that is given the benefit of the doubt.
func TestWrongValuesOfWholeAnswers(t *testing.T) {
	for i, p := range small() {
		d := rnn.NewData(p, 1, 2, "normal")
		want := Reference(d)
		for k := range want {
			got := slices.Clone(want)
			got[k].Values = slices.Clone(want[k].Values)
			if len(got[k].Values) == 0 {
				continue
			}
			got[k].Values[(i+k)%len(got[k].Values)] = wrongValues[(i+k)%len(wrongValues)]
			got = repeated(d, got)
			if dev, err := Compare(p, got, want); err != nil || dev.OK() {
				t.Errorf("%v: %s: %v, %v", p, want[k].Name, dev, err)
			}
			if k > 0 && k != i%len(want) {
				continue
			}
			if dev, _, err := CompareAgain(d, got); err != nil || dev.OK() {
				t.Errorf("%v: %s, again: %v, %v", p, want[k].Name, dev, err)
			}
		}
	}
}

// repeated is an answer with a row for each sequence of the batch.
func repeated(d *rnn.Data, answer []Tensor) []Tensor {
	out := slices.Clone(answer)
	for i, t := range out {
		if t.PerSequence {
			out[i].Values = rnn.Repeat(t.Values, t.Cols, d.Distinct, d.Problem.Batch)
			out[i].Rows = len(out[i].Values) / t.Cols
		}
	}
	return out
}

// TestWrongValuesOfExpectation: where such values are expected as well, as by a peer's answer or by
// the reference's steps from a run's own states, they are still wrong. Nor do they hide others.
func TestWrongValuesOfExpectation(t *testing.T) {
	for _, v := range wrongValues[:3] {
		var d difference
		d.add(v, v, 3)
		d.add(2, 1, 5)
		if !math.IsInf(d.most, 1) || d.at != 3 || d.scale != 1 {
			t.Errorf("%v: %+v", v, d)
		}
	}
	p := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 5}
	d := rnn.NewData(p, 1, 2, "normal")
	for k := range Reference(d) {
		for _, v := range wrongValues[:3] {
			both := Reference(d)
			both[k].Values[0] = v
			if dev, err := Compare(p, both, both); err != nil || dev.OK() {
				t.Errorf("%s, %v in both: %v, %v", both[k].Name, v, dev, err)
			}
		}
	}
}

// TestSizes: what a measure expects of values is about as large as those of the whole run, whatever
// the ends of the network.
func TestSizes(t *testing.T) {
	defer func(old float64) { measureFLOPs = old }(measureFLOPs)
	measureFLOPs = 6e6
	for _, p := range small() {
		p.Hidden, p.Steps, p.Batch, p.Lengths = 24, 80, 6, ""
		if p.Resets > 0 || p.Heads > 1 {
			continue
		}
		d := rnn.NewData(p, 1, 3, "normal")
		if shortened(d) == d {
			t.Errorf("%v: the whole run is measured", p)
		}
		for _, w := range Reference(d) {
			e, ok := expect(d, w.Name, 0)
			most := 0.0
			for _, v := range w.Values {
				most = max(most, math.Abs(v))
			}
			// The states before the last step are behind the ends of most transcripts, those of the measure less so.
			vanishes := p.Transcript > 0 && p.Direction != rnn.FromFirst && w.Gradient && w.Rows == d.Distinct
			if !ok || w.PerSequence && (most > farthest/4*e.size || e.size > 8*most && !vanishes) {
				t.Errorf("%v: %s is %v at most, and %v is expected", p, w.Name, most, e.size)
			}
			if e.error > 1e-4 {
				t.Errorf("%v: an honest evaluation of %s is off by %v", p, w.Name, e.error)
			}
		}
	}
}

// TestToleranceOfOverflow: a measure whose values overflow leaves a tolerance that is a number.
func TestToleranceOfOverflow(t *testing.T) {
	p := rnn.Problem{Cell: cell.RNNReLU, Pass: rnn.Train, Input: 9, Hidden: 9, Layers: 1, Batch: 2, Steps: 500, Gain: 400}
	for _, w := range Reference(rnn.NewData(p, 1, 2, "normal")) {
		if tolerance := w.tolerance(p, 0); !(tolerance < 1) {
			t.Errorf("%s: the tolerance is %g", w.Name, tolerance)
		}
	}
}
