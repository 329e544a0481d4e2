package hwang

import (
	"fmt"
	"math"
	"slices"
	"strings"

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

// wordModel is the network of section 4 with the words that it learns. At quick size network,
// vocabulary and minibatch are smaller, so that something is learnt in a minute.
func wordModel(cell string, s study.Size) (p record.Point, frames int, data string) {
	p, frames = languageModel(cell, study.Full)
	if s == study.Quick {
		p.Hidden, p.Input, p.Output = 128, 2000, 2000
		return p, 256, "words:vocabulary=1999:shuffle=1000"
	}
	return p, frames, "words:vocabulary=37999:classes=20000:shuffle=1000"
}

// wordModels returns the points of hwang-train: each network at each number of streams.
func wordModels(s study.Size) (points []record.Point, data string) {
	base := 2
	if s == study.Quick {
		base = 8
	}
	for _, n := range languageModels() {
		p, frames, words := wordModel(n.cell, s)
		points, data = append(points, minibatches(p, frames, powers(base, enoughStreams))...), words
	}
	return points, data
}

// trainSpecs returns the technique and its baseline. On a GPU, each run of them is one graph replay.
func trainSpecs(on study.Target) (parallel, serial grid.Spec) {
	parallel, serial = study.Spec(intra, "scc", knob.Params{"intra": 1}), study.Spec(baseline, "scc", knob.Params{"intra": 0})
	if on.GPU {
		return study.Graphed(intra, parallel), study.Graphed(baseline, serial)
	}
	return parallel, serial
}

// How long hwang-train trains, in iterations. The baseline is trained for its speed alone.
const (
	wordsGPU   = 4000 // 4.1 million words, about the text twice
	wordsCPU   = 400
	wordsQuick = 400
	speedShare = 10

	speedRecords = 40 // of the baseline, so that a part of it gives an interval
)

// wordOptimizer is plain SGD with clipped gradients. Without the clipping, one stream of the Elman
// network loses again and again what it has learnt.
const wordOptimizer = "sgd:lr=2:clip=0.1"

// Train is the experiment hwang-train.
var Train = study.Experiment{
	ID: "hwang-train", Title: "Learning a language model over the number of streams, by truncated backpropagation",
	Source: "Hwang & Sung 2015, section 4",
	Unlike: "the text is documentation and source of Go, not news",
	Trainings: func(s study.Size, on study.Target) []study.Training {
		points, data := wordModels(s)
		parallel, serial := trainSpecs(on)
		n, held := wordsCPU, 8
		switch {
		case s == study.Quick:
			n, held = wordsQuick, 16
		case on.GPU:
			n = wordsGPU
		}
		plan := record.TrainingPlan{Data: data, Optimizer: wordOptimizer, Iterations: n, Every: n / 20, Batches: held, HeldBatch: enoughStreams, Beside: true}
		speed := plan
		speed.Iterations, speed.Every, speed.Batches, speed.Beside = n/speedShare, max(1, n/speedShare/speedRecords), 0, false
		first := study.Training{Part: study.Part{Points: points, Specs: []grid.Spec{parallel}}, Plan: plan}
		return append([]study.Training{first, {Part: study.Part{Points: points, Specs: []grid.Spec{serial}}, Plan: speed}}, repeats(first)...)
	},
	Report: reportWords,
}

func reportWords(recs []record.Record, on study.Target) (*study.Report, error) {
	rep := &study.Report{}
	var rates, learnt []record.Record
	for _, c := range languageModels() {
		some := pick.Where(recs, func(p record.Point) bool { return p.Cell == c.cell })
		w := newWordRuns(some)
		rates = append(rates, w.rates()...)
		learnt = append(learnt, w.learnt...)
		addWords(rep, w, c.name, on)
	}
	if len(rep.Tables) == 0 {
		return nil, fmt.Errorf("experiments: no trainings of the language model")
	}
	rep.Findings = append(rep.Findings,
		"The paper reports speed alone. It names neither its text nor its learning rate, so the curves of loss are ours: of the documentation and sources of Go, by SGD with the same learning rate for all.",
		"N streams learn N × h words at a time, by BPTT(2h; h): errors flow back through h to 2h − 1 steps. Fewer streams thus learn from longer contexts, and each minibatch covers fewer places of the text. Which of the two changes the loss was not measured.")
	fig, err := plots.Lines(learnt, plots.Spec{X: "frames", Y: "held-out", Series: "batch", Panel: "cell", Machine: on.Name, Title: "Learning a language model: loss against words, by the number of streams"})
	byStreams(fig, "Words that were trained on")
	rep.Add("hwang-train-words", fig, err)
	fig, err = plots.Lines(learnt, plots.Spec{X: "wall", Y: "held-out", Series: "batch", Panel: "cell", Machine: on.Name, Title: "Learning a language model: loss against time, by the number of streams"})
	byStreams(fig, "Seconds of training")
	rep.Add("hwang-train-seconds", fig, err)
	fig, err = plots.Lines(rates, plots.Spec{X: "batch", Y: "events", Panel: "cell", Machine: on.Name, Scale: "log", Title: "Learning a language model: words per second"})
	if inStreams(fig); fig != nil {
		fig.Y.Title = "Words per second"
	}
	rep.Add("hwang-train-speed", fig, err)
	return rep, nil
}

// byStreams labels a figure with a line for each number of streams as the paper does.
func byStreams(ch *plots.Chart, x string) {
	if ch == nil {
		return
	}
	inStreams(ch)
	ch.X.Title, ch.Y.Zero = x, false
	for i, p := range ch.Panels {
		for j, s := range p.Series {
			n, _, _ := strings.Cut(strings.TrimPrefix(s.Label, "B="), ",")
			ch.Panels[i].Series[j].Label = "N = " + n
		}
	}
}

// wordRuns are the trainings of one network, and its passes alone.
type wordRuns struct {
	alone    []record.Record // passes: timed in turns with each training or, in older runs, apart
	learnt   []record.Record // of the technique, each network's in order
	repeated []record.Record // the same from further seeds
	serial   []record.Record // of the baseline
}

func newWordRuns(recs []record.Record) wordRuns {
	var w wordRuns
	for _, r := range recs {
		switch {
		case r.Status != record.OK:
		case r.Training == nil:
			w.alone = append(w.alone, r)
		case r.Training.Repeat > 0:
			w.repeated = append(w.repeated, r)
		case r.Impl.Label == intra:
			w.learnt = append(w.learnt, r)
		case r.Impl.Label == baseline:
			w.serial = append(w.serial, r)
		}
	}
	for _, p := range pick.Points(w.learnt) {
		all := curve(w.learnt, p)
		if o := study.OverheadOf(all); o.Known() {
			w.alone = append(w.alone, timed(all[len(all)-1], intra, o.Pass))
		}
	}
	return w
}

// timed returns r as a record of t seconds without a training.
func timed(r *record.Record, label string, t float64) record.Record {
	one := *r
	one.Training, one.Impl.Label = nil, label
	one.Stats = &record.Stats{N: 1, Min: t, Q1: t, Median: t, Q3: t, Max: t, Mean: t, Level: 0.95, Stop: "max_rounds"}
	return one
}

// curve lists the records of a network, from the first on. What was trained twice, after a kill,
// counts once.
func curve(recs []record.Record, p record.Point) []*record.Record {
	list := quantity.Latest(pick.Where(recs, func(q record.Point) bool { return q == p }))
	slices.SortStableFunc(list, func(a, b *record.Record) int { return a.Training.Iterations - b.Training.Iterations })
	return list
}

// pace returns the median time of an iteration between records, feeding and reading the loss
// included; NaN if there is none. The first of several records does not count: caches and clocks
// were cold.
func pace(curve []*record.Record) float64 {
	return estimate.Middle(paces(curve))
}

// paces are the times of an iteration between records, sorted.
func paces(curve []*record.Record) []float64 {
	var list []float64
	for i, r := range curve {
		if i > 0 || len(curve) == 1 {
			list = append(list, r.Seconds())
		}
	}
	slices.Sort(list)
	return list
}

// fasterBy estimates how many times as fast a training is as another, by their paces. The interval spans those of both
// medians, widened by the moment, since they did not take turns; it is unknown of too few.
func fasterBy(slow, fast []float64) estimate.Estimate {
	e := estimate.Estimate{At: estimate.Middle(slow) / estimate.Middle(fast), Lo: 0, Hi: estimate.Inf}
	if len(slow) == 0 || len(fast) == 0 {
		return e
	}
	a, _ := record.Summarize(slow, 0)
	b, _ := record.Summarize(fast, 0)
	if a.Lo != nil && b.Lo != nil {
		e.Lo, e.Hi = *a.Lo / *b.Hi / (1+estimate.Moment), *a.Hi / *b.Lo * (1+estimate.Moment)
	}
	return e
}

// rates are the paces of all networks as records that can be drawn, beside the passes alone.
func (w wordRuns) rates() []record.Record {
	list := slices.Clone(w.alone)
	for i := range list {
		list[i].Impl.Label = "pass alone"
	}
	for _, of := range []struct {
		label string
		recs  []record.Record
	}{{"training, parallel steps", w.learnt}, {"training, baseline", w.serial}} {
		for _, p := range pick.Points(of.recs) {
			all := curve(of.recs, p)
			list = append(list, timed(all[len(all)-1], of.label, pace(all)))
		}
	}
	return list
}

// A streamsRun holds the results of one number of streams.
type streamsRun struct {
	point        record.Point
	alone        float64 // seconds of a pass
	overhead     study.Overhead
	train, slow  float64           // seconds of an iteration: of the technique, of the baseline
	times        estimate.Estimate // as fast as the baseline
	unsteady     float64           // slowest over median time of an iteration
	loss, toLoss float64           // the lowest held-out loss within the words that all have seen; seconds to the highest such loss of all
	mean         estimate.Estimate // of loss over seeds
	seeds        int
}

func (s streamsRun) words(seconds float64) float64 {
	return float64(s.point.Batch*s.point.Steps) / seconds
}

// takes returns the time of an iteration over the time of a pass.
func (s streamsRun) takes() float64 {
	if s.overhead.Known() {
		return s.overhead.Ratio
	}
	return s.train / s.alone
}

// rate is a cell of words per second.
func (s streamsRun) rate(seconds float64) table.Cell {
	if v := s.words(seconds); !math.IsNaN(v) {
		return table.Number(v, quantity.SI(v, "words/s"))
	}
	return show.Missing()
}

// runs returns a run for each number of streams that has learnt. All of them have seen words, and
// all that were evaluated have reached loss; -Inf: none was evaluated.
func (w wordRuns) runs() (list []streamsRun, words int64, loss float64) {
	words, loss = math.MaxInt64, math.Inf(-1)
	all := pick.Points(w.learnt)
	slices.SortFunc(all, func(a, b record.Point) int { return a.Batch - b.Batch })
	for _, p := range all {
		for _, c := range w.seedsOf(p) {
			words = min(words, c[len(c)-1].Training.Frames)
		}
	}
	for _, p := range all {
		s := streamsRun{point: p, alone: math.NaN(), overhead: study.OverheadOf(curve(w.learnt, p)), train: pace(curve(w.learnt, p)), slow: pace(curve(w.serial, p)), toLoss: math.NaN()}
		if r := pick.Find(w.alone, intra, func(q record.Point) bool { return q == p }); r != nil {
			s.alone = r.Seconds()
		}
		var losses []float64
		for i, c := range w.seedsOf(p) {
			l := lowest(c, words)
			if i == 0 {
				s.loss = l
			}
			if !math.IsNaN(l) {
				losses = append(losses, l)
			}
		}
		s.mean, s.seeds = meanOver(losses), len(losses)
		s.times = fasterBy(paces(curve(w.serial, p)), paces(curve(w.learnt, p)))
		if all := paces(curve(w.learnt, p)); len(all) > 0 {
			s.unsteady = all[len(all)-1] / s.train
		}
		if !math.IsNaN(s.loss) {
			loss = max(loss, s.loss)
		}
		list = append(list, s)
	}
	for i, s := range list {
		for _, r := range curve(w.learnt, s.point) {
			if h := r.Training.HeldOut; h != nil && h.Loss <= loss {
				list[i].toLoss = r.Training.Wall
				break
			}
		}
	}
	return list, words, loss
}

// addWords adds the table and findings of one network.
func addWords(rep *study.Report, w wordRuns, name string, on study.Target) {
	list, words, loss := w.runs()
	if len(list) == 0 {
		return
	}
	timeTo := "time to that loss"
	if !math.IsInf(loss, -1) {
		timeTo = fmt.Sprintf("time to %.3f", loss)
	}
	t := &table.Table{
		Title: fmt.Sprintf("Learning by BPTT(2h; h): %s, %s words", name, quantity.SI(float64(words), "")),
		Columns: []table.Column{
			{Name: "N", Key: "batch", Right: true}, {Name: "h", Key: "steps", Right: true},
			{Name: "baseline", Key: "baseline", Right: true}, {Name: "with parallel steps", Key: "intra", Right: true}, {Name: "×", Key: "speedup", Right: true},
			{Name: "pass alone", Key: "alone", Right: true}, {Name: "training takes", Key: "takes", Right: true},
			{Name: "lowest held-out loss", Key: "held_out_loss", Right: true}, {Name: timeTo, Key: "to_loss_s", Right: true},
		},
	}
	for _, s := range list {
		t.Rows = append(t.Rows, []table.Cell{
			table.Int(s.point.Batch), table.Int(s.point.Steps), s.rate(s.slow), s.rate(s.train), show.Ratio(s.slow / s.train),
			s.rate(s.alone), show.Number(100*s.takes(), "%.0f %%"), s.lossCell(), show.Number(s.toLoss, "%.1f s"),
		})
	}
	if slices.ContainsFunc(list, func(s streamsRun) bool { return s.seeds > 1 }) {
		t.Notes = []string{"lowest held-out loss: mean over seeds, with Student's interval; all else is of the first seed"}
	}
	rep.Tables = append(rep.Tables, t)
	wordSpeed(rep, list, name, on)
	wordLoss(rep, list, words, loss, name)
}

// wordSpeed says how fast whole training is.
func wordSpeed(rep *study.Report, list []streamsRun, name string, on study.Target) {
	if one := list[0]; one.point.Batch == 1 && one.slow > 0 {
		study.CompareOf(rep, on, fmt.Sprintf("%s, one stream: whole training is %s as fast with parallelism across steps. The paper says over 10 times.", name, one.times.Text("%.1f", "×")),
			name+": one stream trains over 10 times as fast with parallel steps (section 4)", one.times.Text("%.1f", "×"), one.times, estimate.Above(10), "")
	}
	best, enough := 0.0, math.NaN()
	for _, s := range list {
		best = max(best, s.words(s.train))
		if s.point.Batch == enoughStreams {
			enough = s.words(s.train)
		}
	}
	if len(list) > 1 && enough > 0 {
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s: %d streams train at %s; the best number from 1 to %d trains at %s. The paper says that %d reach almost the maximum. More were not trained here.",
			name, enoughStreams, quantity.SI(enough, "words/s"), enoughStreams, quantity.SI(best, "words/s"), enoughStreams))
	}
	unsteady := 0.0
	for _, s := range list {
		unsteady = max(unsteady, s.unsteady)
	}
	if unsteady > 1.5 {
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s: between two records, iterations took up to %.1f× as long as usual. Another program probably disturbed these trainings, so do not trust their speeds.", name, unsteady))
	}
	wordOverhead(rep, list, name, on)
}

