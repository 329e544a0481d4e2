package results

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// checkpoints matches the files with checkpoints of a run.
const checkpoints = "checkpoint-*.npz"

// Checkpoint is where the run in dir keeps the checkpoint of a network, by its number in the
// plan from 1. Shards count as the whole plan does.
func Checkpoint(dir string, network int) string {
	return filepath.Join(dir, fmt.Sprintf("checkpoint-%d.npz", network))
}

// Checkpoints lists the files with checkpoints of the run in dir.
func Checkpoints(dir string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), checkpoints) // dir itself may hold any characters
	for i, n := range names {
		names[i] = filepath.Join(dir, n)
	}
	return names, err
}

// Training is how far a network had been trained when its record was written: a run of train
// has a record each time. Stats are then of an iteration since the record before.
type Training struct {
	Iterations int     `json:"iterations"`
	Wall       float64 `json:"wall_s"` // of all iterations: feeding, training and reading the loss
	Frames     int64   `json:"frames"` // steps of all sequences so far
	Loss       float64 `json:"loss"`   // mean over the last minibatch
	HeldOut    *Score  `json:"held_out"`
	Optimizer  string  `json:"optimizer"`
	Data       string  `json:"data"`
	Replicas   int     `json:"replicas"` // processes, each with a part of the minibatch; 0: one device
	Stop       string  `json:"stop"`     // limit that ended training: "iterations", "time" or "loss"; "": it goes on

	Comparison *Comparison `json:"comparison"` // with double precision; nil: none
	Beside     *Beside     `json:"beside"`     // nil: the pass was not timed
}

// Beside is training set beside forward and backward alone: now and then some iterations are
// followed by as many passes of such weights and such a minibatch. The pass has embedding and output
// layer, but neither feeding nor update.
type Beside struct {
	Pairs          int     `json:"pairs"`       // of iterations and passes since the record before
	Ratio          float64 `json:"ratio"`       // median of iteration over pass, pair by pair
	Iteration      float64 `json:"iteration_s"` // median, with feeding, update and a part of reading the loss
	Pass           float64 `json:"pass_s"`      // median
	LeastIteration float64 `json:"iteration_min_s"`
	LeastPass      float64 `json:"pass_min_s"`
}

// Trainings is the newest record of each network among recs, in the order in which they began.
func Trainings(recs []Record) []Record {
	var list []Record
	at := map[string]int{}
	for i := range recs {
		r := &recs[i]
		if r.Training == nil {
			continue
		}
		key := r.network()
		j, ok := at[key]
		switch {
		case !ok:
			at[key] = len(list)
			list = append(list, *r)
		case cmp.Or(r.Time.Compare(list[j].Time), cmp.Compare(r.Seq, list[j].Seq)) >= 0:
			list[j] = *r
		}
	}
	return list
}

// network names what r is a record of the training of.
func (r *Record) network() string {
	return fmt.Sprintf("%+v|%s|%s|%s|%d", r.Point, r.Impl.Label, r.Training.Data, r.Training.Optimizer, r.Training.Replicas)
}

// WholeTraining is the newest record of a network with the times of its whole training among
// recs. Each record alone has but the iterations since the one before.
func WholeTraining(last Record, recs []Record) Record {
	if last.Training == nil {
		return last
	}
	var all Samples
	for i := range recs {
		r := &recs[i]
		if r.Training == nil || r.Samples == nil || r.Training.Iterations > last.Training.Iterations || r.network() != last.network() {
			continue
		}
		all.Iters, all.Wall = append(all.Iters, r.Samples.Iters...), append(all.Wall, r.Samples.Wall...)
	}
	if len(all.Wall) == 0 {
		return last
	}
	stats, _ := Summarize(all.Wall, 0)
	stats.Stop = last.Stats.Stop
	all.Device, all.Clock = []float64{}, []float64{}
	last.Samples, last.Stats = &all, &stats
	last.Rate = &Rate{Flops: float64(last.Work.Flops) / stats.Median, Bytes: float64(last.Work.Bytes) / stats.Median}
	return last
}

// A Comparison is the loss of each iteration, in double precision too, and how far it may lie to
// either side.
type Comparison struct {
	Curve []float64 `json:"curve"`
	Loss  []float64 `json:"loss"` // in double precision
	Width []float64 `json:"width"`
}

// Apart is how far a curve lies from double precision at each iteration, in units of what is
// allowed: nowhere above 1 where training is right. It is empty where nothing was compared.
func (t *Training) Apart() []float64 {
	if t == nil || t.Comparison == nil {
		return nil
	}
	c := t.Comparison
	out := make([]float64, min(len(c.Curve), len(c.Loss), len(c.Width)))
	for i := range out {
		out[i] = math.Abs(c.Curve[i]-c.Loss[i]) / c.Width[i]
	}
	return out
}

// A Score is what a network makes of data that it is not trained on.
type Score struct {
	Loss  float64 `json:"loss"`
	Top1  float64 `json:"top1"` // share of steps whose class is the most likely one,
	Top5  float64 `json:"top5"` // or among the 5
	Top20 float64 `json:"top20"`
}

// A TrainingPlan is what a run of train was asked for.
type TrainingPlan struct {
	Data       string  `json:"data"`
	Optimizer  string  `json:"optimizer"`
	Iterations int     `json:"iterations"`         // at which training stops
	Time       float64 `json:"time_s"`             // of iterations, in seconds, after which it stops; 0: never
	Loss       float64 `json:"loss"`               // at which it stops, held-out where that is evaluated; 0: never
	Every      int     `json:"every"`              // iterations from record to record
	Batches    int     `json:"batches"`            // held-out minibatches that each record evaluates
	Replicas   int     `json:"replicas,omitempty"` // see Training

	// HeldBatch divides held-out minibatches, as large as those of training, among so many
	// sequences, so that networks of other batches are evaluated on the same data; 0: as training.
	HeldBatch int `json:"held_batch,omitempty"`

	// Beside times forward and backward alone in turns with the training: see Training.
	Beside bool `json:"beside,omitempty"`

	// Reference holds the loss of each iteration to training in double precision, which takes time:
	// networks must be small. Such a training has one record and no checkpoint.
	Reference bool `json:"reference,omitempty"`
}

// Reached names the limit at which training ends that has come as far as t; "": it goes on.
func (p TrainingPlan) Reached(t *Training) string {
	loss := t.Loss
	if t.HeldOut != nil {
		loss = t.HeldOut.Loss
	}
	switch {
	case p.Iterations > 0 && t.Iterations >= p.Iterations:
		return "iterations"
	case p.Time > 0 && t.Wall >= p.Time:
		return "time"
	case t.Iterations > 0 && loss <= p.Loss:
		return "loss"
	}
	return ""
}

// Options spells until when networks are trained, and what is recorded of it, as train takes it.
func (p *TrainingPlan) Options() string {
	if p == nil {
		return "none"
	}
	text := fmt.Sprintf("--iterations %d --time %gs --loss %g --every %d --held-out %d", p.Iterations, p.Time, p.Loss, p.Every, p.Batches)
	if p.Replicas > 0 {
		text += fmt.Sprintf(" --replicas %d", p.Replicas)
	}
	if p.Beside {
		text += " --beside"
	}
	return text
}
