package record

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

// Checkpoint is the path of a network's checkpoint in the run in dir. network is its number in the
// whole agenda, from 1, in shards too.
func Checkpoint(dir string, network int) string {
	return filepath.Join(dir, fmt.Sprintf("checkpoint-%d.npz", network))
}

// Checkpoints lists the files with checkpoints of the run in dir.
func Checkpoints(dir string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), checkpoints) // dir itself may contain any characters
	for i, n := range names {
		names[i] = filepath.Join(dir, n)
	}
	return names, err
}

// Training is the state of a training when its record was written. A run of train writes records
// repeatedly. The record's Stats are of the iterations since the previous record.
type Training struct {
	Iterations int     `json:"iterations"`
	Wall       float64 `json:"wall_s"` // of all iterations: feeding, training and reading the loss
	Frames     int64   `json:"frames"` // steps of all sequences so far
	Loss       float64 `json:"loss"`   // mean over the last minibatch

	// MeanLoss is the mean of the losses that were read since the previous record: of MeanOf minibatches,
	// spread evenly, the last one among them. MeanOf is 0 in records of early versions.
	MeanLoss float64 `json:"mean_loss"`
	MeanOf   int     `json:"mean_of"`

	HeldOut   *Score `json:"held_out"`
	Optimizer string `json:"optimizer"`
	Data      string `json:"data"`
	Glorot    bool   `json:"glorot"`   // see TrainingPlan
	Replicas  int    `json:"replicas"` // processes, each with a part of the minibatch; 0: one device
	Repeat    int    `json:"repeat"`   // see TrainingPlan
	Stop      string `json:"stop"`     // limit that ended training: "iterations", "time" or "loss"; "": it continues

	Comparison *Comparison `json:"comparison"` // with double precision; nil: none
	Beside     *Beside     `json:"beside"`     // nil: the pass was not timed

	Convergence *Convergence `json:"convergence"` // nil: the technique does not repeat itself
}

// A Convergence says how an iterative technique solved the minibatches of a training. Where its iterations were
// not enough, the training went back to the last minibatch of which they were.
type Convergence struct {
	Residual float64 `json:"residual"` // largest change of a state by the technique's last iteration, over the largest state: see Verify
	Taken    []Taken `json:"taken"`    // how many iterations it took, and when they became more
}

// Taken is how many iterations of its own a technique took for each minibatch after so many of the training.
type Taken struct {
	After      int `json:"after"`
	Iterations int `json:"iterations"`
}

// Beside compares training with its pass alone. Now and then some iterations are followed by as many
// passes, with the same kind of weights and minibatch. The pass has embedding and output layer, but
// neither feeding nor update.
type Beside struct {
	Pairs          int     `json:"pairs"`       // of iterations and passes since the previous record
	Ratio          float64 `json:"ratio"`       // median of iteration over pass, pair by pair
	Iteration      float64 `json:"iteration_s"` // median, with feeding, update and a part of reading the loss
	Pass           float64 `json:"pass_s"`      // median
	LeastIteration float64 `json:"iteration_min_s"`
	LeastPass      float64 `json:"pass_min_s"`
}

// Trainings returns the newest record of each network among recs, in the order of their first records.
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

// network identifies the network whose training r records.
func (r *Record) network() string {
	return fmt.Sprintf("%+v|%s|%s|%s|%t|%d|%d", r.Point, r.Impl.Label, r.Training.Data, r.Training.Optimizer, r.Training.Glorot, r.Training.Replicas, r.Training.Repeat)
}

// WholeTraining returns last, a network's newest record, with the samples of all its records in recs.
// Each record alone has only the iterations since the previous one.
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

// A Comparison holds the loss of each iteration, the loss in double precision, and the allowed
// deviation.
type Comparison struct {
	Curve []float64 `json:"curve"`
	Loss  []float64 `json:"loss"`  // in double precision
	Width []float64 `json:"width"` // allowed deviation to either side
}

// Apart is the deviation from double precision at each iteration, over the allowed one. It never
// exceeds 1 if training is right. It is nil if nothing was compared.
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

// A Score says how well a network predicts data that it is not trained on.
type Score struct {
	Loss  float64 `json:"loss"`
	Top1  float64 `json:"top1"`  // share of steps whose class is the most likely one,
	Top5  float64 `json:"top5"`  // or among the five most likely,
	Top20 float64 `json:"top20"` // or among the twenty most likely

	// LabelErrors is the label error rate of greedily decoded transcripts, in place of ranks of classes;
	// nil: there are no transcripts.
	LabelErrors *float64 `json:"label_errors"`
}

// A TrainingPlan says what a run of train trains, and until when.
type TrainingPlan struct {
	Data       string  `json:"data"`
	Optimizer  string  `json:"optimizer"`
	Glorot     bool    `json:"glorot,omitempty"`   // first weights are those of Glorot and Bengio (2010): see rnn.Data.Glorot
	Iterations int     `json:"iterations"`         // at which training stops
	Time       float64 `json:"time_s"`             // seconds of iterations after which training stops; 0: no limit
	Loss       float64 `json:"loss"`               // loss at which training stops, the held-out loss if it is evaluated; 0: no limit
	Every      int     `json:"every"`              // iterations between records
	Batches    int     `json:"batches"`            // held-out minibatches that each record evaluates
	Replicas   int     `json:"replicas,omitempty"` // see Training

	// Repeat numbers networks that are trained alike from several seeds, from 0. It is added to the run's
	// seed.
	Repeat int `json:"repeat,omitempty"`

	// HeldBatch is the number of sequences of a held-out minibatch, which has as many frames as one of
	// training. Networks with different batches are then evaluated on the same data; 0: as training.
	HeldBatch int `json:"held_batch,omitempty"`

	// Beside asks for the comparison with the pass alone: see type Beside.
	Beside bool `json:"beside,omitempty"`

	// Reference compares the loss of each iteration with training in double precision. This takes
	// long, so networks must be small. Such a training has one record and no checkpoint.
	Reference bool `json:"reference,omitempty"`
}

// Reached names the limit that a training at t has reached; "": it continues.
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

// Options spells the limits of training and what is recorded as flags of train.
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
