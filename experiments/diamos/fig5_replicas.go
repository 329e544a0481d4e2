package diamos

import (
	"fmt"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// fig5Shared is the minibatch that replicas of this machine share: it fits the memory of one device.
const fig5Shared = 64

// fig5Symbols is the number of symbols of the copy task that replicas learn. Its inputs also include
// a blank and a mark, and it has one more class. The task does not affect the speed.
const fig5Symbols = 8

// replicaCounts returns the numbers of replicas that are measured. A machine with fewer GPUs skips
// the rest.
func replicaCounts(on study.Target) []int {
	if on.GPU {
		return []int{1, 2, 4, 8}
	}
	return []int{1, 2}
}

// How long replicas train: by so many iterations between records, which are few because checkpoints are
// large. The first record's are not timed. The six others suffice for an interval of their median.
const (
	fig5Every   = 3
	fig5Records = 7
)

func replicasLabel(n int) string { return "persistent, " + quantity.Plural(n, "replica") }

// fig5Replicas trains the stack by the devices of this machine, or by parts of its cores.
func fig5Replicas(size study.Size, on study.Target) (all []study.Training) {
	p := fig5Point(size, fig5Shared)
	p.Input, p.OneHot, p.Output = fig5Symbols+2, true, fig5Symbols+1
	for _, n := range replicaCounts(on) {
		specs := []grid.Spec{persistentSpec(replicasLabel(n), 1)}
		all = append(all, study.Training{Part: study.Part{Points: []record.Point{p}, Specs: specs}, Plan: record.TrainingPlan{
			Data: fmt.Sprintf("copy:delay=2:length=2:symbols=%d", fig5Symbols), Optimizer: "sgd:lr=0.001", Iterations: fig5Records * fig5Every, Every: fig5Every, Replicas: n,
		}})
	}
	return all
}

// replicasRun is the training by n replicas with the samples after its first record; nil: there is none.
func replicasRun(recs []record.Record, n int) *record.Record {
	last := pick.Find(recs, replicasLabel(n), func(p record.Point) bool { return p.Batch == fig5Shared })
	if last == nil || last.Training == nil {
		return nil
	}
	timed := slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool {
		return r.Status != record.OK || r.Training == nil || r.Training.Iterations <= fig5Every
	})
	whole := record.WholeTraining(*last, timed)
	return &whole
}

// fig5Measured compares training by replicas of this machine with training by one.
func fig5Measured(r *study.Report, recs []record.Record, on study.Target) {
	each := on.Say("its part of the cores", "a GPU")
	t := &table.Table{
		Title: fmt.Sprintf("Training by replicas of this machine, minibatch %d", fig5Shared),
		Columns: []table.Column{
			{Name: "Replicas", Key: "replicas", Right: true}, {Name: "Part", Key: "sequences", Right: true},
			{Name: "iteration", Key: "iteration_s", Right: true}, {Name: "FLOP/s", Key: "flops_per_s", Right: true}, {Name: "× 1 replica", Key: "speedup", Right: true},
		},
		Notes: []string{
			"measured: each replica is a process with " + each + "; gradients are summed over all, layer by layer, beside the backward pass",
			"iteration: includes feeding and the update of weights; median after the first three iterations",
		},
	}
	var one, most *record.Record
	count := 0
	for _, n := range replicaCounts(on) {
		rec := replicasRun(recs, n)
		if rec == nil {
			continue
		}
		if n == 1 {
			one = rec
		}
		most, count = rec, n
		up := show.Missing()
		if one != nil {
			up = show.Ratio(one.Seconds() / rec.Seconds())
		}
		t.Rows = append(t.Rows, []table.Cell{table.Int(n), table.Int(fig5Shared / n), table.Time(rec),
			table.Throughput(rec), up})
	}
	if len(t.Rows) == 0 {
		return
	}
	if on.Reduced {
		t.Title += study.ReducedMark
	}
	r.Tables = append(r.Tables, t)
	if one == nil || count < 2 {
		return
	}
	up := estimate.TimesAsFast(one, most)
	said := fmt.Sprintf("%d replicas train %s as fast as one, measured with minibatch %d, each with %s", count, up.Times(), fig5Shared, each)
	if on.GPU {
		share := up.By(1 / float64(count))
		study.CompareOf(r, on, fmt.Sprintf("%s. That is %s of linear scaling.", said, share.By(100).Text("%.0f", " %")), fig5Linear, said, share, estimate.AtLeast(scalesWell), "")
		return
	}
	r.Yardstick(said + ": " + faster(up))
	r.Findings = append(r.Findings, fmt.Sprintf("%s: %s. They share the cores that one has alone, so 1.00× means that smaller parts cost nothing.", said, faster(up)))
}

// faster says whether what is e times as fast as another is clearly faster.
func faster(e estimate.Estimate) string {
	switch {
	case estimate.Above(1).Holds(e) == estimate.Yes:
		return "clearly faster"
	case estimate.Below(1).Holds(e) == estimate.Yes:
		return "clearly slower"
	}
	if e.Hi == estimate.Inf {
		return "which is faster cannot be told from so few samples"
	}
	return "which is faster cannot be told, since the interval covers 1"
}
