package cuda

import (
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Sources are the texts of s's kernels with knobs k on a GPU of properties p.
func Sources(s *schedule.Schedule, k knob.Params, p driver.Properties) ([]*driver.Launch, []string, error) {
	var texts []string
	var launches []*driver.Launch
	steps, err := launching(s, k, p)
	for _, step := range steps {
		launches = append(launches, step.Launch)
		texts = append(texts, codegen.Common()+step.Source.Text)
	}
	return launches, texts, err
}

// Early tells of each launch of s whether it may begin ahead of the end of the one before.
func Early(s *schedule.Schedule, k knob.Params, p driver.Properties) (early []bool, err error) {
	steps, err := launching(s, k, p)
	for _, step := range steps {
		early = append(early, step.Early)
	}
	return early, err
}

// HalvesEnd is where, in the memory of s's program, the last part of sums of products ends whose
// left factor is split on the way, and how much memory there is.
func HalvesEnd(s *schedule.Schedule, p driver.Properties) (end, all int64, err error) {
	b, err := newBinder(s, nil, p, nil)
	if err != nil {
		return 0, 0, err
	}
	launches, _, err := Sources(s, nil, p)
	for _, l := range launches {
		if l.Name != "halves" {
			continue
		}
		m, n, k, share, at := int64(l.Args[0]), int64(l.Args[1]), int(l.Args[2]), int(l.Args[4]), int64(l.Args[8])
		if parts := ints.CeilDiv(ints.CeilDiv(k, gemm.DeepHalves), share); parts > 1 {
			end = max(end, at+4*int64(parts)*m*n)
		}
	}
	return end, b.layout.total, err
}

// launching are the steps of s that are launches.
func launching(s *schedule.Schedule, k knob.Params, p driver.Properties) (out []launch.Command, err error) {
	b, err := newBinder(s, k, p, nil)
	if err != nil {
		return nil, err
	}
	_, nodes, err := b.bound(s)
	for _, steps := range nodes {
		for _, step := range steps {
			if step.Launch != nil {
				out = append(out, step)
			}
		}
	}
	return out, err
}

// Portions are those in which a product is formed of split factors.
func Portions(op schedule.Gemm, kept bool, room int64, terms int) []schedule.Gemm {
	return gemm.Portions(op, kept, room, terms)
}

// LimitPieces has the pieces of a product take so many bytes at most, until it is undone.
func LimitPieces(bytes int64) (undo func()) {
	old := gemm.SplitRoom
	gemm.SplitRoom = bytes
	return func() { gemm.SplitRoom = old }
}

// Groupings are those of a layer, the cheapest first, as knobs and as text.
func Groupings(c *cell.Cell, hidden, batch int, weights driver.Element, k knob.Params, p driver.Properties) (knobs []knob.Params, texts []string) {
	b := binder{Target: &launch.Target{Knobs: k, Properties: p}}
	r := newRecurrence(&schedule.Sequence{Cell: c}, c.Inference)
	all, _ := b.groupings(c, layer{hidden: hidden, gates: c.Recurrent, batch: batch, weights: weights, exact: weights == driver.Single, within: within(c), inputs: r.inputs()})
	for _, t := range all {
		knobs = append(knobs, t.knobs)
		texts = append(texts, t.describe())
	}
	return knobs, texts
}

// Gradients are those of the gradient of a layer of c.
func Gradients(c *cell.Cell, hidden, batch int, weights driver.Element, k knob.Params, p driver.Properties) (texts []string) {
	b := binder{Target: &launch.Target{Knobs: k, Properties: p}}
	all, _ := b.backgroupings(c, layer{hidden: hidden, gates: c.Recurrent, batch: batch, weights: weights, exact: weights == driver.Single, within: 0, inputs: 0})
	for _, t := range all {
		texts = append(texts, t.describe())
	}
	return texts
}

// A Division is how a kernel divides a layer or its gradient.
type Division struct {
	Kernel, Sizes                     string
	Blocks, Threads, Shared, Together int
	Room                              int64 // bytes that groups have for what they leave each other
	States                            int   // that a thread carries from step to step
}

// Divisions are those of a layer of c, or of its gradient.
func Divisions(c *cell.Cell, hidden, batch int, weights driver.Element, exact, gradient bool, k knob.Params, p driver.Properties) (out []Division) {
	b := binder{Target: &launch.Target{Knobs: k, Properties: p}}
	l := layer{hidden: hidden, gates: c.Recurrent, batch: batch, weights: weights, exact: exact, within: 0, inputs: 0}
	room, states := partsBytes(hidden, batch, p), len(carried(c))
	list := func(b *binder) ([]grouping, string) { return b.backgroupings(c, l) }
	if !gradient {
		r := newRecurrence(&schedule.Sequence{Cell: c}, c.Inference)
		l.within, l.inputs = within(c), r.inputs()
		room, states = exchangeBytes(hidden, batch), len(c.States)
		list = func(b *binder) ([]grouping, string) { return b.groupings(c, l) }
	}
	all, _ := b.parts(list)
	for _, t := range all {
		out = append(out, Division{Kernel: t.kernel, Sizes: t.sizes, Blocks: t.blocks, Threads: t.threads, Shared: t.shared, Together: t.together, Room: launch.Alignment + room, States: states})
	}
	return out
}

// Moved is what the kernel of a scan reads and writes per unit and step, in
// single precision, in bytes.
func Moved(op schedule.Op) int {
	s := scanCells{}.scan(op)
	return 4 * (len(s.loads) + len(s.outputs(false)) + len(s.outputs(true)))
}

// Within is how the state of c that goes through weights is bounded.
func Within(c *cell.Cell) int { return within(c) }
