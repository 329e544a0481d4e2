package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// regrets is the table of how far auto is from the fastest.
type regrets struct {
	rows    [][]table.Cell
	shares  map[string][]float64 // by match
	unknown int                  // points at which what auto is was not measured
}

// add adds what auto is at a point, and what was the fastest there.
func (g *regrets) add(p results.Point, choice *results.Choice, pick, best *results.Record, share float64) {
	if g.shares == nil {
		g.shares = map[string][]float64{}
	}
	share = max(0, share)
	g.shares[choice.Match] = append(g.shares[choice.Match], share)
	g.rows = append(g.rows, []table.Cell{
		table.Text(p.String()), table.Text(label(pick)), table.Text(choice.Match), table.Number(choice.Octaves, fmt.Sprintf("%.2g", choice.Octaves)),
		table.Number(pick.Seconds(), quantity.SI(pick.Seconds(), "s")), table.Text(label(best)), table.Number(best.Seconds(), quantity.SI(best.Seconds(), "s")),
		table.Number(share, quantity.Percent(share)),
	})
}

// write prints the table with the means.
func (g *regrets) write(p *program, format string) error {
	t := &table.Table{Rows: g.rows, Columns: []table.Column{
		{Name: "point", Key: "point"}, {Name: "auto", Key: "impl"}, {Name: "match", Key: "match"}, {Name: "doublings", Key: "octaves", Right: true},
		{Name: "time", Key: "time_s", Right: true}, {Name: "fastest", Key: "fastest"}, {Name: "fastest time", Key: "fastest_s", Right: true},
		{Name: "regret", Key: "regret", Right: true},
	}}
	for _, match := range []string{wisdom.Exact, wisdom.Nearest, "default"} {
		if s := g.shares[match]; len(s) > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: regret %s", match, summaryOf(s)))
		}
	}
	if g.unknown > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%s omitted: auto's choice was not measured", plural(g.unknown, "point")))
	}
	return t.Write(p.out, format, p.style())
}

// summaryOf says how large shares are.
func summaryOf(shares []float64) string {
	logs, worst := 0.0, 0.0
	for _, s := range shares {
		logs, worst = logs+math.Log1p(s), max(worst, s)
	}
	return fmt.Sprintf("geometric mean %.2f %% over %s, worst %.1f %%", 100*math.Expm1(logs/float64(len(shares))), plural(len(shares), "point"), 100*worst)
}

// regret measures how far auto is from the fastest at each point. The wisdom is
// not changed by that.
func (t *tuning) regret(ctx context.Context, at results.Point, specs []grid.Spec, g *regrets) (*tuner.Verdict, error) {
	spec, err := t.bench.decide(at, grid.Spec{Name: autoName, Label: autoName})
	if err != nil {
		return nil, err
	}
	l, err := t.bench.layOut(at, spec)
	if err != nil {
		return nil, err
	}
	was := results.Record{Point: at, Device: t.bench.info.Key, Impl: results.Impl{Name: spec.Name}}
	if l.Reason == "" {
		was.Impl.Knobs = l.Settings()
	}
	v, err := t.tune.Tune(ctx, at, specs, was.Impl)
	if err != nil || v.Winner < 0 {
		return v, err
	}
	i := slices.IndexFunc(v.Records, func(r *results.Record) bool { return r != nil && r.Key() == was.Key() })
	if i < 0 || v.Medians[i] == 0 { // it cannot run here, or was not begun
		g.unknown++
		return v, nil
	}
	g.add(at, spec.Choice, v.Records[i], v.Records[v.Fastest], v.Behind)
	return v, nil
}

// regretOf is how far what the book says of a recorded point is from the fastest
// of the records.
func regretOf(b *wisdom.Book, group []*results.Record, vendor bool, g *regrets) {
	pick, choice := recorded(b, group, vendor)
	if pick == nil {
		g.unknown++
		return
	}
	var best *results.Record
	far := tuner.Regrets(group)
	for i, r := range group {
		if r.Seconds() > 0 && far[i] == 0 {
			best = r
		}
	}
	g.add(pick.Point, choice, pick, best, far[slices.Index(group, pick)])
}

// recorded finds the record of what auto is.
func recorded(b *wisdom.Book, group []*results.Record, vendor bool) (*results.Record, *results.Choice) {
	first := group[0]
	for _, m := range b.Lookup(first.Device, first.Mode.Cache, first.Point) {
		if isVendor(m.Impl) && !vendor {
			continue
		}
		was := results.Record{Point: first.Point, Device: first.Device, Impl: results.Impl{Name: m.Impl, Knobs: m.Knobs}}
		for _, r := range group {
			if r.Key() == was.Key() && r.Seconds() > 0 {
				return r, &results.Choice{By: autoName, Match: m.Kind, Octaves: m.Distance}
			}
		}
	}
	for _, name := range untuned(first.Device, first.Point) {
		i := slices.IndexFunc(group, func(r *results.Record) bool { return label(r) == name })
		switch {
		case i >= 0 && group[i].Seconds() > 0:
			return group[i], &results.Choice{By: autoName, Match: "default"}
		case i < 0 || !refused(group[i]):
			return nil, nil
		}
	}
	return nil, nil
}

// refused reports whether auto would have found that r cannot run, not just a tuner that others are faster.
func refused(r *results.Record) bool {
	return r.Status == results.Skipped && r.ReasonCode != nil && *r.ReasonCode != results.ReasonBound && *r.ReasonCode != results.ReasonUnlikely
}
