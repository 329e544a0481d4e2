package quantity

import (
	"strconv"

	"rnnbench/record"
)

// progressAxes are the axes along which the records of one training lie in order. Axes does not
// list them; AxisOf finds them by name.
var progressAxes = []struct {
	name, title string
	value       func(t *record.Training) float64
}{
	{"wall", "seconds of training", func(t *record.Training) float64 { return t.Wall }},
	{"iterations", "iterations", func(t *record.Training) float64 { return float64(t.Iterations) }},
	{"frames", "frames: steps of all sequences", func(t *record.Training) float64 { return float64(t.Frames) }},
}

func progressAxis(name string) (Axis, bool) {
	for _, a := range progressAxes {
		if a.name != name {
			continue
		}
		return Axis{Name: name, Title: a.title, Numeric: true, Progress: true,
			text: func(r *record.Record) string {
				if r.Training == nil {
					return "none"
				}
				return strconv.FormatFloat(a.value(r.Training), 'g', -1, 64)
			},
			number: func(r *record.Record) (float64, bool) {
				if r.Training == nil {
					return 0, false
				}
				return a.value(r.Training), true
			}}, true
	}
	return Axis{}, false
}

// training returns a measure of a network's training, such as a loss: less is better.
func training(name, title, unit string, of func(t *record.Training) (float64, bool)) Measure {
	return Measure{Name: name, Title: title, Unit: unit, Key: key(name), Less: true, of: func(r, _ *record.Record) (Interval, bool) {
		if r.Training == nil || r.Status != record.OK {
			return Interval{}, false
		}
		v, ok := of(r.Training)
		return Interval{v, v, v}, ok
	}}
}

func key(name string) string {
	switch name {
	case "held-out":
		return "held_out_loss"
	case "label-errors":
		return "pct_label_errors"
	}
	return name
}

// top returns the measure of held-out steps whose class is among the n most likely, in percent.
func top(name, n string, of func(s *record.Score) float64) Measure {
	title := "held-out steps whose class is among the " + n + " most likely"
	if n == "1" {
		title = "held-out steps whose class is the most likely"
	}
	m := training(name, title, "%", func(t *record.Training) (float64, bool) {
		if t.HeldOut == nil || t.HeldOut.LabelErrors != nil {
			return 0, false
		}
		return 100 * of(t.HeldOut), true
	})
	m.Less = false
	return m
}
