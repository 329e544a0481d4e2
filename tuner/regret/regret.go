// Package regret computes regret: how much slower auto's choice at a point, by wisdom or by default,
// is than the fastest measured technique.
package regret

import (
	"context"
	"fmt"
	"math"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// Grounds of choices without wisdom. Package auto defines the same words.
const (
	predicted = "predicted"
	raced     = "raced"
	usual     = "default"
)

// A List holds the regret at several points.
type List struct {
	rows    [][]table.Cell
	shares  map[string][]float64 // by match
	apart   bool                 // at some point, the regret and the ratio of the times differ by over 0.05
	unknown int                  // points at which the choice was not measured
}

// add adds a point: its choice, the record pick of that choice, the fastest record and the regret.
func (g *List) add(p record.Point, choice *record.Choice, pick, best *record.Record, share float64) {
	if g.shares == nil {
		g.shares = map[string][]float64{}
	}
	share = max(0, share)
	if s := best.Seconds(); s > 0 && math.Abs(pick.Seconds()/s-1-share) > 0.05 {
		g.apart = true
	}
	g.shares[choice.Match] = append(g.shares[choice.Match], share)
	g.rows = append(g.rows, []table.Cell{
		table.Text(p.String()), table.Text(pick.Label()), table.Text(choice.Match), table.Number(choice.Octaves, fmt.Sprintf("%.2g", choice.Octaves)),
		table.Number(pick.Seconds(), quantity.SI(pick.Seconds(), "s")), table.Text(best.Label()), table.Number(best.Seconds(), quantity.SI(best.Seconds(), "s")),
		table.Number(share, quantity.Percent(share)),
	})
}

// Table lists the points, with the means in the notes.
func (g *List) Table() *table.Table {
	t := &table.Table{Rows: g.rows, Columns: []table.Column{
		{Name: "point", Key: "point"}, {Name: "auto", Key: "impl"}, {Name: "match", Key: "match"}, {Name: "doublings", Key: "octaves", Right: true},
		{Name: "time", Key: "time_s", Right: true}, {Name: "fastest", Key: "fastest"}, {Name: "fastest time", Key: "fastest_s", Right: true},
		{Name: "regret", Key: "regret", Right: true},
	}}
	for _, match := range []string{wisdom.Exact, wisdom.Nearest, raced, predicted, usual} {
		if s := g.shares[match]; len(s) > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: regret %s", match, summary(s)))
		}
	}
	if g.apart {
		t.Notes = append(t.Notes, "regret compares samples round by round, or their faster halves; times are medians, whose ratio may differ")
	}
	if g.unknown > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s omitted: auto's choice was not measured", quantity.Plural(g.unknown, "point")))
	}
	return t
}

// summary summarises shares in words.
func summary(shares []float64) string {
	logs, worst := 0.0, 0.0
	for _, s := range shares {
		logs, worst = logs+math.Log1p(s), max(worst, s)
	}
	return fmt.Sprintf("geometric mean %.2f %% over %s, worst %.1f %%", 100*math.Expm1(logs/float64(len(shares))), quantity.Plural(len(shares), "point"), 100*worst)
}

// Measure finds the fastest of specs at a point by t and adds the regret of choice, which was laid out
// as l, or of what is chosen instead if its iterations do not converge. It does not change the wisdom.
func (g *List) Measure(ctx context.Context, t *tuner.Tune, at record.Point, specs []grid.Spec, choice grid.Spec, l *tuner.Layout) (*tuner.Verdict, error) {
	was := settingsOf(choice, l)
	v, err := t.Tune(ctx, at, specs, was)
	if err != nil || v.Winner < 0 {
		return v, err
	}
	find := func(x record.Impl) int {
		was := record.Record{Point: at, Device: t.Device.Info().Key, Impl: x}
		return slices.IndexFunc(v.Records, func(r *record.Record) bool { return r != nil && r.Key() == was.Key() })
	}
	i := find(was)
	if i >= 0 && v.Records[i].Status == record.NotConverged && choice.Instead != nil {
		if l, err = tuner.LayOutWithin(t.Device, t.Techniques, at, *choice.Instead, t.MaxMemory); err != nil {
			return v, err
		}
		choice = *choice.Instead
		i = find(settingsOf(choice, l))
	}
	if i < 0 || v.Medians[i] == 0 { // it cannot run here, or was not started
		g.unknown++
		return v, nil
	}
	g.add(at, choice.Choice, v.Records[i], v.Records[v.Fastest], v.Behind)
	return v, nil
}

// settingsOf is s with all its settings, if it can run as l.
func settingsOf(s grid.Spec, l *tuner.Layout) record.Impl {
	x := record.Impl{Name: s.Name}
	if l.Reason == "" {
		x.Knobs = l.Settings()
	}
	return x
}

// A Policy says how auto chooses at recorded points.
type Policy struct {
	Book *wisdom.Book
	// Allowed reports whether a technique of the book may be the choice.
	Allowed func(name string) bool
	// Usual lists the techniques that are tried, in this order, at a point without an entry.
	Usual func(device string, p record.Point) []string
}

// Recorded adds the regret of the choice among the records of one point.
func (g *List) Recorded(p Policy, group []*record.Record) {
	pick, choice := p.find(group)
	if pick == nil {
		g.unknown++
		return
	}
	var best *record.Record
	far := tuner.Regrets(group)
	for i, r := range group {
		if r.Seconds() > 0 && far[i] == 0 {
			best = r
		}
	}
	g.add(pick.Point, choice, pick, best, far[slices.Index(group, pick)])
}

// find returns the record of the choice, and the choice; nil: it was not measured.
func (p Policy) find(group []*record.Record) (*record.Record, *record.Choice) {
	first := group[0]
	for _, m := range p.Book.Lookup(first.Device, first.Mode.Cache, first.Point) {
		if !p.Allowed(m.Impl) {
			continue
		}
		was := record.Record{Point: first.Point, Device: first.Device, Impl: record.Impl{Name: m.Impl, Knobs: m.Knobs}}
		for _, r := range group {
			if r.Key() == was.Key() && r.Seconds() > 0 {
				return r, &record.Choice{Match: m.Kind, Octaves: m.Distance}
			}
		}
	}
	for _, name := range p.Usual(first.Device, first.Point) {
		i := slices.IndexFunc(group, func(r *record.Record) bool { return r.Label() == name })
		switch {
		case i >= 0 && group[i].Seconds() > 0:
			return group[i], &record.Choice{Match: usual}
		case i < 0 || !refused(group[i]):
			return nil, nil
		}
	}
	return nil, nil
}

// refused reports whether r cannot run, so that auto would have chosen another technique. A record
// that a tuner skipped as slow does not count.
func refused(r *record.Record) bool {
	return r.Status == record.Skipped && r.ReasonCode != nil && *r.ReasonCode != record.ReasonBound && *r.ReasonCode != record.ReasonUnlikely
}
