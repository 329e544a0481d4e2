package appleyard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// Inputs is the experiment appleyard-inputs.
var Inputs = study.Experiment{
	ID: "appleyard-inputs", Title: "Batched inputs: how many steps an input product should have",
	Source: "Appleyard et al. 2016, section 2.3",
	Unlike: "the paper names the trade-off and measures pairs of steps alone; " + medianOfRuns,
	Parts: func(s study.Size, on study.Target) []study.Part {
		hidden, batch, steps := appleyardGrid(s)
		if s == study.Full {
			hidden = []int{256, 512, 1024, 2048}
		}
		p := form.LSTM4()
		p.Layers, p.Steps = 1, steps
		part := study.Part{Points: study.Product(p, hidden, batch)}
		knobs := form.Ladder(p.Layers)[4].Knobs // all stages before batched inputs
		for _, n := range inputSteps(steps) {
			k := maps.Clone(knobs)
			k["inputbatch"] = n % steps // 0: all
			part.Specs = append(part.Specs, study.Spec(inputLabel(n), "cudnnstyle", k))
		}
		return []study.Part{part}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		points := pick.Points(recs)
		all := measuredInputs(recs, points)
		if len(all) == 0 {
			return nil, errors.New("experiments: no point has records of two numbers of steps per input product")
		}
		rep := &study.Report{Tables: []*table.Table{inputsTable(all)}}
		rep.Add("appleyard-inputs", inputsFigure(all, on), nil)
		inputsClaim(rep, all, on)
		return rep, nil
	},
}

// inputSteps returns the numbers of steps that share an input product: 1, powers of two, and all.
func inputSteps(steps int) (list []int) {
	for n := 1; n < steps; n *= 2 {
		list = append(list, n)
	}
	return append(list, steps)
}

// inputLabel is the label of n steps a product.
func inputLabel(n int) string { return "s=" + fmt.Sprint(n) }

// An inputRace is the records of one point, by the number of steps of an input product.
type inputRace struct {
	record.Point
	steps []int
	by    map[int]*record.Record
}

// measuredInputs returns the races with at least two entrants.
func measuredInputs(recs []record.Record, points []record.Point) (all []inputRace) {
	for _, p := range points {
		race := inputRace{Point: p, by: map[int]*record.Record{}}
		for _, n := range inputSteps(p.Steps) {
			if r := pick.Find(recs, inputLabel(n), func(q record.Point) bool { return q == p }); r != nil {
				race.steps = append(race.steps, n)
				race.by[n] = r
			}
		}
		if len(race.steps) > 1 {
			all = append(all, race)
		}
	}
	return all
}

// best returns the number of steps with the shortest time.
func (r inputRace) best() int {
	return slices.MinFunc(r.steps, func(a, b int) int { return cmp.Compare(r.by[a].Seconds(), r.by[b].Seconds()) })
}

// unbeaten returns the numbers of steps that no other one clearly beats.
func (r inputRace) unbeaten() (list []int) {
	for _, n := range r.steps {
		if !slices.ContainsFunc(r.steps, func(m int) bool {
			return m != n && estimate.Above(1).Holds(estimate.TimesAsFast(r.by[n], r.by[m])) == estimate.Yes
		}) {
			list = append(list, n)
		}
	}
	return list
}

