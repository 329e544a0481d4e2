package table

import (
	"fmt"
	"slices"

	"rnnbench/record"
)

// A filled is a column with the function that fills its cells.
type filled struct {
	Column
	cell func(r *record.Record) Cell
}

// choiceColumns returns columns of the techniques that auto chose, by which match and why. Text
// formats show them only if auto chose any.
func choiceColumns(t *Table, recs []*record.Record) []filled {
	chosen := Column{Key: "chosen"}
	if i := slices.IndexFunc(recs, func(r *record.Record) bool { return r.Impl.Choice != nil }); i >= 0 {
		chosen.Name = recs[i].Impl.Choice.By + " chose"
	}
	text := func(of func(c *record.Choice) string) func(r *record.Record) Cell {
		return func(r *record.Record) Cell {
			if r.Impl.Choice == nil {
				return Cell{}
			}
			return Text(of(r.Impl.Choice))
		}
	}
	return []filled{
		{chosen, func(r *record.Record) Cell {
			if r.Impl.Choice == nil {
				return Cell{}
			}
			c := Text(chosenImpl(r))
			c.Text += " " + t.note(choiceNote(r.Impl.Choice))
			return c
		}},
		{Column{Key: "match"}, text(func(c *record.Choice) string { return c.Match })},
		{Column{Key: "choice_why"}, text(func(c *record.Choice) string { return c.Why })},
	}
}

// chosenImpl returns the technique that was chosen for r, with its settings. Older records hold
// only its name.
func chosenImpl(r *record.Record) string {
	if s := r.Impl.Choice.Impl; s != "" {
		return s
	}
	return r.Impl.Name
}

// choiceNote returns a note on how and why a technique was chosen.
func choiceNote(c *record.Choice) string {
	return fmt.Sprintf("%s, %s: %s", c.By, matches[c.Match], c.Why)
}

// matches maps kinds of match to words.
var matches = map[string]string{
	"exact": "tuned here", "nearest": "nearest tuned point", "predicted": "cost model", "raced": "short race", "default": "default",
}
