package study

import (
	"fmt"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// wrongAnswers says in a sentence which of recs have a wrong answer; it is empty if none has.
func wrongAnswers(recs []*record.Record) string {
	return listed("Wrong answers, which were not timed: ", recs, func(s record.Status) bool { return s == record.Incorrect }, func(r *record.Record) string {
		if v := r.Verify; v != nil && v.Tensor != "" {
			return fmt.Sprintf("%s is off by %.2g of its largest value, and %.2g is allowed", v.Tensor, v.Error, v.Tolerance)
		}
		return ""
	})
}

// impossibleTimes says in a sentence which of recs have impossible times; it is empty if none has.
func impossibleTimes(recs []*record.Record) string {
	return listed("Impossible times, which count for nothing: ", recs, func(s record.Status) bool { return s == record.Impossible }, func(r *record.Record) string {
		if r.Reason != nil {
			return quantity.OneLine(*r.Reason)
		}
		return ""
	})
}

// failures says in a sentence which of recs failed or took too long; it is empty if none did.
func failures(recs []*record.Record) string {
	return listed("Failed or took too long: ", recs, func(s record.Status) bool { return s.Broken() && !s.Wrong() }, func(r *record.Record) string {
		if r.Reason != nil {
			return quantity.OneLine(*r.Reason)
		}
		return ""
	})
}

// listed is a sentence that begins with head and names the records of such a status, each with its
// cause. It names at most six and counts the others; it is empty if there are none.
func listed(head string, recs []*record.Record, such func(record.Status) bool, cause func(*record.Record) string) string {
	const most = 6
	var names []string
	more := 0
	for _, r := range recs {
		switch {
		case !such(r.Status):
		case len(names) == most:
			more++
		default:
			name := quantity.OneLine(fmt.Sprintf("%s at %s", quantity.Label(r), r.Point))
			if c := cause(r); c != "" {
				name += " (" + c + ")"
			}
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	s := head + strings.Join(names, "; ")
	if more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s + "."
}
