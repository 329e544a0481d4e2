package quantity

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
)

// Doubts returns sentences that name the techniques whose answers were not verified, or not at
// every step, those whose cells were interpreted, and those that were started again; and then those of Crippled, Disturbed
// and SlowLaunches. It returns nil if there are none.
func Doubts(recs []*record.Record) []string {
	var notes []string
	for _, doubt := range []struct{ warning, text string }{
		{record.WarnUnverified, "Unverified (answers may be wrong): %s."},
		{record.WarnPart, "Partly checked (not at every step of the timed run): %s."},
		{record.WarnInterpreted, "Interpreted (cells that run operation by operation, without assembly of their own): %s."},
		{record.WarnRestarted, "Started again (blocks of a kernel gave up waiting for each other): %s."},
	} {
		if labels := warned(recs, doubt.warning); labels != nil {
			notes = append(notes, fmt.Sprintf(doubt.text, list(labels)))
		}
	}
	return slices.Concat(notes, Crippled(recs), Disturbed(recs), SlowLaunches(recs))
}

// warned lists the labels of records with a result and this warning, at most eight.
func warned(recs []*record.Record, warning string) []string {
	const most = 8
	var labels []string
	for _, r := range recs {
		if l := OneLine(Label(r)); r.Status == record.OK && slices.Contains(r.Warnings, warning) && !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	slices.Sort(labels)
	if n := len(labels); n > most {
		labels = append(labels[:most:most], fmt.Sprintf("%d more", n-most))
	}
	return labels
}

// list joins labels by commas, or by semicolons if a label has a comma of its own.
func list(labels []string) string {
	between := ", "
	if slices.ContainsFunc(labels, func(l string) bool { return strings.Contains(l, ",") }) {
		between = "; "
	}
	return strings.Join(labels, between)
}
