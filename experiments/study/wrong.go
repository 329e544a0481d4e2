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
			return brief(*r.Reason)
		}
		return ""
	})
}

// brief is a reason as a report quotes it: on one line, without what a program printed besides its own error,
// and no longer than a line or two.
func brief(reason string) string {
	const most = 160 // characters
	text := quantity.OneLine(reason)
	if said, _, printed := strings.Cut(text, "; it printed: "); printed && strings.Contains(said, " failed during ") {
		text = said
	}
	if cut := []rune(text); len(cut) > most {
		text = strings.TrimSpace(string(cut[:most])) + " …"
	}
	return text
}

// listed is a sentence that begins with head and names the records of such a status, those with the same
// cause side by side. It names at most six and counts the others; it is empty if there are none.
func listed(head string, recs []*record.Record, such func(record.Status) bool, cause func(*record.Record) string) string {
	const most = 6
	var causes []string
	names, all := map[string][]string{}, 0
	for _, r := range recs {
		if !such(r.Status) {
			continue
		}
		c := cause(r)
		if all++; names[c] == nil {
			causes = append(causes, c)
		}
		names[c] = append(names[c], quantity.OneLine(fmt.Sprintf("%s at %s", quantity.Label(r), r.Point)))
	}
	if all == 0 {
		return ""
	}
	var parts []string
	left := most
	for i, c := range causes {
		n := min(len(names[c]), max(1, left-(len(causes)-1-i))) // each cause has a name, if there is room
		if n = min(n, left); n == 0 {
			break
		}
		left -= n
		part := strings.Join(names[c][:n], " and ")
		if c != "" {
			part += " (" + c + ")"
		}
		parts = append(parts, part)
	}
	s := head + strings.Join(parts, "; ")
	if more := all - (most - left); more > 0 {
		s += fmt.Sprintf("; and %d more", more)
	}
	return s + "."
}
