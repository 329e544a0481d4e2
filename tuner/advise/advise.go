// Package advise turns the records of a race into advice: the fastest technique of each layer, how many
// times as fast it is as what runs today, and whether to believe it. It measures nothing.
package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Advice is about one layer, or several that differ in their weights alone.
type Advice struct {
	Layers []string     `json:"layers"` // of the model; null: the point has no model
	Point  record.Point `json:"point"`

	Best  *Timed `json:"best"`  // the fastest technique; null: none has a time
	Today *Timed `json:"today"` // the fastest other program or vendor's library; null: none has a time

	// Times is how many times as fast Best is as Today; null: one of them is missing. Lo and Hi are
	// the ends of its interval; null: unknown.
	Times *float64 `json:"times_as_fast"`
	Lo    *float64 `json:"times_as_fast_lo"`
	Hi    *float64 `json:"times_as_fast_hi"`

	Verdict string   `json:"verdict"` // whether to believe it
	Doubts  []string `json:"doubts"`  // why not

	Memory int64    `json:"mem_bytes"`
	Floor  *float64 `json:"floor_s"` // the least time of a run; null: unknown
	Bound  string   `json:"floor_bound"`

	Use []string `json:"use"` // lines that use the technique
}

// A Timed is a technique or a program with its time. Times are in seconds.
type Timed struct {
	Label   string   `json:"label"`
	Setting string   `json:"setting"` // as --impl spells it
	Seconds float64  `json:"time_s"`  // median of a run or of a call
	P99     *float64 `json:"p99_s"`   // of calls; null: runs were timed
}

// A Model is where layers come from. The zero Model is none.
type Model struct {
	File   string
	Torch  bool                // the file has parameters of PyTorch modules, by their names
	Layers map[string][]string // names of the layers by the ID of the weights that stand for them
}

// Of returns the advice that the records of a run give, in their order. outside reports whether a technique
// is another program.
func Of(recs []record.Record, outside func(name string) bool, m Model) []Advice {
	var points []record.Point
	races := map[record.Point][]*record.Record{}
	for _, r := range quantity.Latest(recs) {
		if races[r.Point] == nil {
			points = append(points, r.Point)
		}
		races[r.Point] = append(races[r.Point], r)
	}
	var all []Advice
	for _, p := range points {
		all = append(all, of(quantity.ByTime(races[p]), outside, m))
	}
	return all
}

// of returns the advice of a race, which is sorted by time.
func of(race []*record.Record, outside func(name string) bool, m Model) Advice {
	p := race[0].Point
	a := Advice{Point: p, Layers: m.Layers[p.Weights], Doubts: []string{}}
	var best, today *record.Record
	for _, r := range race {
		other := outside(r.Impl.Name) || quantity.Vendor(r.Impl.Name)
		switch {
		case r.Seconds() <= 0:
		case other && today == nil:
			today = r
		case !other && best == nil:
			best = r
		}
	}
	a.Best, a.Today = timed(best), timed(today)
	if best == nil {
		for _, r := range race {
			why := quantity.Reason(r)
			if r.Reason != nil {
				why = quantity.OneLine(*r.Reason)
			}
			a.Doubts = append(a.Doubts, fmt.Sprintf("%s has no time: %s", quantity.Label(r), why))
		}
		a.Verdict = "nothing was timed"
		return a
	}
	a.Memory = best.Work.Memory
	if best.Floor != nil {
		a.Floor, a.Bound = &best.Floor.Seconds, best.Floor.Bound
	}
	a.Use = m.use(p)
	a.Doubts = append(a.Doubts, doubts(best, today)...)
	if a.Verdict = "nothing to compare with"; today == nil {
		return a
	}
	v, _ := record.Ratio(best, today)
	a.Times = &v.Value
	if v.Known() {
		a.Lo, a.Hi = &v.Lo, &v.Hi
	}
	a.Verdict = verdict(v)
	return a
}

// verdict says whether to believe a ratio.
func verdict(v record.Interval) string {
	switch {
	case !v.Known():
		return "no: too few samples"
	case v.Leads():
		return "yes: at least " + quantity.Factor(v.Lo)
	case v.Hi < 1:
		return "yes: stay with today's"
	}
	return "no: it may be chance"
}

// timed describes a record; nil: there is none.
func timed(r *record.Record) *Timed {
	if r == nil {
		return nil
	}
	t := &Timed{Label: quantity.Label(r), Setting: setting(r), Seconds: r.Seconds()}
	if c := r.Impl.Choice; c != nil {
		t.Setting = cmp.Or(c.Impl, t.Setting)
		t.Label = t.Setting
	}
	if r.Latency != nil {
		t.P99 = &r.Latency.P99
	}
	return t
}

// setting spells a technique with its knobs, as --impl and the C library read it.
func setting(r *record.Record) string {
	parts := []string{r.Impl.Name}
	for name, v := range r.Impl.Knobs {
		if v != 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", name, v))
		}
	}
	slices.Sort(parts[1:])
	return strings.Join(parts, ":")
}

// doubts returns what the warnings of two records say against them. today may be nil.
func doubts(best, today *record.Record) (list []string) {
	both := []*record.Record{best}
	if today != nil {
		both = append(both, today)
	}
	for _, r := range both {
		for warning, text := range map[string]string{
			record.WarnNoisy: "times of %s are noisy", record.WarnBimodal: "times of %s have two peaks", record.WarnDrift: "times of %s drift",
			record.WarnThrottled: "heat slowed the processor down under %s",
		} {
			if slices.Contains(r.Warnings, warning) {
				list = append(list, fmt.Sprintf(text, timed(r).Label))
			}
		}
		slices.Sort(list)
	}
	for _, s := range quantity.Doubts(both) {
		list = append(list, strings.ToLower(s[:1])+strings.TrimSuffix(s[1:], "."))
	}
	return list
}
