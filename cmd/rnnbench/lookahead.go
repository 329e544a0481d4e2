package main

import (
	"context"
	"fmt"
	"time"

	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// open opens the device that c names, which may be in a worker that has to start.
func (p *program) open(s *settings, c config.Config) (*bench, error) {
	defer p.busy(late, "opening "+c.Devices[0])()
	return s.open(c)
}

// planFor makes a plan of a request.
func (p *program) planFor(r grid.Request, b *bench) (plan, error) {
	defer p.busy(late, "laying out the grid")()
	return newPlan(r, b)
}

// forecast looks ahead for a moment, as measuring does.
func (p *program) forecast(ctx context.Context, b *bench, q plan, m config.Measure) (*forecast, error) {
	defer p.busy(late, "estimating time and memory")()
	return b.forecast(ctx, q, m, patience, func(int) {})
}

// forecastAll looks all the way, as a dry run does, and says how far it is.
func (p *program) forecastAll(ctx context.Context, b *bench, q plan, m config.Measure) (*forecast, error) {
	show := p.newProgress(nil, q.total())
	ctx, stop := interruptible(ctx, show)
	defer stop()
	defer show.close()
	return b.forecast(ctx, q, m, 0, show.laidOut)
}

// laidOut tells of a dry run how many entries were laid out.
func (g *progress) laidOut(done int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pause := 2 * time.Second // between lines of a log
	if g.rewrite {
		pause = 100 * time.Millisecond
	}
	if time.Since(g.start) < moment || time.Since(g.drawn) < pause {
		return
	}
	g.drawn = time.Now()
	line := fmt.Sprintf("planned %d of %d", done, g.total)
	switch {
	case g.json:
		g.program.sendText(line)
	case g.rewrite:
		g.draw(line)
	default:
		fmt.Fprintln(g.w, line)
	}
}

// within is how many records a budget is enough for, in the order of the plan,
// skipped ones included.
func (f *forecast) within(budget time.Duration) int {
	left := budget.Seconds()
	for i, e := range f.entries {
		if left -= e.seconds; left < 0 {
			return i
		}
	}
	return len(f.entries)
}

// budget says how far a budget reaches.
func (f *forecast) budget(budget time.Duration) string {
	n := f.within(budget)
	if n == len(f.entries) {
		return fmt.Sprintf("budget: %v covers all %d records", budget, n)
	}
	return fmt.Sprintf("budget: %v covers about the first %d of %d records", budget, n, len(f.entries))
}

// records are the entries as records of what would become of them.
func (f *forecast) records() []*results.Record {
	var list []*results.Record
	for _, e := range f.entries {
		r := &results.Record{Point: e.point, Impl: results.Impl{Name: e.spec.Name, Label: e.spec.Label}, Status: results.OK}
		if e.declined != "" {
			r.Status, r.ReasonCode, r.Reason = results.Skipped, &e.code, &e.declined
		}
		list = append(list, r)
	}
	return list
}

// lines are what a dry run says.
func (f *forecast) lines(b *bench, summary string, budget time.Duration) []string {
	list := []string{f.line(summary)}
	if budget > 0 {
		list = append(list, f.budget(budget))
	}
	if e := f.largest(); e.memory > 0 {
		list = append(list, memoryLine(e, b.free()))
	}
	return append(list, table.SkipLines(f.records())...)
}