// wordOverhead compares whole training with the pass alone.
func wordOverhead(rep *study.Report, list []streamsRun, name string, on study.Target) {
	var all []study.Overhead
	least, most := math.Inf(1), math.Inf(-1)
	for _, s := range list {
		all = append(all, s.overhead)
		if more := 100 * (s.takes() - 1); !math.IsNaN(more) {
			least, most = min(least, more), max(most, more)
		}
	}
	if most < least {
		return
	}
	here := fmt.Sprintf("%s: feeding, optimiser and reading the loss change the time of a pass by %+.0f to %+.0f %%", name, least, most)
	rep.Yardstick(here)
	if turns := on.OverheadSays(name, all); turns != "" {
		rep.Findings = append(rep.Findings, turns+" The difference is feeding, the optimiser and reading the loss.")
		return
	}
	rep.Findings = append(rep.Findings, here+". Passes were timed apart from the trainings, so a busy machine changes this as well.")
}

// wordLoss adds findings on the losses over the numbers of streams. Of one seed each, none is called the
// best.
func wordLoss(rep *study.Report, list []streamsRun, words int64, loss float64, name string) {
	known := slices.DeleteFunc(slices.Clone(list), func(s streamsRun) bool { return math.IsNaN(s.loss) })
	if len(known) < 2 {
		return
	}
	low, high := known[0].loss, known[0].loss
	fast, slow := known[0], known[0]
	for _, s := range known {
		low, high = min(low, s.loss), max(high, s.loss)
		if s.toLoss < fast.toLoss {
			fast = s
		}
		if s.toLoss > slow.toLoss {
			slow = s
		}
	}
	all := "All"
	if len(known) < len(list) {
		all = "All that were evaluated"
	}
	reach := fmt.Sprintf("%s reach %.3f: the first, N = %d, after %.1f s; the last, N = %d, after %.1f s.", all, loss, fast.point.Batch, fast.toLoss, slow.point.Batch, slow.toLoss)
	if said := overSeeds(known, words, name); said != "" {
		rep.Findings = append(rep.Findings, said+". "+reach)
		rep.Yardstick(said)
		return
	}
	rep.Findings = append(rep.Findings, fmt.Sprintf("%s: within %s words, lowest held-out losses range from %.3f to %.3f nats over N from %d to %d. Each N was trained once, from one seed, so their order may be chance. %s",
		name, quantity.SI(float64(words), ""), low, high, known[0].point.Batch, known[len(known)-1].point.Batch, reach))
	rep.Yardstick(fmt.Sprintf("%s: lowest held-out losses from %.3f to %.3f over N from %d to %d, one seed each", name, low, high, known[0].point.Batch, known[len(known)-1].point.Batch))
}
