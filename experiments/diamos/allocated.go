package diamos

import (
	"fmt"
	"sync"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/impl"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// memoryScale divides the units and the steps of quick stacks. So their layers and their memory
// shrink to a 256th.
const memoryScale = 16

// memoryLimit is the memory that stacks are to fit into.
func memoryLimit(s study.Size) float64 {
	if s == study.Quick {
		return titanMemory / (memoryScale * memoryScale)
	}
	return titanMemory
}

// of returns u at a size.
func (u utterance) of(s study.Size) utterance {
	if s == study.Quick {
		u.hidden, u.steps = u.hidden/memoryScale, u.steps/memoryScale
	}
	return u
}

// point returns the training of a stack of that many layers.
func (u utterance) point(layers int) record.Point {
	return record.Point{Cell: "rnn-relu", Pass: "train", Hidden: u.hidden, Input: u.hidden, Layers: layers, Batch: u.batch, Steps: u.steps, Precision: "fp32"}
}

// A trainedStack is a stack that is to train in the limit.
type trainedStack struct {
	utterance
	layers int
}

// pairOf is the number of layers of the two stacks whose memory is compared between minibatches.
const pairOf = 2

// deepStacks returns the deepest stacks whose matrices, in the schedule of a persistent layer, fit
// into 95 % of the limit. The rest is left to what a device needs besides.
func deepStacks(s study.Size) []trainedStack {
	us := utterances()
	var all []trainedStack
	for _, i := range []int{2, 4, 5} {
		u := us[i].of(s)
		t := impl.Lookup("persistent")
		if t == nil {
			return nil
		}
		f, err := footprintOf(t, u)
		if err != nil {
			continue
		}
		all = append(all, trainedStack{u, f.deepest(0.95 * memoryLimit(s))})
	}
	return all
}

var deepStacksOnce = map[study.Size]func() []trainedStack{
	study.Full:  sync.OnceValue(func() []trainedStack { return deepStacks(study.Full) }),
	study.Quick: sync.OnceValue(func() []trainedStack { return deepStacks(study.Quick) }),
}

// memoryParts returns two layers at both minibatches by every technique, and the deepest stacks.
func memoryParts(s study.Size, on study.Target) []study.Part {
	us := utterances()
	pair := []record.Point{us[2].of(s).point(pairOf), us[3].of(s).point(pairOf)}
	var deep []record.Point
	for _, x := range deepStacksOnce[s]() {
		if x.layers > 0 {
			deep = append(deep, x.point(x.layers))
		}
	}
	products := form.GemmSpec("cudnnstyle", 2)
	return []study.Part{
		{Points: pair, Specs: on.WithGPU(append(persistentSpecs(), products), form.Vendors()[0])},
		{Points: deep, Specs: on.WithGPU(persistentSpecs(), form.Vendors()[0])},
	}
}

// reportAllocated compares the memory of stacks that really trained with the arithmetic.
func reportAllocated(r *study.Report, recs []record.Record, on study.Target) {
	limit := memoryLimit(study.Full)
	if on.Reduced {
		limit = memoryLimit(study.Quick)
	}
	t := &table.Table{
		Title: fmt.Sprintf("Stacks that trained, with the memory that was allocated; the limit is %s", quantity.SI(limit, "B")),
		Columns: []table.Column{
			show.Column("H", "hidden"), show.Column("B", "batch"), show.Column("T", "steps"), show.Column("L", "layers"), {Name: "Technique", Key: "technique"},
			show.Column("Allocated", "mem_bytes"), show.Column("of the limit", "limit_percent"), show.Column("Weights", "parameters"), show.Column("Time", "time_s"), show.Column("FLOP/s", "flops_per_s"),
		},
		Notes: []string{"allocated: by the device for the run that was timed, weights, gradients and scratch included"},
	}
	for _, p := range pick.Points(recs) {
		for _, label := range pick.Labels(recs) {
			x := pick.Find(recs, label, func(q record.Point) bool { return q == p })
			if x == nil || x.Work.Memory == 0 {
				continue
			}
			flops, _ := show.Rate(x)
			t.Rows = append(t.Rows, []table.Cell{table.Int(p.Hidden), table.Int(p.Batch), table.Int(p.Steps), table.Int(p.Layers), table.Text(label),
				table.Number(float64(x.Work.Memory), quantity.SI(float64(x.Work.Memory), "B")), show.Number(100*float64(x.Work.Memory)/limit, "%.0f %%"),
				table.Number(stackWeights(p), quantity.SI(stackWeights(p), "")), table.Time(x), flops})
		}
	}
	if len(t.Rows) > 0 {
		r.Tables = append(r.Tables, t)
	}
	allocatedClaims(r, recs, on, limit)
}

// stackWeights are the weights of a stack of one-gate layers.
func stackWeights(p record.Point) float64 {
	return 2 * float64(p.Layers) * float64(p.Hidden) * float64(p.Hidden)
}

// allocatedClaims compares what the paper says of memory with what was allocated.
func allocatedClaims(r *study.Report, recs []record.Record, on study.Target, limit float64) {
	pairClaim(r, recs, on)
	const twelve = "12 times as many parameters train on the same hardware (abstract)"
	deep := map[int]*record.Record{}
	for _, s := range []study.Size{study.Full, study.Quick} {
		for _, x := range deepStacksOnce[s]() {
			p := x.point(x.layers)
			if rec := pick.Find(recs, "persistent", func(q record.Point) bool { return q == p }); rec != nil && x.utterance.hidden == utterances()[4].of(s).hidden {
				deep[x.batch] = rec
			}
		}
	}
	many, few := deep[4], deep[64]
	if many == nil || few == nil {
		study.NotMeasured(r, twelve, "trainings of the deepest stacks")
		return
	}
	times := stackWeights(many.Point) / stackWeights(few.Point)
	a, b := float64(many.Work.Memory), float64(few.Work.Memory)
	why := fmt.Sprintf("only whole layers count, and %s at minibatch 64 leave %s of the limit; per byte it is %.1f×", layersWord(few.Point.Layers), quantity.SI(limit-b, "B"), times*b/a)
	if a > limit || b > limit {
		why += fmt.Sprintf("; %s is over the limit of %s", quantity.SI(max(a, b), "B"), quantity.SI(limit, "B"))
	}
	r.Claim(on, twelve, fmt.Sprintf("%s trained in %s at minibatch 4 and %s in %s at 64, %.1f×", layersWord(many.Point.Layers), quantity.SI(a, "B"),
		layersWord(few.Point.Layers), quantity.SI(b, "B"), times), max(a, b) <= limit && !estimate.Differ(times, 12), why)
}

// pairClaim compares the memory of the same layers at two minibatches.
func pairClaim(r *study.Report, recs []record.Record, on study.Target) {
	const sixteen = "minibatch 4 in place of 64 takes 16 times less activation memory (abstract)"
	us := utterances()
	pair := func(u utterance) *record.Record {
		return pick.Find(recs, "persistent", func(p record.Point) bool {
			return p == u.of(study.Full).point(pairOf) || p == u.of(study.Quick).point(pairOf)
		})
	}
	many, few := pair(us[2]), pair(us[3])
	if many == nil || few == nil || many.Work.Memory == 0 || few.Work.Memory == 0 {
		study.NotMeasured(r, sixteen, fmt.Sprintf("trainings of %d layers at both minibatches", pairOf))
		return
	}
	weights := 2 * 4 * stackWeights(many.Point) // and their gradients
	a, b := float64(many.Work.Memory), float64(few.Work.Memory)
	times := (a - weights) / (b - weights)
	ratio := float64(many.Point.Batch) / float64(few.Point.Batch)
	fixed := b - (a-b)/(ratio-1)
	r.Claim(on, sixteen, fmt.Sprintf("%s and %s were allocated for %d layers, %.1f×; %.1f× without weights and their gradients", quantity.SI(a, "B"), quantity.SI(b, "B"), pairOf, a/b, times), !estimate.Differ(times, ratio),
		fmt.Sprintf("%s of each, by a line through both, do not grow with the minibatch; weights and their gradients are %s of that", quantity.SI(fixed, "B"), quantity.SI(weights, "B")))
}
