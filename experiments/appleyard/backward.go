package appleyard

import (
	"fmt"
	"maps"
	"math"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// Labels of the stages that the ladder has in training alone.
const (
	weightsAfter = "7 weight gradients after"
	trainGraph   = "7 as a graph"
)

// Backward is the experiment appleyard-backward.
var Backward = study.Experiment{
	ID: "appleyard-backward", Title: "The optimization ladder in training: the forward and the backward pass at each stage",
	Source: "Appleyard et al. 2016, sections 2.1 to 2.6",
	Unlike: "the paper climbs the ladder in the forward pass alone, and says in words what helps the backward pass; " + medianOfRuns,
	Parts: func(s study.Size, on study.Target) []study.Part {
		p := form.LSTM4()
		if s == study.Quick {
			p.Steps = 20
		}
		q := p
		q.Pass = "train"
		last := form.LadderSpecs(p.Layers)[len(form.Ladder(p.Layers))-1]
		return []study.Part{
			{Points: []record.Point{p}, Specs: on.WithGPU(form.LadderSpecs(p.Layers), study.Graphed(form.AsGraph, last))},
			{Points: []record.Point{q}, Specs: trainingStages(p.Layers, on)},
		}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		stages := timesOf(recs)
		if len(stages) == 0 {
			return nil, fmt.Errorf("experiments: no stage of the ladder has records of both the forward pass and training")
		}
		rep := &study.Report{Tables: []*table.Table{backwardTable(stages)}}
		rep.Add("appleyard-backward", backwardFigure(stages, on), nil)
		backwardClaims(rep, stages, on)
		return rep, nil
	},
}

// trainingStages returns the stages as techniques that train. Up to stage 6, each step adds its share to
// the weight gradients, as naive does. The last stage computes them after the propagation.
func trainingStages(layers int, on study.Target) []grid.Spec {
	specs := form.LadderSpecs(layers)
	for i := range specs[1:] {
		specs[i+1].Knobs = maps.Clone(specs[i+1].Knobs)
		specs[i+1].Knobs["weightgrad"] = 1
	}
	after := specs[len(specs)-1]
	after.Label, after.Knobs = weightsAfter, maps.Clone(after.Knobs)
	after.Knobs["weightgrad"] = 0
	return append(specs, on.WithGPU([]grid.Spec{after}, study.Graphed(trainGraph, after))...)
}

// A stageTimes is the times of a stage's two passes, in seconds.
type stageTimes struct {
	label             string
	cells             int // layers × steps
	forward, backward estimate.Estimate
}

// timesOf returns the stages of which both passes were measured, in the order of the ladder.
func timesOf(recs []record.Record) (all []stageTimes) {
	labels := []string{}
	for _, s := range trainingStages(form.LSTM4().Layers, study.Target{GPU: true}) {
		labels = append(labels, s.Label)
	}
	forwardOf := map[string]string{weightsAfter: labels[len(labels)-3], trainGraph: form.AsGraph} // weight gradients are no part of it
	of := func(label, pass string) *record.Record {
		return pick.Find(recs, label, func(p record.Point) bool { return p.Pass == pass })
	}
	for _, label := range labels {
		forward, ok := forwardOf[label]
		if !ok {
			forward = label
		}
		a, b := of(forward, "forward"), of(label, "train")
		if a == nil || b == nil || b.Seconds() <= a.Seconds() {
			continue
		}
		all = append(all, stageTimes{label: label, cells: a.Point.Layers * a.Point.Steps, forward: secondsOf(a), backward: between(secondsOf(a), secondsOf(b))})
	}
	return all
}

// secondsOf is a record's time with its interval.
func secondsOf(r *record.Record) estimate.Estimate {
	if r.Stats.Lo == nil || r.Stats.Hi == nil {
		return estimate.Estimate{At: r.Seconds(), Lo: 0, Hi: estimate.Inf}
	}
	return estimate.Estimate{At: r.Seconds(), Lo: *r.Stats.Lo, Hi: *r.Stats.Hi}
}

// between is the time of b beyond that of a. It spans both intervals.
func between(a, b estimate.Estimate) estimate.Estimate {
	return estimate.Estimate{At: b.At - a.At, Lo: max(0, b.Lo-a.Hi), Hi: b.Hi - a.Lo}
}

// gain is how many times as fast b is as a.
func gain(a, b estimate.Estimate) estimate.Estimate {
	e := estimate.Estimate{At: a.At / b.At, Lo: 0, Hi: estimate.Inf}
	if a.Hi < estimate.Inf && b.Lo > 0 && b.Hi < estimate.Inf {
		e.Lo, e.Hi = a.Lo/b.Hi, a.Hi/b.Lo
	}
	return e
}

func backwardTable(stages []stageTimes) *table.Table {
	t := &table.Table{Title: "The ladder in training: µs a cell; backward is training minus forward, weight gradients included",
		Columns: []table.Column{{Name: "Stage", Key: "stage"}, show.Column("Forward", "forward_us_per_cell"), show.Column("Backward", "backward_us_per_cell"),
			show.Column("Forward, ×", "forward_speedup"), show.Column("Backward, ×", "backward_speedup"),
			show.Column("Step, forward", "forward_step"), show.Column("Step, backward", "backward_step")}}
	for i, s := range stages {
		stepForward, stepBackward := 1.0, 1.0
		if i > 0 {
			stepForward, stepBackward = gain(stages[i-1].forward, s.forward).At, gain(stages[i-1].backward, s.backward).At
		}
		us := 1e6 / float64(s.cells)
		t.Rows = append(t.Rows, []table.Cell{table.Text(s.label), show.Number(us*s.forward.At, "%.4g"), show.Number(us*s.backward.At, "%.4g"),
			show.Ratio(gain(stages[0].forward, s.forward).At), show.Ratio(gain(stages[0].backward, s.backward).At),
			show.Ratio(stepForward), show.Ratio(stepBackward)})
	}
	return t
}

// backwardFigure draws the speed-up of each pass over the first stage.
func backwardFigure(stages []stageTimes, on study.Target) *plots.Bars {
	first := stages[0]
	b := &plots.Bars{
		Title: "The ladder in training: speed-up of each pass over " + first.label, Subtitle: on.Name,
		X: plots.Axis{Title: "Speed-up over " + first.label, Format: show.Times}, Guides: []plots.Guide{{X0: 1, X1: 1}},
		Value: quantity.Factor,
		Notes: []string{"Backward is training minus forward, weight gradients included. Whiskers span the intervals of both."},
	}
	for i, s := range stages {
		g := plots.Group{Label: s.label}
		for _, pass := range []struct {
			name string
			up   estimate.Estimate
		}{{"forward", gain(first.forward, s.forward)}, {"backward", gain(first.backward, s.backward)}} {
			bar := plots.Bar{Series: pass.name, Value: pass.up.At}
			if i > 0 && pass.up.Hi != estimate.Inf {
				bar.Lo, bar.Hi = pass.up.Lo, pass.up.Hi
			}
			g.Bars = append(g.Bars, bar)
		}
		b.Groups = append(b.Groups, g)
	}
	return b
}

// backwardClaims sets what the paper says of the backward pass beside what was measured.
func backwardClaims(rep *study.Report, stages []stageTimes, on study.Target) {
	step := func(from, to string) (estimate.Estimate, bool) {
		var a, b *stageTimes
		for i := range stages {
			switch stages[i].label {
			case from:
				a = &stages[i]
			case to:
				b = &stages[i]
			}
		}
		if a == nil || b == nil {
			return estimate.Estimate{At: math.NaN()}, false
		}
		return gain(a.backward, b.backward), true
	}
	rungs := form.Ladder(form.LSTM4().Layers)
	claim := func(paper, what, from, to string) {
		e, ok := step(from, to)
		if !ok {
			study.NotMeasured(rep, paper, "two stages of the ladder in training")
			return
		}
		study.CompareOf(rep, on, fmt.Sprintf("%s makes the backward pass %s as fast. The paper says that it helps, without a number.", what, e.Times()), paper, e.Times(), e, estimate.Above(1), "")
	}
	claim("the backward pass also benefits from grouped products (section 2.1)", "Grouping the products", rungs[0].Label, rungs[1].Label)
	claim("weight gradients after the propagation are very efficient (section 2.6)", "Computing the weight gradients after the propagation", rungs[len(rungs)-1].Label, weightsAfter)
	if last := stages[len(stages)-1]; last.label != stages[0].label {
		rep.Yardstick(fmt.Sprintf("%s has a backward pass %s as fast as %s, and a forward pass %s as fast", last.label,
			gain(stages[0].backward, last.backward).Times(), stages[0].label, gain(stages[0].forward, last.forward).Times()))
	}
}
