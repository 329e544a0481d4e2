package compare

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
	"rnnbench/rnn/axis"
)

func sameDevice(a, b Side, o Options) error {
	da, db := devices(a.records()), devices(b.records())
	if o.Across || len(da) == 0 || len(db) == 0 || slices.ContainsFunc(da, func(d string) bool { return slices.Contains(db, d) }) {
		return nil
	}
	return fmt.Errorf("compare: %s and %s: %w: %s and %s", a.Label, b.Label, ErrDevices, strings.Join(da, ", "), strings.Join(db, ", "))
}

func devices(recs []record.Record) []string {
	var list []string
	for _, r := range recs {
		if !slices.Contains(list, r.Device) {
			list = append(list, r.Device)
		}
	}
	return list
}

// apart says in what two sides without a common point differ.
func apart(a, b []record.Record) string {
	type property struct {
		name string
		of   func(*record.Record) string
	}
	list := []property{{"technique", func(r *record.Record) string { return r.Impl.Name }}}
	others := []property{
		{"cache", func(r *record.Record) string { return r.Mode.Cache }},
		{"timer", func(r *record.Record) string { return r.Mode.Timer }},
		{"data", func(r *record.Record) string { return r.Mode.Data }},
	}
	for _, x := range axis.Flags() {
		p := property{x.Name, func(r *record.Record) string { return fmt.Sprint(x.Value(&r.Point)) }}
		if x.Needed {
			list = append(list, p)
		} else {
			others = append(others, p)
		}
	}
	list = append(list, others...)
	var words []string
	for _, p := range list {
		seen := map[string]bool{}
		for i := range a {
			seen[p.of(&a[i])] = true
		}
		if len(b) > 0 && !slices.ContainsFunc(b, func(r record.Record) bool { return seen[p.of(&r)] }) {
			words = append(words, p.name)
		}
	}
	if words == nil {
		return "no point was measured in both with a result in at least one"
	}
	return "no " + strings.Join(words, " and no ") + " is in both"
}
