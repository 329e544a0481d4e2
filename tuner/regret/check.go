package regret

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// turns is how many rounds two winners run against each other.
const turns = 40

// near is how much slower a winner may be and still count as near, as a share.
const near = 0.02

// A Check compares the winners of a search with those found by measuring every candidate.
type Check struct {
	rows    [][]table.Cell
	ratios  []record.Stats // of the winners' times, round by round: the search's over the other's
	seconds []float64      // that the search took at each point
	cut     int            // points at which the budget ended before every candidate was measured
}

// Measure searches at a point by t, measures every candidate there, and runs both winners in turns. It
// returns the verdict of the search. The two measurements share no records.
func (c *Check) Measure(ctx context.Context, t *tuner.Tune, at record.Point, specs []grid.Spec) (*tuner.Verdict, error) {
	start := time.Now()
	found, err := t.Tune(ctx, at, specs, record.Impl{})
	if err != nil || found.Winner < 0 {
		return found, err
	}
	took := time.Since(start).Seconds()
	// It is a new tune without a prior, which could keep candidates from being measured.
	every := &tuner.Tune{Sweep: t.Sweep, Depth: t.Depth, Search: t.Search, Leader: t.Leader}
	every.Search.Strategy, every.Search.MaxEvals = "exhaustive", 0
	start = time.Now()
	all, err := every.Tune(ctx, at, specs, record.Impl{})
	if err != nil || all.Winner < 0 {
		return found, err
	}
	whole := time.Since(start).Seconds()
	ratio, err := inTurns(ctx, t, found.WinnerRecord(), all.WinnerRecord())
	if err != nil {
		return found, err
	}
	c.add(found, all, took, whole, ratio)
	return found, nil
}

// inTurns runs a and b in turns and summarises the ratio of a's to b's time in each round. ratio.N is 0
// if one of them failed.
func inTurns(ctx context.Context, t *tuner.Tune, a, b *record.Record) (ratio record.Stats, err error) {
	if a.Key() == b.Key() {
		one := 1.0
		return record.Stats{N: turns, Median: 1, Lo: &one, Hi: &one}, nil
	}
	var specs []grid.Spec
	for i, r := range []*record.Record{a, b} {
		l, err := tuner.Adapt(t.Device, t.Techniques, r.Point, grid.Spec{Name: r.Impl.Name, Knobs: r.Impl.Knobs}, t.MaxMemory)
		if err != nil {
			return ratio, err
		}
		s := l.Spec
		s.Label = []string{"a", "b"}[i]
		specs = append(specs, s)
	}
	walls := map[string][]float64{}
	sweep := t.Sweep
	sweep.Settings.Rounds, sweep.Settings.MaxRounds, sweep.Settings.Order, sweep.Settings.Budget = turns, turns, "interleaved", 0
	sweep.Skip, sweep.Emit = nil, func(r *record.Record) error {
		if r.Status == record.OK && r.Samples != nil {
			walls[r.Impl.Label] = r.Samples.Wall
		}
		return nil
	}
	if err := sweep.Run(ctx, []tuner.Task{{Point: a.Point, Specs: specs}}); err != nil {
		return ratio, err
	}
	ratios := make([]float64, min(len(walls["a"]), len(walls["b"])))
	for i := range ratios {
		ratios[i] = walls["a"][i] / walls["b"][i]
	}
	ratio, _ = record.Summarize(ratios, 0)
	return ratio, nil
}

// add adds a point: found is the search's verdict after took seconds, all the verdict after measuring
// every candidate for whole seconds.
func (c *Check) add(found, all *tuner.Verdict, took, whole float64, ratio record.Stats) {
	c.seconds = append(c.seconds, took)
	measured := fmt.Sprint(all.Timed())
	if !all.Complete {
		c.cut++
		measured += ", budget exhausted"
	}
	apart := []table.Cell{{Text: "one of them failed"}, {}, {}}
	if ratio.N > 0 {
		c.ratios = append(c.ratios, ratio)
		apart[0] = table.Number(ratio.Median-1, fmt.Sprintf("%+.1f %%", 100*(ratio.Median-1)))
		if ratio.Lo != nil {
			apart[0].Text += fmt.Sprintf(" (%+.1f to %+.1f)", 100*(*ratio.Lo-1), 100*(*ratio.Hi-1))
			apart[1], apart[2] = table.Number(*ratio.Lo-1, ""), table.Number(*ratio.Hi-1, "")
		}
	}
	c.rows = append(c.rows, append([]table.Cell{
		table.Text(found.Point.String()), table.Text(found.WinnerRecord().Label()), table.Int(found.Timed()), table.Number(took, quantity.SI(took, "s")),
		table.Text(all.WinnerRecord().Label()), {Text: measured, Value: all.Timed()}, table.Number(whole, quantity.SI(whole, "s"))}, apart...))
}

// Table lists the points, with the mean and the worst in the notes.
func (c *Check) Table() *table.Table {
	t := &table.Table{Rows: c.rows, Columns: []table.Column{
		{Name: "point", Key: "point"}, {Name: "tuned", Key: "impl"}, {Name: "timed", Key: "timed", Right: true}, {Name: "took", Key: "took_s", Right: true},
		{Name: "fastest of all", Key: "fastest"}, {Name: "timed", Key: "all_timed", Right: true}, {Name: "took", Key: "all_took_s", Right: true}, {Name: "tuned is slower by", Key: "slower", Right: true}, {Key: "slower_lo"}, {Key: "slower_hi"},
	}}
	if n := len(c.ratios); n > 0 {
		logs, worst, within, unclear := 0.0, 0.0, 0, 0
		for _, r := range c.ratios {
			logs, worst = logs+math.Log(r.Median), max(worst, r.Median)
			switch {
			case r.Median <= 1+near:
				within++
			case r.Lo == nil || *r.Lo <= 1+near:
				unclear++
			}
		}
		t.Notes = append(t.Notes, fmt.Sprintf("slower by, in turns over %d rounds: geometric mean %+.1f %%, worst %+.1f %%; within %.0f %% at %d of %s",
			turns, 100*math.Expm1(logs/float64(n)), 100*(worst-1), 100*near, within, quantity.Plural(n, "point")))
		if unclear > 0 {
			t.Notes[0] += fmt.Sprintf("; at %d more the interval does not tell", unclear)
		}
	}
	if len(c.seconds) > 0 {
		sum := 0.0
		for _, s := range c.seconds {
			sum += s
		}
		t.Notes = append(t.Notes, fmt.Sprintf("tuning took %s a point, at most %s", quantity.SI(sum/float64(len(c.seconds)), "s"), quantity.SI(slices.Max(c.seconds), "s")))
	}
	if c.cut > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("at %s the budget ended before every candidate was measured", quantity.Plural(c.cut, "point")))
	}
	return t
}
