package experiments

import (
	"fmt"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/results"
)

// wrongAnswers says in a sentence which of recs have a wrong answer; it is empty if none has. It
// names at most six and counts the others.
func wrongAnswers(recs []*results.Record) string {
	const most = 6
	var names []string
	more := 0
	for _, r := range recs {
		switch {
		case r.Status != results.Incorrect:
		case len(names) == most:
			more++
		default:
			names = append(names, wrongAnswer(r))
		}
	}
	if names == nil {
		return ""
	}
	s := "Wrong answers, which were not timed: " + strings.Join(names, "; ")
	if more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s + "."
}

// wrongAnswer names a record, and how far its worst tensor is off.
func wrongAnswer(r *results.Record) string {
	s := quantity.OneLine(fmt.Sprintf("%s at %s", quantity.Label(r), r.Point))
	if v := r.Verify; v != nil && v.Tensor != "" {
		s += fmt.Sprintf(" (%s is off by %.2g of its largest value, and %.2g is allowed)", v.Tensor, v.Error, v.Tolerance)
	}
	return s
}

// broken returns the newest record of label at a point that ran and has no valid time; nil: none.
func broken(recs []results.Record, label string, at func(results.Point) bool) *results.Record {
	for i := len(recs) - 1; i >= 0; i-- {
		if r := &recs[i]; r.Impl.Label == label && r.Status.Broken() && at(r.Point) {
			return r
		}
	}
	return nil
}
