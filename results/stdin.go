package results

import (
	"io"
	"strings"
)

// ReadAllFrom is ReadAll, but the path "-" stands for records in r.
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
		if label == "" {
			label = "-"
		}
		sets = append(sets, Set{Label: label, Records: recs})
	}
	return sets, warnings, nil
}
