package martin

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// A martinNetwork is one of Martin and Cundy (2017), Table 1, with what the paper measured of it:
// cross entropies in nats, and shares in percent.
type martinNetwork struct {
	label, cell          string
	hidden, batch, steps int
	paperTrain, test     float64
	top5, top20          float64
	paper                int // steps of the paper's network that it stands for
}

// martinNetworks returns the networks of the table, the LS-LSTM first. Quick ones are an eighth as
// wide. Their sequences are a quarter as long, or half for the shortest, which must outlast the
// burn-in.
func martinNetworks(s study.Size) []martinNetwork {
	all := []martinNetwork{
		{"", "ls-lstm", 234, 16, 1024, 4.567, 4.856, 10.51, 36.70, 1024},
		{"", "lstm", 256, 256, 128, 4.664, 4.846, 10.62, 37.08, 128},
		{"", "lstm", 256, 256, 256, 4.620, 4.906, 10.11, 35.40, 256},
		{"", "lstm", 256, 256, 512, 4.602, 4.883, 10.45, 36.32, 512},
		{"", "lstm", 256, 256, 1024, 4.611, 4.880, 10.32, 35.92, 1024},
	}
	if s == study.Quick {
		all = slices.Delete(all, 1, 2)
		for i := range all {
			n := &all[i]
			n.hidden, n.batch, n.steps = n.hidden/8, max(4, n.batch/8), n.steps/4
		}
	}
	for i := range all {
		name := "LSTM"
		if all[i].cell == "ls-lstm" {
			name = "LS-LSTM"
		}
		all[i].label = fmt.Sprintf("%s, T=%d", name, all[i].steps)
	}
	return all
}

// point is where the network is trained: pixels embedded in 40 features beside the polarity, and
// two softmaxes over pixels.
func (n martinNetwork) point() record.Point {
	const pixels = 34 * 34
	return record.Point{
		Cell: n.cell, Pass: "train", Input: 41, Hidden: n.hidden, Layers: 2, Output: 2 * pixels, Steps: n.steps, Batch: n.batch, Precision: "fp32",
		Symbols: pixels + 1, Embedding: 40, Groups: 2, Weighted: true,
	}
}

// spec is how the network is trained: by the fastest way that is known ahead.
func (n martinNetwork) spec(on study.Target) grid.Spec {
	switch {
	case n.cell == "ls-lstm" && on.GPU:
		return study.Spec(n.label, "scan", knob.Params{"inputbatch": max(1, form.ScanRows/n.batch), "graph": 1})
	case n.cell == "ls-lstm":
		return study.Spec(n.label, "scan", nil)
	case on.GPU:
		return study.Graphed(n.label, study.Spec("", "persistent", nil))
	}
	return form.StepByStep(n.label)
}

// passOf labels the passes alone of older runs, which timed them apart. slowPass labels those of an
// LSTM that runs step by step, as the paper's did.
func passOf(label string) string { return label + ", pass" }

func slowPass(label string) string { return label + ", pass step by step" }

// martinData has as many recordings as N-MNIST has to train on.
const martinData = "events:ahead=50:burnin=30:recordings=60000"

// heldSteps is the length of held-out sequences, for all networks: that of the longest training
// sequences.
func heldSteps(s study.Size) int {
	if s == study.Quick {
		return 256
	}
	return 1024
}

// training returns how n is trained. Each network has the same time. The paper does not state Adam's
// learning rate; 0.001 is the one that Adam's authors suggest.
func (n martinNetwork) training(s study.Size, on study.Target) record.TrainingPlan {
	t := record.TrainingPlan{Data: martinData, Optimizer: "adam:lr=0.001", Glorot: true, Time: 480, Every: 1, Batches: max(1, 1<<17/(n.batch*n.steps)), Beside: true}
	t.HeldBatch = n.batch * n.steps / heldSteps(s)
	switch {
	case s == study.Quick: // a minute in all
		t.Data, t.Optimizer, t.Time = "events:ahead=50:burnin=30:recordings=500", "adam:lr=0.01", 15
		t.Batches, t.Every = max(1, 1<<13/(n.batch*n.steps)), max(2, 1<<15/(n.batch*n.steps))
	case on.GPU: // about a second each
		t.Every = (1 << 23) / (n.batch * n.steps)
	}
	return t
}

