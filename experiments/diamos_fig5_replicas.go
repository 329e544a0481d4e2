package experiments

import (
	"fmt"
	"slices"

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
func replicaCounts(on Target) []int {
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
func fig5Replicas(size Size, on Target) (all []Training) {
	p := fig5Point(size, fig5Shared)
	p.Input, p.OneHot, p.Output = fig5Symbols+2, true, fig5Symbols+1
	for _, n := range replicaCounts(on) {
		specs := []grid.Spec{persistentSpec(replicasLabel(n), 1)}
		all = append(all, Training{Part{[]record.Point{p}, specs}, record.TrainingPlan{
			Data: fmt.Sprintf("copy:delay=2:length=2:symbols=%d", fig5Symbols), Optimizer: "sgd:lr=0.001", Iterations: fig5Records * fig5Every, Every: fig5Every, Replicas: n,
		}})
	}
	return all
}

// replicasRun is the training by n replicas with the samples after its first record; nil: there is none.
func replicasRun(recs []record.Record, n int) *record.Record {
	last := find(recs, replicasLabel(n), func(p record.Point) bool { return p.Batch == fig5Shared })
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
func fig5Measured(r *Report, recs []record.Record, on Target) {
	each := on.say("its part of the cores", "a GPU")
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
		up := missing()
		if one != nil {
			up = number(one.Seconds()/rec.Seconds(), "%.2f")
		}
		t.Rows = append(t.Rows, []table.Cell{table.Int(n), table.Int(fig5Shared / n), table.Number(rec.Seconds(), quantity.SI(rec.Seconds(), "s")),
			table.Number(rec.FLOPS(), quantity.SI(rec.FLOPS(), "FLOP/s")), up})
	}
	if len(t.Rows) == 0 {
		return
	}
	if on.Reduced {
		t.Title += reducedMark
	}
	r.Tables = append(r.Tables, t)
	if one == nil || count < 2 {
		return
	}
	up := timesAsFast(one, most)
	said := fmt.Sprintf("%d replicas train %s as fast as one, measured with minibatch %d, each with %s", count, up.times(), fig5Shared, each)
	if on.GPU {
		share := up.by(1 / float64(count))
		compareOf(r, on, fmt.Sprintf("%s. That is %s of linear scaling.", said, share.by(100).text("%.0f", " %")), fig5Linear, said, share, atLeast(scalesWell), "")
		return
	}
	r.yardstick(said + ": " + faster(up))
	r.Findings = append(r.Findings, fmt.Sprintf("%s: %s. They share the cores that one has alone, so 1.00× means that smaller parts cost nothing.", said, faster(up)))
}

// faster says whether what is e times as fast as another is clearly faster.
func faster(e estimate) string {
	switch {
	case above(1).holds(e) == yes:
		return "clearly faster"
	case below(1).holds(e) == yes:
		return "clearly slower"
	}
	if e.hi == inf {
		return "which is faster cannot be told from so few samples"
	}
	return "which is faster cannot be told, since the interval covers 1"
}