// columnsOf returns all numbers of steps that any race has.
func columnsOf(all []inputRace) (list []int) {
	for _, r := range all {
		list = append(list, r.steps...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func inputsTable(all []inputRace) *table.Table {
	t := &table.Table{Title: "One layer: times as fast as with one step per input product",
		Columns: []table.Column{show.Column("H", "hidden"), show.Column("B", "batch"), show.Column("T", "steps"), show.Column("s=1", "one_s")}}
	columns := columnsOf(all)
	for _, n := range columns {
		if n > 1 {
			t.Columns = append(t.Columns, show.Column(inputLabel(n), fmt.Sprintf("speedup_%d", n)))
		}
	}
	t.Columns = append(t.Columns, show.Column("Best s", "best"))
	for _, r := range all {
		row := []table.Cell{table.Int(r.Hidden), table.Int(r.Batch), table.Int(r.Steps), show.Missing()}
		if one := r.by[1]; one != nil {
			row[3] = table.Time(one)
		}
		for _, n := range columns {
			if n > 1 {
				row = append(row, show.Ratio(estimate.TimesAsFast(r.by[1], r.by[n]).At))
			}
		}
		t.Rows = append(t.Rows, append(row, table.Int(r.best())))
	}
	return t
}

// inputsFigure draws the gain over one step per product, a panel for each minibatch.
func inputsFigure(all []inputRace, on study.Target) *plots.Chart {
	var places []float64
	for _, n := range columnsOf(all) {
		places = append(places, float64(n))
	}
	ch := &plots.Chart{Title: "Batched inputs: LSTM, one layer, forward pass", Subtitle: on.Name,
		X: plots.Axis{Title: "steps per input product", Scale: plots.Log, Places: places}, Y: plots.Axis{Title: "times as fast as one step per product", Format: show.Times}}
	var batches []int
	for _, r := range all {
		batches = append(batches, r.Batch)
	}
	slices.Sort(batches)
	for _, b := range slices.Compact(batches) {
		panel := plots.Panel{Title: fmt.Sprintf("minibatch %d", b), Guides: []plots.Guide{{Y0: 1, Y1: 1}}}
		for _, r := range all {
			if r.Batch != b || r.by[1] == nil {
				continue
			}
			line := plots.Series{Label: fmt.Sprintf("%d units", r.Hidden)}
			for _, n := range r.steps {
				if n > 1 {
					line.Points = append(line.Points, estimate.TimesAsFast(r.by[1], r.by[n]).Mark(float64(n)))
				} else {
					line.Points = append(line.Points, plots.Point{X: 1, Y: 1})
				}
			}
			panel.Series = append(panel.Series, line)
		}
		if len(panel.Series) > 0 {
			ch.Panels = append(ch.Panels, panel)
		}
	}
	return ch
}

// inputsClaim judges whether the best number of steps depends on the size of the layer. Where one number
// is nowhere clearly beaten, it does not.
func inputsClaim(rep *study.Report, all []inputRace, on study.Target) {
	always := columnsOf(all)
	var named []string
	for _, r := range all {
		unbeaten := r.unbeaten()
		always = slices.DeleteFunc(always, func(n int) bool { return slices.Contains(r.steps, n) && !slices.Contains(unbeaten, n) })
		if label := bestOf(r); !slices.Contains(named, label) {
			named = append(named, label)
		}
	}
	const openness = "one number of steps is clearly beaten nowhere, and intervals are too wide to say that it is nowhere slower"
	answer, why := estimate.AnswerOf(len(always) == 0), ""
	if len(always) > 0 {
		answer = estimate.Open
	}
	if i := slices.IndexFunc(always, func(n int) bool { return asFast(all, n) }); i >= 0 {
		answer = estimate.No
		why = fmt.Sprintf("%s is within %.0f %% of the fastest number of steps at each of %s", inputLabel(always[i]), 100*(estimate.Closeness-1), quantity.Plural(len(all), "point"))
	}
	rep.Findings = append(rep.Findings, "The fastest number of steps per input product: "+strings.Join(named, ", ")+". The paper says that it depends on the hyper-parameters."+on.Agree(answer, why, openness))
	study.Settle(rep, on, "the number of steps to batch depends on the hyper-parameters (section 2.3)", "fastest: "+strings.Join(named, ", "), answer, why, openness)
}

// asFast reports whether products of n steps are nowhere slower than others by more than what counts as close, whatever
// the intervals hold.
func asFast(all []inputRace, n int) bool {
	return !slices.ContainsFunc(all, func(r inputRace) bool {
		return slices.ContainsFunc(r.steps, func(m int) bool {
			return m != n && estimate.AtMost(estimate.Closeness).Holds(estimate.TimesAsFast(r.by[n], r.by[m])) != estimate.Yes
		})
	})
}

// bestOf spells the fastest number of steps of a race.
func bestOf(r inputRace) string {
	if n := r.best(); n < r.Steps {
		return fmt.Sprint(n)
	}
	return "all"
}