// Train is the experiment martin-train.
var Train = study.Experiment{
	ID: "martin-train", Title: "Training an LS-LSTM and LSTMs to forecast events: loss over time",
	Source: "Martin & Cundy 2017, Table 1 and Figure 2",
	Unlike: "events of a generated camera, not of N-MNIST; minutes, not hours",
	Parts: func(s study.Size, on study.Target) []study.Part {
		var parts []study.Part
		for _, n := range martinNetworks(s) {
			if n.cell == "lstm" && on.GPU {
				parts = append(parts, study.Part{Points: []record.Point{n.point()}, Specs: []grid.Spec{form.StepByStep(slowPass(n.label))}})
			}
		}
		return parts
	},
	Trainings: func(s study.Size, on study.Target) []study.Training {
		var all []study.Training
		for _, n := range martinNetworks(s) {
			all = append(all, study.Training{Part: study.Part{Points: []record.Point{n.point()}, Specs: []grid.Spec{n.spec(on)}}, Plan: n.training(s, on)})
		}
		return all
	},
	Report: reportMartinTrain,
}

// A learned is a network with its records, in the order in which it learned.
type learned struct {
	martinNetwork
	records  []record.Record
	overhead study.Overhead
	pass     float64        // seconds of forward and backward alone; not a number: not measured
	slow     *record.Record // the pass step by step, as the paper's LSTM ran
	train    lossCurve      // training loss
	held     lossCurve      // held-out loss
	means    bool           // the training loss is a mean over minibatches, not of one at each record
}

// learnedOf sorts what was trained by network, the LS-LSTM first.
func learnedOf(recs []record.Record) []learned {
	size := study.Full
	known := func(s study.Size) []martinNetwork {
		return slices.DeleteFunc(martinNetworks(s), func(n martinNetwork) bool {
			return !slices.ContainsFunc(recs, func(r record.Record) bool { return r.Point == n.point() })
		})
	}
	if len(known(study.Quick)) > len(known(study.Full)) {
		size = study.Quick
	}
	var all []learned
	for _, n := range known(size) {
		l := learned{martinNetwork: n}
		here := func(p record.Point) bool { return p == n.point() }
		for _, r := range recs {
			if r.Training != nil && r.Status == record.OK && r.Impl.Label == n.label && here(r.Point) {
				l.records = append(l.records, r)
			}
		}
		slices.SortStableFunc(l.records, func(a, b record.Record) int { return a.Training.Iterations - b.Training.Iterations })
		if len(l.records) > 0 {
			l.slow = pick.Find(recs, slowPass(n.label), here)
			l.weighPass(pick.Find(recs, passOf(n.label), here))
			l.setCurves()
			all = append(all, l)
		}
	}
	return all
}

// weighPass sets the time of the pass: by the training's turns, or by apart, which may be nil.
func (l *learned) weighPass(apart *record.Record) {
	var all []*record.Record
	for i := range l.records {
		all = append(all, &l.records[i])
	}
	l.overhead = study.OverheadOf(all)
	if l.pass = l.overhead.Pass; math.IsNaN(l.pass) && apart != nil {
		l.pass = apart.Seconds()
	}
}

// rest is how much longer an iteration takes than a pass, in percent; not a number: unknown.
func (l learned) rest() float64 {
	if l.overhead.Known() {
		return l.overhead.Percent()
	}
	return 100 * (l.seconds()/l.pass - 1)
}

// last is the latest record.
func (l learned) last() *record.Training { return l.records[len(l.records)-1].Training }

