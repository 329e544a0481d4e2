package record

import (
	"io"
	"slices"
	"strings"
)

// ReadAllFrom is ReadAll, but the path "-" stands for records in r. Each run of them is a set of its own.
func ReadAllFrom(r io.Reader, args []string) ([]Set, []Warning, error) {
	var sets []Set
	var warnings []Warning
	for _, arg := range args {
		label, name, ok := strings.Cut(arg, "=")
		if !ok {
			label, name = "", arg
		}
		if name != "-" {
			some, w, err := ReadAll([]string{arg})
			warnings = append(warnings, w...)
			if err != nil {
				return sets, warnings, err
			}
			sets = append(sets, some...)
			continue
		}
		recs, w, err := ReadRecords(r, "standard input")
		warnings = append(warnings, w...)
		if err != nil {
			return sets, warnings, err
		}
		sets = append(sets, apart(recs, label)...)
	}
	return sets, warnings, nil
}

// apart makes a set of each run of a stream of records, in the order in which they begin. Several runs
// are called after themselves, and a single one "-" if it has no label.
func apart(recs []Record, label string) []Set {
	var runs []string
	of := map[string][]Record{}
	for _, rec := range recs {
		if !slices.Contains(runs, rec.Run) {
			runs = append(runs, rec.Run)
		}
	}
	for _, rec := range newest(recs) {
		of[rec.Run] = append(of[rec.Run], rec)
	}
	if len(runs) < 2 {
		if label == "" {
			label = "-"
		}
		return []Set{{Label: label, Records: newest(recs)}}
	}
	var sets []Set
	for _, run := range runs {
		name := run
		if label != "" {
			name = label + " " + run
		}
		sets = append(sets, Set{Label: name, Records: of[run]})
	}
	return sets
}
