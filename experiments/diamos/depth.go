package diamos

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// Depth is the experiment diamos-depth.
var Depth = study.Experiment{
	ID: "diamos-depth", Title: "Deep speech models that learn, on generated speech: depth, skip connections and minibatch",
	Source: "Diamos et al. 2016, Tables 1, 2 and 3 and Figure 8",
	Unlike: "generated speech of a few letters, narrower layers, minutes of Adam; no convolutions, fully connected layer or language model",
	Trainings: func(s study.Size, on study.Target) []study.Training {
		var all []study.Training
		for _, n := range depthNetworks(s, on) {
			for _, rate := range rates(s) {
				for repeat := range seeds(s) {
					part := study.Part{Points: []record.Point{n.point(s)}, Specs: []grid.Spec{way(on, rate, repeat)}}
					all = append(all, study.Training{Part: part, Plan: n.plan(s, rate, repeat)})
				}
			}
		}
		return all
	},
	Report: reportDepth,
}

// way is how all networks are trained. Each rate and each seed has a label of its own.
func way(on study.Target, rate float64, repeat int) grid.Spec {
	label := "persistent"
	if rate != usualRate {
		label += fmt.Sprintf(", rate %g", rate)
	}
	if repeat > 0 {
		label += fmt.Sprintf(", repeat %d", repeat)
	}
	x := study.Spec(label, "persistent", nil)
	if on.GPU {
		return study.Graphed(label, x)
	}
	return x
}

// seeds is how many networks are trained alike.
func seeds(s study.Size) int {
	if s == study.Quick {
		return 1
	}
	return 3
}

// usualRate is the learning rate of the quick size.
const usualRate = 0.003

// rates are the learning rates that each network is trained with. The report takes the best, as the paper does:
// a wide or a deep network wants a lower one than the baseline.
func rates(s study.Size) []float64 {
	if s == study.Quick {
		return []float64{usualRate}
	}
	return []float64{0.001, usualRate}
}

// A depthNetwork is a stack of simple recurrent layers with batch normalisation and shortcuts.
type depthNetwork struct{ layers, hidden, skip, batch int }

// baseline is the network that all exhibits share. The paper's has 48 layers of 1152 units, with skip
// connections over four.
func baseline(s study.Size, on study.Target) depthNetwork {
	switch {
	case s == study.Quick:
		return depthNetwork{24, 32, 4, 16}
	case on.GPU:
		return depthNetwork{48, 128, 4, 32}
	}
	return depthNetwork{24, 64, 4, 32}
}

// spans are the layers that a skip connection spans, as in Table 1; 0: there is none.
func spans() []int { return []int{0, 1, 2, 3, 4, 8} }

// depths are the numbers of layers, as in Tables 2 and 3: from a sixth of the baseline to twice.
func depths(base depthNetwork) []int {
	return []int{base.layers / 6, base.layers / 2, base.layers, base.layers * 4 / 3, base.layers * 2}
}

// batches are the sizes of a minibatch, as in Figure 8.
func batches(base depthNetwork) []int {
	return []int{base.batch / 4, base.batch / 2, base.batch, base.batch * 2, base.batch * 4, base.batch * 8}
}

// spanned is a network of Table 1, which skips so many layers.
func (n depthNetwork) spanned(span int) depthNetwork { n.skip = span; return n }

// thin is a network of Table 2, with as many weights in so many layers.
func (n depthNetwork) thin(layers int) depthNetwork {
	n.hidden = max(4, int(float64(n.hidden)*math.Sqrt(float64(n.layers)/float64(layers)))/4*4)
	n.layers = layers
	return n
}

// deep is a network of Table 3, with so many layers of as many units.
func (n depthNetwork) deep(layers int) depthNetwork { n.layers = layers; return n }

// fed is a network of Figure 8, with so many utterances in a minibatch.
func (n depthNetwork) fed(batch int) depthNetwork { n.batch = batch; return n }

// weights is the number of recurrent and input weights, without those of the first layer's input.
func (n depthNetwork) weights() int { return (2*n.layers - 1) * n.hidden * n.hidden }

