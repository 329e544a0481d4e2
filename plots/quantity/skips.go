package quantity

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
)

// Skips counts skipped records by technique and cause, so that they take a line for each cause
// instead of one for each point.
type Skips struct {
	list  []*skip
	total map[string]int // records by technique, skipped or not
}

// A skip holds the records of one technique that were skipped for one cause.
type skip struct {
	label, code string
	words       string // the code in words
	reasons     []string
	where       []string // names of the records' points
}

// Add counts a record, whatever its status; where names its point.
func (s *Skips) Add(r *record.Record, where string) {
	if s.total == nil {
		s.total = map[string]int{}
	}
	label := Label(r)
	s.total[label]++
	if r.Status != record.Skipped {
		return
	}
	code, reason := "", ""
	if r.ReasonCode != nil {
		code = *r.ReasonCode
	}
	if r.Reason != nil {
		reason = PlainReason(r.Impl.Name, *r.Reason)
	}
	i := slices.IndexFunc(s.list, func(k *skip) bool { return k.label == label && k.code == code })
	if i < 0 {
		i = len(s.list)
		s.list = append(s.list, &skip{label: label, code: code, words: Reason(r)})
	}
	k := s.list[i]
	if k.where = append(k.where, where); reason != "" && !slices.Contains(k.reasons, reason) {
		k.reasons = append(k.reasons, reason)
	}
}

// PlainReason returns a reason without the technique and the word "unsupported", which its line
// already has.
func PlainReason(technique, reason string) string {
	for _, p := range []string{technique + ": ", "unsupported: "} {
		reason = strings.TrimPrefix(reason, p)
	}
	return OneLine(reason)
}

// Lines returns a line for each technique and cause: how many records were skipped, why, and at
// which points unless at all.
func (s *Skips) Lines() []string {
	var lines []string
	for _, k := range s.list {
		why := k.words
		switch {
		case len(k.reasons) == 1:
			why = k.reasons[0]
		case len(k.reasons) > 1:
			why += ", for example: " + k.reasons[0]
		}
		line := fmt.Sprintf("%s: %d skipped: %s", k.label, len(k.where), why)
		if places := some(k.where); len(k.where) < s.total[k.label] && places != "" {
			line += " (" + places + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// some lists the first three places and counts the rest.
func some(places []string) string {
	const most = 3
	places = slices.DeleteFunc(slices.Clone(places), func(p string) bool { return p == "" })
	if n := len(places) - most; n > 0 {
		return fmt.Sprintf("%s; %d more", strings.Join(places[:most], "; "), n)
	}
	return strings.Join(places, "; ")
}
