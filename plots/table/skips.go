package table

import (
	"fmt"
	"io"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Fold folds the rows of skipped records, and adds a note for each technique and cause. recs[i] is
// the record of row i.
func (t *Table) Fold(recs []*record.Record) {
	t.Folded = map[int]bool{}
	for i, r := range recs {
		if r.Status == record.Skipped {
			t.Folded[i] = true
		}
	}
	t.Notes = append(t.Notes, SkipLines(recs)...)
}

// SkipLines returns a line on skipped records for each technique and cause.
func SkipLines(recs []*record.Record) []string {
	var varying []quantity.Axis
	for _, a := range quantity.Varying(recs) {
		if a.Name != "impl" {
			varying = append(varying, a)
		}
	}
	var skips quantity.Skips
	for _, r := range recs {
		skips.Add(r, quantity.Place(r, varying))
	}
	return skips.Lines()
}

// WriteLines writes sentences, each wrapped to the terminal with its continuation lines indented.
func WriteLines(w io.Writer, lines []string, indent int, o Options) error {
	for _, s := range lines {
		if _, err := fmt.Fprintln(w, Sentence(cellText(s, o), o.Width, indent)); err != nil {
			return err
		}
	}
	return nil
}
