package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"rnnbench/impl"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A part is a product of points and techniques.
type part struct {
	points []results.Point
	specs  []grid.Spec
}

// A plan is what is to be measured.
type plan struct {
	parts   []part
	summary string
	kind    string // of what is done with it, where that is not a sweep
	aside   bool   // its run is not one that commands without a run are to take
}

// newPlan makes a plan of a request.
func newPlan(r grid.Request, b *bench) (plan, error) {
	g, err := grid.New(r, b.vocabulary())
	if err != nil {
		return plan{}, err
	}
	points, err := g.Points()
	if err != nil {
		return plan{}, err
	}
	var p plan
	for _, at := range points {
		if !slices.Contains(b.info.Precision, at.Precision) {
			return plan{}, fmt.Errorf("--precision %s: device %s supports only %s", at.Precision, b.info.Name, strings.Join(b.info.Precision, ", "))
		}
		var specs []grid.Spec
		for _, s := range g.Specs() {
			ok, err := g.Wants(at, s)
			if err != nil {
				return p, err
			}
			if ok {
				if s, err = b.decide(at, s); err != nil {
					return p, err
				}
				specs = append(specs, s)
			}
		}
		same := func(a, b grid.Spec) bool {
			return a.Label == b.Label && a.String() == b.String() && a.Choice == b.Choice
		}
		if n := len(p.parts); n > 0 && slices.EqualFunc(p.parts[n-1].specs, specs, same) {
			p.parts[n-1].points = append(p.parts[n-1].points, at)
		} else {
			p.parts = append(p.parts, part{[]results.Point{at}, specs})
		}
	}
	p.summary, err = g.Summary()
	return p, err
}

// shapes and total count the points without and with techniques.
func (p plan) shapes() (n int) {
	for _, q := range p.parts {
		n += len(q.points)
	}
	return n
}

func (p plan) total() (n int) {
	for _, q := range p.parts {
		n += len(q.points) * len(q.specs)
	}
	return n
}

// specs lists every technique at every point.
func (p plan) specs() []grid.Spec {
	var list []grid.Spec
	for _, q := range p.parts {
		for range q.points {
			list = append(list, q.specs...)
		}
	}
	return list
}

// hash names the plan: the same points and techniques have the same one.
func (p plan) hash() string {
	var list []string
	for _, q := range p.parts {
		list = append(list, grid.Hash(q.points, q.specs))
	}
	if p.kind != "" {
		list = append(list, p.kind)
	}
	if len(list) == 1 {
		return list[0]
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(list, " "))))[:16]
}

// A forecast says what measuring a plan will be like.
type forecast struct {
	total   int
	entries []entry
	whole   bool // every point was laid out
	seconds float64
}

// An entry is one technique at one point. What was not laid out has no memory.
type entry struct {
	point          results.Point
	spec           grid.Spec
	memory         int64 // need; 0: not known
	ops            int
	seconds        float64 // estimate
	code, declined string
}

// known reports whether it was laid out, or would be in vain.
func (e *entry) known() bool { return e.ops > 0 || e.declined != "" }

// patience is for how long measuring looks ahead; a dry run looks all the way.
const patience = 500 * time.Millisecond

// forecast lays out what the plan names, for as long as limit allows (0: any
// time), and estimates how long measuring takes. Settings of knobs are checked
// at every point whatever the limit. Two techniques whose settings come to the
// same are refused: one's records would take the place of the other's. Before
// each, tell is told how many are done.
func (b *bench) forecast(ctx context.Context, p plan, m config.Measure, limit time.Duration, tell func(done int)) (*forecast, error) {
	f := &forecast{total: p.total(), whole: true}
	start := time.Now()
	first := map[string]bool{} // labels that were laid out once
	for _, q := range p.parts {
		for _, at := range q.points {
			labels := map[string]string{} // by the key of their records
			reference := true             // the first technique at a point waits for the reference
			for _, s := range q.specs {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				tell(len(f.entries))
				e := entry{point: at, spec: s}
				if late := limit > 0 && time.Since(start) > limit; late && first[s.Label] {
					f.whole = false
					if err := tuner.CheckKnobs(impl.All(), at, s); err != nil {
						return nil, fmt.Errorf("%v: %w", at, err)
					}
					f.entries = append(f.entries, e)
					continue
				}
				first[s.Label] = true
				l, err := b.layOut(at, s)
				if err != nil {
					return nil, fmt.Errorf("%v: %w", at, err)
				}
				l.Fit(b.free())
				key := l.Key(b.info.Key)
				if other, twice := labels[key]; twice && l.Reason == "" {
					return nil, fmt.Errorf("%v: --impl %s and %s have the same settings: omit one", at, other, s.Label)
				}
				labels[key] = s.Label
				e.code, e.declined = l.Code, l.Reason
				if l.Schedule != nil {
					e.memory, e.ops = l.Need(), len(l.Schedule.Nodes)
				}
				if l.Reason == "" {
					e.seconds = b.estimate(l, m, reference)
					reference = false
				}
				f.entries = append(f.entries, e)
			}
		}
	}
	known, n := 0.0, 0
	for _, e := range f.entries {
		if e.known() {
			known, n = known+e.seconds, n+1
		}
	}
	if n > 0 {
		f.seconds = known / float64(n) * float64(len(f.entries))
	}
	return f, nil
}

