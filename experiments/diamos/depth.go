package diamos

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// Depth is the experiment diamos-depth.
var Depth = study.Experiment{
	ID: "diamos-depth", Title: "Deep speech models that learn, on generated speech: depth, skip connections and minibatch",
	Source: "Diamos et al. 2016, Tables 1, 2 and 3 and Figure 8",
	Unlike: "generated speech of a few letters, narrower layers, minutes of Adam at one rate; no convolutions, fully connected layer or language model",
	Trainings: func(s study.Size, on study.Target) []study.Training {
		var all []study.Training
		for _, n := range depthNetworks(s, on) {
			for repeat := range seeds(s) {
				all = append(all, study.Training{Part: study.Part{Points: []record.Point{n.point(s)}, Specs: []grid.Spec{way(on, repeat)}}, Plan: n.plan(s, repeat)})
			}
		}
		return all
	},
	Report: reportDepth,
}

// way is how all networks are trained. Each seed has a label of its own.
func way(on study.Target, repeat int) grid.Spec {
	label := "persistent"
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
func (n depthNetwork) plan(s study.Size, repeat int) record.TrainingPlan {
	t := record.TrainingPlan{Data: "speech:phonemes=4:hop=15", Optimizer: "adam:lr=0.003:clip=5", Iterations: max(1, shownTo(s)/n.batch), Repeat: repeat}
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
	costs, errors []float64 // by seed; costs in nats
	failed        string    // why a seed has none; "": each has some
}

// learnedOf sorts records by network.
func learnedOf(recs []record.Record) map[depthNetwork]*learned {
	type course struct {
		network depthNetwork
		repeat  int
	}
	best := map[course]*record.Score{}
	all := map[depthNetwork]*learned{}
	for _, r := range quantity.Latest(recs) {
		if r.Training == nil {
			continue
		}
		n := networkOf(r)
		if all[n] == nil {
			all[n] = &learned{depthNetwork: n}
		}
		h := r.Training.HeldOut
		switch at := (course{n, r.Training.Repeat}); {
		case r.Status != record.OK && r.Status != record.Skipped:
			all[n].failed = string(r.Status)
			if r.Reason != nil {
				all[n].failed += ": " + *r.Reason
			}
		case h == nil || h.LabelErrors == nil:
		case best[at] == nil:
			one := *h
			best[at] = &one
		default:
			b := best[at]
			errors := min(*b.LabelErrors, *h.LabelErrors)
			b.Loss, b.LabelErrors = min(b.Loss, h.Loss), &errors
		}
	}
	for at, h := range best {
		l := all[at.network]
		l.costs, l.errors = append(l.costs, h.Loss), append(l.errors, *h.LabelErrors)
	}
	for _, l := range all {
		slices.Sort(l.costs)
		slices.Sort(l.errors)
	}
	return all
}

// name names a network in sentences.
func (n depthNetwork) name() string {
	return fmt.Sprintf("%d layers of %d units", n.layers, n.hidden)
}
