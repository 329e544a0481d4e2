package yardstick

import (
	"cmp"
	"fmt"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// Threads is the experiment threads.
var Threads = study.Experiment{
	ID: "threads", Title: "Speed over the number of threads", Source: "rnnbench",
	Host:   true,
	Parts:  threadParts,
	Report: reportThreads,
	Model:  limitThreads,
}

// scanCell is the linear recurrence of the experiment on threads.
const scanCell = "gilr"

// threadCounts returns the numbers of threads: powers of two, at the full size also the middles
// between them, and all.
func threadCounts(s study.Size, on study.Target) []int {
	all := on.Workers
	if all == 0 { // unknown
		all = 2
	}
	var list []int
	for n := 1; n < all; n *= 2 {
		list = append(list, n)
		if between := 3 * n / 2; s == study.Full && n > 1 && between < all {
			list = append(list, between)
		}
	}
	return append(list, all)
}

// threaded returns techniques with each number of threads. All run in one process, in turns. Threads
// that a technique does not use sleep.
func threaded(s study.Size, on study.Target, specs ...grid.Spec) (all []grid.Spec) {
	for _, n := range threadCounts(s, on) {
		for _, one := range specs {
			k := knob.Params{}
			for name, v := range one.Knobs {
				k[name] = v
			}
			if on.Workers != 1 { // a single thread cannot be fewer
				k["workers"] = n
			}
			all = append(all, study.Spec(fmt.Sprintf("%s, %s", one.Label, quantity.Plural(n, "thread")), one.Name, k))
		}
	}
	return all
}

// threadsOf returns the number of threads that a record ran on.
func threadsOf(r *record.Record) int { return max(1, r.Impl.Knobs["workers"]) }

// threadParts returns small, middle and large layers of one to many sequences, forward and training,
// and recurrences alone.
func threadParts(s study.Size, on study.Target) []study.Part {
	hidden, batches, steps, long := []int{64, 256, 1024}, []int{1, 16, 64}, 50, 4096
	if s == study.Quick {
		hidden, batches, steps, long = []int{64, 256}, []int{1, 16}, 20, 1024
	}
	layers := study.Part{Specs: threaded(s, on, study.Spec("cudnnstyle", "cudnnstyle", knob.Params{"transposed": 2}), study.Spec("persistent", "persistent", knob.Params{"transposed": 2}))}
	for _, of := range [][2]string{{"forward", "fp32"}, {"forward", "bf16"}, {"train", "fp32"}} {
		p := record.Point{Cell: "lstm", Pass: of[0], Steps: steps, Layers: 1, Precision: of[1]}
		layers.Points = append(layers.Points, study.Product(p, hidden, batches)...)
	}
	scans := study.Part{Specs: threaded(s, on, study.Spec("scan", "scan", knob.Params{"inputbatch": 0, "alone": 1}))}
	for _, h := range hidden {
		scans.Points = append(scans.Points, record.Point{Cell: scanCell, Pass: "forward", Input: 1, Hidden: h, Batch: 1, Steps: long, Layers: 1, Precision: "fp32"})
	}
	return []study.Part{layers, scans}
}

// A threadCurve is a layer with the fastest technique for each number of threads.
type threadCurve struct {
	point record.Point
	best  []*record.Record // from one thread on
}

// up returns the speed-up of the i-th record over one thread.
func (s threadCurve) up(i int) estimate.Estimate { return estimate.TimesAsFast(s.best[0], s.best[i]) }

// ideal returns the speed-up of the i-th record over its number of threads.
func (s threadCurve) ideal(i int) estimate.Estimate {
	return s.up(i).By(1 / float64(threadsOf(s.best[i])))
}

// peak returns the index of the fastest record.
func (s threadCurve) peak() int {
	best := 0
	for i := range s.best {
		if s.best[i].Seconds() < s.best[best].Seconds() {
			best = i
		}
	}
	return best
}

// threadCurves returns the layers that were measured on one thread and on more.
func threadCurves(recs []record.Record) (all []threadCurve) {
	for _, p := range pick.Points(recs) {
		fastest := map[int]*record.Record{}
		for i := range recs {
			r := &recs[i]
			if r.Point != p || r.Status != record.OK {
				continue
			}
			if n := threadsOf(r); fastest[n] == nil || r.Seconds() < fastest[n].Seconds() {
				fastest[n] = r
			}
		}
		s := threadCurve{point: p}
		for _, r := range fastest {
			s.best = append(s.best, r)
		}
		slices.SortFunc(s.best, func(a, b *record.Record) int { return cmp.Compare(threadsOf(a), threadsOf(b)) })
		if len(s.best) > 1 && threadsOf(s.best[0]) == 1 {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b threadCurve) int { // layers before recurrences alone
		p, q := a.point, b.point
		return cmp.Or(cmp.Compare(q.Cell, p.Cell), cmp.Compare(p.Pass, q.Pass), cmp.Compare(q.Precision, p.Precision), cmp.Compare(p.Hidden, q.Hidden), cmp.Compare(p.Batch, q.Batch))
	})
	return all
}

// A threadGroup is a kind of layer whose curves are reported together.
type threadGroup struct{ cell, pass, precision string }

func (g threadGroup) String() string { return fmt.Sprintf("%s, %s, %s", g.cell, g.pass, g.precision) }

func groupOf(p record.Point) threadGroup { return threadGroup{p.Cell, p.Pass, p.Precision} }

// groupsOf returns the groups of curves, in their order.
func groupsOf(all []threadCurve) (groups []threadGroup) {
	for _, s := range all {
		if g := groupOf(s.point); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// in returns the curves of a group.
func (g threadGroup) in(all []threadCurve) []threadCurve {
	return slices.DeleteFunc(slices.Clone(all), func(s threadCurve) bool { return groupOf(s.point) != g })
}

func reportThreads(recs []record.Record, on study.Target) (*study.Report, error) {
	all := threadCurves(recs)
	if len(all) == 0 {
		return nil, fmt.Errorf("experiments: no layer was measured on one thread and on more")
	}
	rep := &study.Report{Tables: []*table.Table{tableOfThreads(all)}}
	rep.Findings = append(rep.Findings, "Each number of threads uses its fastest technique. Speed-up is over the fastest one on a single thread of the same run; the ideal is the number of threads. All numbers of threads were measured in turns, and threads without work sleep.")
	for _, g := range groupsOf(all) {
		scale(rep, g, g.in(all), on)
	}
	return rep, nil
}

// scale adds the findings and the figure of one group.
func scale(rep *study.Report, g threadGroup, some []threadCurve, on study.Target) {
	var ups, shares []estimate.Estimate
	var fewer estimate.Votes // layers where fewer threads than all are clearly faster than all
	most, worst, best := 0, 0, 0
	for i, s := range some {
		last, at := len(s.best)-1, s.peak()
		most = max(most, threadsOf(s.best[last]))
		fewer.Add(estimate.Above(1).Holds(estimate.TimesAsFast(s.best[last], s.best[at])))
		ups, shares = append(ups, s.up(at)), append(shares, s.ideal(last).By(100))
		if shares[i].At < shares[worst].At {
			worst = i
		}
		if shares[i].At > shares[best].At {
			best = i
		}
	}
	share := func(i int) string {
		return fmt.Sprintf("%s of the ideal, at %d units, minibatch %d", shares[i].Text("%.0f", " %"), some[i].point.Hidden, some[i].point.Batch)
	}
	mean := estimate.Mean(ups)
	text := fmt.Sprintf("%s: the best number of threads is %s as fast as one (geometric mean of %s). %s reach at most %s, and at least %s.",
		g, mean.Times(), quantity.Plural(len(some), "layer"), quantity.Plural(most, "thread"), share(best), share(worst))
	if fewer.Yes > 0 {
		text += fmt.Sprintf(" Fewer threads than all are clearly faster than all at %d of %d layers.", fewer.Yes, len(some))
	}
	rep.Findings = append(rep.Findings, text)
	rep.Yardstick(fmt.Sprintf("%s: %s one thread on up to %d", g, mean.Times(), most))
	rep.Add(fmt.Sprintf("threads-%s-%s-%s", g.cell, g.pass, g.precision), threadFigure(g, some, on), nil)
}

// tableOfThreads has a row for each layer and number of threads.
func tableOfThreads(all []threadCurve) *table.Table {
	t := &table.Table{Title: "The fastest technique on each number of threads", Columns: []table.Column{
		{Name: "Cell", Key: "cell"}, {Name: "Pass", Key: "pass"}, {Name: "Precision", Key: "precision"},
		{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true}, {Name: "T", Key: "steps", Right: true},
		{Name: "Threads", Key: "threads", Right: true}, {Name: "Technique", Key: "impl"}, {Name: "Time", Key: "seconds", Right: true},
		{Name: "Speed", Key: "flops_per_s", Right: true}, {Name: "Speed-up", Key: "speedup", Right: true}, {Name: "of ideal", Key: "of_ideal", Right: true},
	}}
	for _, s := range all {
		p := s.point
		for i, r := range s.best {
			t.Rows = append(t.Rows, []table.Cell{table.Text(p.Cell), table.Text(p.Pass), table.Text(p.Precision), table.Int(p.Hidden), table.Int(p.Batch), table.Int(p.Steps),
				table.Int(threadsOf(r)), table.Text(r.Impl.Name), table.Time(r),
				table.Throughput(r), show.Number(s.up(i).At, "%.2f×"), show.Number(s.ideal(i).By(100).At, "%.0f %%")})
		}
	}
	return t
}

// threadFigure draws speed-ups over threads, a panel for each minibatch and a line for each size.
func threadFigure(g threadGroup, some []threadCurve, on study.Target) plots.Figure {
	ch := &plots.Chart{
		Title: "Speed-up over one thread: " + g.String(), Subtitle: on.Name,
		Notes: []string{"The fastest technique on each number of threads, over the fastest on one; bars are intervals. The dotted line is the number of threads."},
		X:     plots.Axis{Title: "Threads", Scale: plots.Log, Format: quantity.Size, FormatValue: quantity.Size}, Y: plots.Axis{Title: "Speed-up", Scale: plots.Log, Format: show.Times},
	}
	some = slices.SortedStableFunc(slices.Values(some), func(a, b threadCurve) int {
		return cmp.Or(cmp.Compare(a.point.Batch, b.point.Batch), cmp.Compare(a.point.Hidden, b.point.Hidden))
	})
	for _, s := range some {
		title := fmt.Sprintf("minibatch %d", s.point.Batch)
		if n := len(ch.Panels); n == 0 || ch.Panels[n-1].Title != title {
			ch.Panels = append(ch.Panels, plots.Panel{Title: title, Series: []plots.Series{{Label: "ideal", Reference: true}}})
		}
		panel := &ch.Panels[len(ch.Panels)-1]
		line, ideal := plots.Series{Label: fmt.Sprintf("%d units", s.point.Hidden)}, &panel.Series[0]
		for i, r := range s.best {
			x := float64(threadsOf(r))
			line.Points = append(line.Points, s.up(i).Mark(x))
			if !slices.ContainsFunc(ideal.Points, func(p plots.Point) bool { return p.X == x }) {
				ideal.Points = append(ideal.Points, plots.Point{X: x, Y: x})
			}
			if !slices.Contains(ch.X.Places, x) {
				ch.X.Places = append(ch.X.Places, x)
			}
		}
		slices.SortFunc(ideal.Points, func(a, b plots.Point) int { return cmp.Compare(a.X, b.X) })
		panel.Series = append(panel.Series, line)
	}
	slices.Sort(ch.X.Places)
	return ch
}
