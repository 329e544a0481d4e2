package martin

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
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

// Labels of whole training.
const (
	wholeScan = "LS-LSTM"
	wholeLSTM = "LSTM"

	wholeLaunched = "LSTM, launched" // on a GPU, one sequence: each step by the host, as the paper's
)

// A wholePoint is one of Figure 1 as the paper trains it, with what the paper measured.
type wholePoint struct {
	record.Point
	label string
	paper float64 // 1000 events a second
}

// wholePoints returns the points of lengths that recordings have. Longer sequences would be mostly
// padding.
func wholePoints(s study.Size, on study.Target) (all []wholePoint) {
	add := func(label, cell string, steps, i int, paper float64) {
		if s == study.Quick && (i%2 != 0 || steps<<i > 2048 || steps > 512) {
			return
		}
		n := martinNetwork{cell: cell, hidden: 256, steps: steps, batch: 1 << i}
		all = append(all, wholePoint{n.point(), label, paper})
	}
	for i, paper := range martinLSTM() {
		add(wholeLSTM, "lstm", 256, i, paper)
	}
	if on.GPU {
		add(wholeLaunched, "lstm", 256, 0, martinLSTM()[0])
	}
	for _, l := range martinLengths(on) {
		for i, paper := range l.paper {
			if l.steps <= 2048 {
				add(wholeScan, "ls-lstm", l.steps, i, paper)
			}
		}
	}
	return all
}

// spec is how the point is trained: as in Figure 1, and on a GPU replayed as a graph.
func (w wholePoint) spec(on study.Target) grid.Spec {
	switch {
	case w.label == wholeScan && on.GPU:
		return study.Spec(w.label, "scan", knob.Params{"inputbatch": max(1, form.ScanRows/w.Batch), "graph": 1})
	case w.label == wholeScan:
		return study.Spec(w.label, "scan", nil)
	case on.GPU && w.label == wholeLSTM:
		return study.Graphed(w.label, form.StepByStep(""))
	}
	return form.StepByStep(w.label)
}

// Fig1Training is the experiment martin-fig1-training.
var Fig1Training = study.Experiment{
	ID: "martin-fig1-training", Title: "Whole training of LS-LSTM and LSTM: embedding, output layer, feeding and update included",
	Source: "Martin & Cundy 2017, Figure 1",
	Unlike: "events of a generated camera, not of N-MNIST; at most 2048 steps",
	Trainings: func(s study.Size, on study.Target) (all []study.Training) {
		seconds := 3.0
		if s == study.Quick {
			seconds = 1
		}
		plan := record.TrainingPlan{Data: "events:ahead=50:burnin=30:recordings=200", Optimizer: "adam:lr=0.001", Time: seconds, Every: 1 << 30, Beside: true}
		for _, w := range wholePoints(s, on) {
			all = append(all, study.Training{Part: study.Part{Points: []record.Point{w.Point}, Specs: []grid.Spec{w.spec(on)}}, Plan: plan})
		}
		return all
	},
	Report: reportMartinWhole,
}

// A whole is a point with its record.
type whole struct {
	wholePoint
	train    *record.Record
	overhead study.Overhead
}

func reportMartinWhole(recs []record.Record, on study.Target) (*study.Report, error) {
	var all []whole
	var batches []int
	for _, w := range wholePoints(study.Full, on) {
		here := func(p record.Point) bool { return p == w.Point }
		x := whole{wholePoint: w, train: pick.Find(trainings(recs), w.label, here)}
		if x.train == nil {
			continue
		}
		x.overhead = study.OverheadOf([]*record.Record{x.train})
		all = append(all, x)
		if !slices.Contains(batches, w.Batch) {
			batches = append(batches, w.Batch)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("experiments: no network has been trained")
	}
	slices.Sort(batches)
	rep := &study.Report{}
	rep.Tables = append(rep.Tables,
		wholeTable("Whole training in 1000 events/s, with the paper's in brackets", all, batches, func(w whole) table.Cell {
			return table.Number(estimate.Events(w.train), fmt.Sprintf("%.1f (%g)", estimate.Events(w.train), w.paper)).Of(w.train)
		}),
		wholeTable("Iterations/s of whole training, with those of forward and backward alone in brackets", all, batches, func(w whole) table.Cell {
			text := fmt.Sprintf("%.4g", 1/w.train.Seconds())
			if w.overhead.Known() {
				text += fmt.Sprintf(" (%.4g)", 1/w.overhead.Pass)
			}
			return table.Number(1/w.train.Seconds(), text).Of(w.train)
		}))
	wholeFindings(rep, all, on)
	var trained []record.Record
	for _, w := range all {
		if w.label != wholeLaunched { // it has one point
			trained = append(trained, *w.train)
		}
	}
	fig, err := plots.Lines(trained, plots.Spec{X: "batch", Y: "events", Series: "steps", Panel: "cell", Machine: on.Name, Title: "Martin & Cundy Figure 1 with all that training takes"})
	if err == nil {
		coincide(fig)
		paperRates(fig, wholeLengths(all), on)
	}
	rep.Add("martin-fig1-training", fig, err)
	return rep, nil
}

// trainings returns the records of trainings. A shard also times the pass of a control point.
func trainings(recs []record.Record) []record.Record {
	return slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool { return r.Training == nil })
}