// setCurves sets the curves of losses.
func (l *learned) setCurves() {
	l.means = true
	for _, r := range l.records {
		t := r.Training
		loss := t.MeanLoss
		if t.MeanOf == 0 { // of an early version
			loss, l.means = t.Loss, false
		}
		l.train.add(t.Wall, loss)
		if t.HeldOut != nil {
			l.held.add(t.Wall, t.HeldOut.Loss)
		}
	}
}

// A sooner says how much sooner one network reaches a held-out loss than another.
type sooner struct {
	level  float64 // the lowest loss that both reach; infinite: one of them was not evaluated
	a, b   float64 // seconds of each
	ea, eb bool    // its first record is below the level already: it took as long at most
}

// soonerOf compares a with b.
func soonerOf(a, b learned) sooner {
	s := sooner{level: max(a.held.least(), b.held.least())}
	s.a, s.ea = a.held.reaches(s.level)
	s.b, s.eb = b.held.reaches(s.level)
	return s
}

// times is b's time over a's; not a number: unknown.
func (s sooner) times() float64 {
	if math.IsInf(s.level, 1) || s.ea && s.eb {
		return math.NaN()
	}
	return s.b / s.a
}

// bound says how a quotient of these times is bounded: "at least ", "at most " or "".
func (s sooner) bound() string {
	switch {
	case s.ea:
		return "at least "
	case s.eb:
		return "at most "
	}
	return ""
}

// seconds returns the time of an iteration, feeding and optimiser included: the median over the
// records.
func (l learned) seconds() float64 {
	var all []float64
	for _, r := range l.records {
		if s := r.Seconds(); s > 0 {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func reportMartinTrain(recs []record.Record, on study.Target) (*study.Report, error) {
	all := learnedOf(recs)
	if len(all) == 0 {
		return nil, fmt.Errorf("experiments: no network has been trained")
	}
	rep := &study.Report{}
	rep.Tables = append(rep.Tables, lossTable(all), speedTable(all))
	if all[0].cell == "ls-lstm" && len(all) > 1 {
		rep.Tables = slices.Insert(rep.Tables, 1, soonerTable(all[0], all[1:]))
		quarterClaim(rep, all[0], all[1:], on)
		soonerFindings(rep, all[0], all[1:])
	}
	lengthFindings(rep, all, on)
	incomparable(rep, all, on)
	trainFigures(rep, all, on)
	return rep, nil
}

// trainFigures draws training loss, held-out loss and accuracy over time.
func trainFigures(rep *study.Report, all []learned, on study.Target) {
	var trained []record.Record
	means := true
	for _, l := range all {
		means = means && l.means
		drawn := 0.0
		for i, r := range l.records {
			if r.Training.Wall < 1.1*drawn && i+1 < len(l.records) {
				continue // too near to be told apart on a logarithmic axis
			}
			drawn = r.Training.Wall
			one := *r.Training
			r.Training = &one
			if l.means {
				one.Loss = l.train.loss[i]
			}
			trained = append(trained, r)
		}
	}
	for _, f := range []struct{ name, y, title string }{
		{"martin-train-train", "loss", "Martin & Cundy Figure 2: training loss over time"},
		{"martin-train-heldout", "held-out", "Held-out loss over time"},
		{"martin-train-top20", "top20", "Held-out events among the 20 most likely pixels, over time"},
	} {
		fig, err := plots.Lines(trained, plots.Spec{X: "wall", Y: f.y, Machine: on.Name, Title: f.title})
		if fig != nil {
			fig.X.Scale = plots.Log
		}
		if fig != nil && f.y != "top20" { // all losses are far from 0
			fig.Y.Zero = false
		}
		if fig != nil && f.y == "loss" && means {
			fig.Y.Title = "Mean training loss (nats)"
		}
		rep.Add(f.name, fig, err)
	}
}