// depthNetworks lists the networks of all exhibits, each once.
func depthNetworks(s study.Size, on study.Target) (all []depthNetwork) {
	base := baseline(s, on)
	add := func(n depthNetwork) {
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	for _, span := range spans() {
		add(base.spanned(span))
	}
	for _, layers := range depths(base) {
		add(base.thin(layers))
	}
	for _, layers := range depths(base) {
		add(base.deep(layers))
	}
	for _, batch := range batches(base) {
		add(base.fed(batch))
	}
	return all
}

// Sizes of the task: the bands of a spectrogram, and the classes of generated letters with the blank.
const (
	speechBands   = 40
	speechClasses = 15
)

// point is where a network is trained.
func (n depthNetwork) point(s study.Size) record.Point {
	p := record.Point{Cell: "rnn-relu", Pass: "train", Input: speechBands, Hidden: n.hidden, Layers: n.layers, Output: speechClasses, Steps: 80, Batch: n.batch,
		Precision: "fp32", Transcript: 4, Skip: n.skip, Norm: "batch"}
	if s == study.Quick {
		p.Steps, p.Transcript = 60, 3
	}
	return p
}

// shownTo is how many utterances each network is trained on, whatever its minibatch.
func shownTo(s study.Size) int {
	if s == study.Quick {
		return 16 * 320
	}
	return 32 * 1600
}

// heldOut is how many utterances each record evaluates.
const heldOut = 512

// plan is how a network is trained. All see as many utterances.
func (n depthNetwork) plan(s study.Size, rate float64, repeat int) record.TrainingPlan {
	t := record.TrainingPlan{Data: "speech:phonemes=4:hop=15", Optimizer: fmt.Sprintf("adam:lr=%g:clip=5", rate), Iterations: max(1, shownTo(s)/n.batch), Repeat: repeat}
	if s == study.Quick {
		t.Data = "speech:phonemes=3:hop=18"
	}
	t.Every = max(1, t.Iterations/4)
	t.HeldBatch = min(n.batch, 64)
	t.Batches = heldOut / t.HeldBatch
	return t
}

// networkOf is the network that a record is of.
func networkOf(r *record.Record) depthNetwork {
	return depthNetwork{r.Point.Layers, r.Point.Hidden, r.Point.Skip, r.Point.Batch}
}

// A learned is what the networks that are trained alike have learnt: of each seed, the least cost and the
// fewest errors on held-out utterances in its records, as the paper chooses the best model on a
// development set.
type learned struct {
	depthNetwork
	optimizer     string
	costs, errors []float64 // by seed; costs in nats
	failures      int       // seeds that have none
	failed        string    // why a seed has none; "": each has some
}

// better orders what a network has learnt by different learning rates: by failures, then by the mean cost.
func better(a, b *learned) int {
	return cmp.Or(cmp.Compare(a.failures, b.failures), -cmp.Compare(len(a.costs), len(b.costs)), compareAt(over(a.costs), over(b.costs)), cmp.Compare(a.optimizer, b.optimizer))
}

// rate is the learning rate; 0: unknown.
func (l *learned) rate() float64 {
	_, text, _ := strings.Cut(l.optimizer, "lr=")
	text, _, _ = strings.Cut(text, ":")
	rate, _ := strconv.ParseFloat(text, 64)
	return rate
}

// learnedOf sorts records by network. Each has the best of its learning rates.
func learnedOf(recs []record.Record) map[depthNetwork]*learned {
	all := map[depthNetwork]*learned{}
	for _, l := range learnedBy(recs) {
		if best := all[l.depthNetwork]; best == nil || better(l, best) < 0 {
			all[l.depthNetwork] = l
		}
	}
	return all
}

// learnedBy returns what networks have learnt by each learning rate.
func learnedBy(recs []record.Record) (list []*learned) {
	type course struct {
		network   depthNetwork
		optimizer string
		repeat    int
	}
	best := map[course]*record.Score{}
	failed := map[course]string{}
	for _, r := range quantity.Latest(recs) {
		if r.Training == nil {
			continue
		}
		at := course{networkOf(r), r.Training.Optimizer, r.Training.Repeat}
		if best[at] == nil {
			best[at] = &record.Score{Loss: math.Inf(1)}
		}
		switch h := r.Training.HeldOut; {
		case r.Status != record.OK && r.Status != record.Skipped:
			failed[at] = string(r.Status)
			if r.Reason != nil {
				failed[at] += ": " + *r.Reason
			}
		case h == nil || h.LabelErrors == nil:
		case best[at].LabelErrors == nil:
			one := *h
			best[at] = &one
		default:
			errors := min(*best[at].LabelErrors, *h.LabelErrors)
			best[at].Loss, best[at].LabelErrors = min(best[at].Loss, h.Loss), &errors
		}
	}
	by := map[course]*learned{}
	for at, h := range best {
		seed := at
		at.repeat = 0
		if by[at] == nil {
			by[at] = &learned{depthNetwork: at.network, optimizer: at.optimizer}
			list = append(list, by[at])
		}
		l := by[at]
		if why := failed[seed]; why != "" {
			l.failures, l.failed = l.failures+1, max(l.failed, why)
		}
		if h.LabelErrors != nil {
			l.costs, l.errors = append(l.costs, h.Loss), append(l.errors, *h.LabelErrors)
		}
	}
	for _, l := range list {
		slices.Sort(l.costs)
		slices.Sort(l.errors)
	}
	return list
}

// name names a network in sentences.
func (n depthNetwork) name() string {
	return fmt.Sprintf("%d layers of %d units", n.layers, n.hidden)
}
