package table

import (
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/results"
)

// Fold has a note for each technique and cause stand for the rows of what was
// skipped. Record i is the one of row i.
func (t *Table) Fold(recs []*results.Record) {
	var varying []quantity.Axis
	for _, a := range quantity.Varying(recs) {
		if a.Name != "impl" {
			varying = append(varying, a)
		}
	}
	var skips quantity.Skips
	t.Folded = map[int]bool{}
	for i, r := range recs {
		var words []string
		for _, a := range varying {
			words = append(words, a.Tag(r))
		}
		skips.Add(r, strings.Join(words, " "))
		if r.Status == results.Skipped {
			t.Folded[i] = true
		}
	}
	t.Notes = append(t.Notes, skips.Lines()...)
}
