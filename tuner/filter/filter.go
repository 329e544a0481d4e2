// Package filter selects records by the conditions of package grid and by filter expressions of
// benchstat.
package filter

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"rnnbench/impl"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// A Filter says whether a record is selected.
type Filter func(*record.Record) (bool, error)

// New makes a filter that selects records for which all conditions and the expression hold; "": no
// expression. Conditions may also name cells and techniques that occur only in recs.
func New(where []string, expression string, recs []record.Record) (Filter, error) {
	var filter *benchproc.Filter
	if expression != "" {
		var err error
		if filter, err = benchproc.NewFilter(expression); err != nil {
			return nil, fmt.Errorf("--filter: %w", err)
		}
	}
	var at *record.Record // the record that conditions are evaluated for
	v := vocabulary(recs)
	v.Derive = func(p record.Point, _ grid.Spec, key string) (float64, error) {
		switch key {
		case "mem":
			return float64(at.Work.Memory), nil
		case "intensity":
			return float64(at.Work.Flops) / float64(max(1, at.Work.Bytes)), nil
		}
		problem, err := tuner.Problem(p)
		return float64(problem.FLOPs()), err
	}
	first := impl.All()[0].Name() // a grid needs some technique; names in records may be no valid spec
	g, err := grid.New(grid.Request{Where: where, Impl: []string{first}}, v)
	if err != nil {
		return nil, err
	}
	return func(r *record.Record) (bool, error) {
		at = r
		ok, err := g.Wants(r.Point, grid.Spec{Name: r.Impl.Name, Label: quantity.Label(r), Knobs: r.Impl.Knobs})
		if err != nil || !ok || filter == nil {
			return ok, err
		}
		m, err := filter.Match(benchmark(r))
		if err != nil {
			return false, fmt.Errorf("--filter: %w", err)
		}
		return m.All(), nil
	}, nil
}

// Choose keeps the records that are selected.
func (f Filter) Choose(recs []record.Record) ([]record.Record, error) {
	var kept []record.Record
	for i := range recs {
		ok, err := f(&recs[i])
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, recs[i])
		}
	}
	return kept, nil
}

// vocabulary is the words that conditions may use: the program's own, and those of recs.
func vocabulary(recs []record.Record) grid.Vocabulary {
	var cells []string
	for _, c := range cell.All() {
		cells = append(cells, c.Name)
	}
	v := grid.Vocabulary{Words: grid.Words(cells)}
	for _, t := range impl.All() {
		v.Impls = append(v.Impls, t.Name())
	}
	add := func(list []string, word string) []string {
		if slices.Contains(list, word) {
			return list
		}
		return append(list, word)
	}
	for i := range recs {
		r := &recs[i]
		for name, words := range v.Words {
			if a, ok := axis.Named(name); ok {
				v.Words[name] = add(words, a.Value(&r.Point).(string))
			}
		}
		v.Impls = add(add(v.Impls, r.Impl.Name), quantity.Label(r))
	}
	return v
}

// benchmark converts r to a benchmark of benchstat, with axes and knobs as parts of its name.
func benchmark(r *record.Record) *benchfmt.Result {
	name := "RNN"
	seen := map[string]bool{}
	part := func(key, value string) {
		if !seen[key] {
			seen[key] = true
			name += "/" + key + "=" + strings.NewReplacer("/", "_", " ", "_").Replace(value)
		}
	}
	part("impl", quantity.Label(r))
	for _, a := range quantity.Axes() {
		part(a.Name, a.Text(r))
	}
	part("status", string(r.Status))
	for k, v := range r.Impl.Knobs {
		part(k, fmt.Sprint(v))
	}
	res := &benchfmt.Result{Name: benchfmt.Name(name), Iters: 1, Values: []benchfmt.Value{{Value: r.Seconds(), Unit: "sec/op"}}}
	res.SetConfig("device", r.Device)
	return res
}