// estimate guesses the seconds that measuring a layout takes.
func (b *bench) estimate(l *tuner.Layout, m config.Measure, reference bool) float64 {
	const perOp = 0.5e-6 // handing an operation over
	run := perOp * float64(len(l.Schedule.Nodes))
	flops, copyRate := b.limits.FLOPS, b.limits.Copy
	if flops == 0 {
		flops = 20e9 * float64(max(1, b.info.Workers))
	}
	if copyRate == 0 {
		copyRate = 5e9 * float64(max(1, b.info.Workers))
	}
	// Caches serve most of the traffic; products reach about half of the peak.
	run += math.Max(float64(l.Schedule.FLOPs())/(0.5*flops), float64(l.Schedule.Traffic())/(4*copyRate))
	rounds := float64(m.Rounds+m.MaxRounds) / 2
	measure := rounds * (math.Max(m.MinTime.Seconds(), run) + run)
	if m.PointTimeout > 0 {
		measure = math.Min(measure, m.PointTimeout.Seconds()+run)
	}
	t := measure + math.Max(m.Warmup.Seconds(), run) + float64(l.Need())/2e9
	if m.Verify {
		t += run
		if reference {
			t += math.Min(float64(rnn.ReferenceFLOPs(l.Problem, l.Problem.Batch)), 4e9) / 2e9
		}
	}
	return t
}

// line says what will be measured, in one line.
func (f *forecast) line(summary string) string {
	skipped := map[string]int{}
	n := 0
	for _, e := range f.entries {
		if e.declined != "" {
			skipped[kindOfSkip(e.code)]++
			n++
		}
	}
	s := summary
	if n > 0 {
		var kinds []string
		for _, k := range slices.Sorted(maps.Keys(skipped)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", skipped[k], k))
		}
		least := ""
		if !f.whole {
			least = "at least "
		}
		s += fmt.Sprintf("; %s%d skipped (%s)", least, n, strings.Join(kinds, ", "))
	}
	return s + "; about " + duration(f.seconds)
}

// kindOfSkip is what a reason code says is at fault, in a word.
func kindOfSkip(code string) string {
	if kind, ok := strings.CutPrefix(code, "unsupported_"); ok {
		return kind
	}
	if code == results.ReasonMemory {
		return "memory"
	}
	return "unsupported"
}

// duration spells seconds with the precision of a guess.
func duration(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case s < 1:
		return "1 s"
	case s < 100:
		return fmt.Sprintf("%.0f s", s)
	case s < 100*60:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case s < 48*3600:
		return fmt.Sprintf("%.0f h", d.Hours())
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

// table lists every entry.
func (f *forecast) table() *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Name: "point", Key: "point"}, {Name: "impl", Key: "impl"}, {Key: "ops", Right: true},
		{Name: "memory", Key: "mem_bytes", Right: true}, {Key: "estimate_s", Right: true}, {Key: "status"}, {Key: "reason_code"},
		{Name: "reason", Key: "reason"},
	}}
	for _, e := range f.entries {
		row := []table.Cell{table.Text(e.point.String()), table.Text(e.spec.Label), {}, {}, {}, table.Text("planned"), {}, {}}
		if e.ops > 0 {
			row[2] = table.Int(e.ops)
		}
		if e.memory > 0 {
			row[3] = table.Cell{Text: quantity.Bytes(float64(e.memory)), Value: e.memory}
		}
		if e.declined == "" {
			row[4] = table.Number(e.seconds, "")
		} else {
			row[5], row[6], row[7] = table.Text(string(results.Skipped)), table.Text(e.code), table.Text(e.declined)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// largest is the entry that needs most memory of those that are not skipped.
func (f *forecast) largest() (largest entry) {
	for _, e := range f.entries {
		if e.declined == "" && e.memory > largest.memory {
			largest = e
		}
	}
	return largest
}