// wholeLengths lists the lengths of points.
func wholeLengths(all []whole) (steps []int) {
	for _, w := range all {
		if !slices.Contains(steps, w.Steps) {
			steps = append(steps, w.Steps)
		}
	}
	return steps
}

// wholeTable has a row for each length and a column for each minibatch.
func wholeTable(title string, all []whole, batches []int, cell func(whole) table.Cell) *table.Table {
	t := &table.Table{Title: title, Columns: []table.Column{{Name: "Network", Key: "network"}, show.Column("T", "steps")}}
	for _, b := range batches {
		t.Columns = append(t.Columns, show.Column(fmt.Sprintf("B=%d", b), fmt.Sprintf("batch_%d", b)))
	}
	var row []table.Cell
	for i, w := range all {
		if i == 0 || w.label != all[i-1].label || w.Steps != all[i-1].Steps {
			row = []table.Cell{table.Text(w.label), table.Int(w.Steps)}
			for range batches {
				row = append(row, show.Missing())
			}
			t.Rows = append(t.Rows, row)
		}
		row[2+slices.Index(batches, w.Batch)] = cell(w)
	}
	return t
}

// wholeFindings compares the LS-LSTM with the LSTM, and whole training with its pass.
func wholeFindings(rep *study.Report, all []whole, on study.Target) {
	lo, hi := math.Inf(1), 0.0
	var most, rival, launched *record.Record
	var more []float64
	for _, w := range all {
		if w.overhead.Known() {
			more = append(more, w.overhead.Percent())
		}
		if w.label == wholeLaunched {
			launched = w.train
		}
		for _, o := range all {
			if w.label == wholeScan && o.label == wholeLSTM && o.Batch == w.Batch {
				ratio := estimate.Events(w.train) / estimate.Events(o.train)
				if lo = min(lo, ratio); ratio > hi {
					hi, most, rival = ratio, w.train, o.train
				}
			}
		}
	}
	if hi > 0 {
		rep.Findings = append(rep.Findings, fmt.Sprintf("LS-LSTM by scan over the LSTM at the same minibatch, whole training: %s× to %s×. The paper reports 1.17× to 175×, with lengths up to 65536; here they end at 2048.", quantity.Ratio(lo), quantity.Ratio(hi)))
		why := ""
		if launched != nil && most.Point.Batch == launched.Point.Batch && estimate.Events(launched) < estimate.Events(rival) {
			why = fmt.Sprintf("the LSTM is replayed as a graph here; launched step by step, it reaches %.1f instead of %.1f thousand events per second, and the factor is %.0f×", estimate.Events(launched), estimate.Events(rival), estimate.Events(most)/estimate.Events(launched))
		}
		v := estimate.MoreEvents(most, rival)
		study.ClaimNear(rep, on, "an LS-LSTM trains up to 77 times as fast as the LSTM at the same minibatch, of those with at most 2048 steps (Figure 1)", "up to "+estimate.Of(v).Times(), v, 77.03, why)
	}
	if len(more) > 0 {
		median := estimate.Middle(more) // which sorts them
		rep.Findings = append(rep.Findings, fmt.Sprintf("In the median of %d points, an iteration takes %.1f %% more than forward and backward alone, timed in turns (from %.1f %% to %.1f %%; below 0 is noise). Embedding and output layer are in both. The rest is feeding, the optimiser, and starting each iteration by itself.", len(more), median, more[0], more[len(more)-1]))
	}
	rep.Findings = append(rep.Findings,
		"Not comparable with the paper: events are of a generated camera, not of N-MNIST.",
		"Sequences end at 2048 steps, since longer ones would be mostly padding; the paper's Figure 1 has up to 65536.",
		"Figure 1 alone, martin-fig1, has no embedding and one softmax, and times forward and backward alone. It also has longer sequences and other ways to run an LSTM.")
}
