package tuner

import (
	"slices"

	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// Floor is the least time that a run of l takes on m by kernels. peak is the measured rate of
// products in FLOP/s; 0: unknown. It is nil if m is nil, or if another program computes l.
func Floor(m *model.Machine, l *Layout, kernels []record.Kernel, peak float64, cold bool) (*model.Floor, error) {
	if m == nil || foreign(l.Schedule) {
		return nil, nil
	}
	p := l.Problem
	if m.GPU == nil && p.Precision == rnn.FP16 { // on a processor only bf16 is faster than fp32
		single := *m
		single.Half = 0
		m = &single
	}
	_, scanned := sequences(l.Schedule)
	weight, state := valueBytes(p.Precision, m.GPU != nil)
	r := model.Run{
		FLOPs: float64(min(p.FLOPs(), l.Schedule.FLOPs())), Bytes: weight, Tensor: p.Precision != rnn.FP32 || l.DeviceKnobs["split"] != 2, Peak: peak,
		Moved: scanned * state, Cold: cold, Graph: l.DeviceKnobs["graph"] != 0, Streams: l.Schedule.Streams,
	}
	if !l.Plan.Part { // else products were computed ahead
		r.Moved += givenBytes(p, weight, state)
	}
	if scanned == 0 && !l.Plan.Part { // the bytes of scans include states
		r.Moved += stateBytes(p, state)
	}
	switch p.Precision {
	case rnn.TF32:
		r.Peak = max(peak, m.FLOPS*m.Half/2)
	case rnn.INT8: // vectors multiply four times as many values as in fp32, and tiles twice as many as in bf16
		r.Peak = max(peak, m.FLOPS*max(4, 2*m.Half))
	}
	for _, k := range kernels {
		r.Launches += k.Launches
		if g, ok := GroupOf(k); ok && m.GPU != nil {
			r.Tensor = r.Tensor || g.Tensor
		}
	}
	var err error
	if r.Chains, err = l.chains(kernels, weight, m.GPU != nil); err != nil {
		return nil, err
	}
	f, err := m.Floor(r)
	return &f, err
}

// foreign reports whether the vendor's library runs layers of s.
func foreign(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool {
		switch n.Op.(type) {
		case schedule.Vendor, schedule.VendorBackward, schedule.Foreign:
			return true
		}
		return false
	})
}

// chains returns the steps of l that follow each other and multiply states by recurrent weights, of so many bytes
// each: those of persistent kernels, or else of products. Scans have none.
func (l *Layout) chains(kernels []record.Kernel, weight float64, gpu bool) ([]model.Chain, error) {
	p := l.Problem
	persistent, scanned := sequences(l.Schedule)
	if p.Cell.Recurrent == 0 || persistent == 0 && scanned > 0 || l.Plan.Part {
		return nil, nil
	}
	multiplied, batch := p.HeadUnits(), p.Batch
	if p.Projection > 0 && persistent > 0 { // the projection is folded into the recurrent weights
		multiplied = p.Hidden
	}
	if gpu {
		batch = fewest(p)
	}
	work, err := model.Recurrent(p.Cell, multiplied, batch, weight)
	if err != nil {
		return nil, err
	}
	share := l.serialShare()
	if persistent > 0 && gpu {
		var all []model.Chain
		for _, k := range kernels {
			if g, ok := GroupOf(k); ok {
				all = append(all, model.Chain{Steps: float64(k.Launches*k.Group.Steps) * share, Work: work, Group: g})
			}
		}
		return all, nil
	}
	steps := float64(persistent)
	if persistent == 0 {
		steps = productSteps(p)
	}
	return []model.Chain{{Steps: steps * share, Work: work, Equal: 1 / share}}, nil
}

// productSteps is the number of steps of p, of all layers and heads, that multiply states by recurrent weights. The
// first step of a pass need not, since its states may be zero.
func productSteps(p rnn.Problem) float64 {
	steps := p.Frames() - 1
	if p.Pass == rnn.Train {
		steps += p.Steps - 1
	}
	return float64(p.Reads() * max(1, p.Heads) * steps)
}

// fewest is how many sequences every step has: those that reach the last step.
func fewest(p rnn.Problem) int {
	n := p.Batch
	for _, length := range rnn.SequenceLengths(p) {
		if length < p.Steps {
			n--
		}
	}
	return n
}

// GroupOf is how k divides a layer among groups of blocks; false where k does not say.
func GroupOf(k record.Kernel) (model.Group, bool) {
	if k.Group == nil || k.Grid == nil {
		return model.Group{}, false
	}
	g := model.Group{Blocks: k.Group.Blocks, Samples: k.Group.Samples, Spread: k.Group.Spread, Tensor: k.Group.Tensor}
	g.Groups = max(1, k.Grid[0]/g.Blocks)
	return g, true
}

// sequences counts the operations of s that run many steps: the steps of persistent layers, and the
// values that scans read and write.
func sequences(s *schedule.Schedule) (persistent int, scanned float64) {
	for _, n := range s.Nodes {
		switch op := n.Op.(type) {
		case schedule.Persistent:
			persistent += op.Steps
		case schedule.PersistentBackward:
			persistent += op.Steps
		case schedule.Scan, schedule.ScanBackward:
			scanned += float64(schedule.Bytes(op)) / 4
		}
	}
	return persistent, scanned
}

// serialShare is the share of all layers' steps that must run one after another. Layers of a wave run
// side by side, each some steps behind the one below. Heads and both ways of a layer may too. A
// layer that reads the other way than the one below starts when that one ends.
func (l *Layout) serialShare() float64 {
	p := l.Problem
	if l.Schedule.Streams == 1 {
		return 1
	}
	share := 1 / float64(max(1, p.Heads))
	switch p.Direction {
	case rnn.BothWays:
		return share / 2
	case rnn.Alternating:
		return share
	}
	layers := p.Layers
	if p.Skip > 0 { // a layer above a shortcut starts when it ends
		layers = min(layers, p.Skip)
	}
	return share * float64(p.Frames()+layers-1) / float64(p.Frames()*layers)
}

// valueBytes is the size of a weight and of a state in memory. A processor keeps states in
// single precision.
func valueBytes(p rnn.Precision, gpu bool) (weight, state float64) {
	switch {
	case p == rnn.INT8:
		return 1, 4
	case p != rnn.BF16 && p != rnn.FP16:
		return 4, 4
	case gpu:
		return 2, 2
	}
	return 2, 4
}

// givenBytes is the bytes of weights and inputs, each read once, and of the gradients of weights.
func givenBytes(p rnn.Problem, weight, state float64) float64 {
	units, weights := float64(p.Ways()*p.Hidden), float64(p.Out())*float64(p.Output)
	for l := range p.Layers {
		if l > 0 || !p.OneHot { // a look-up reads few weights
			weights += units * float64(len(p.Cell.Gates)*p.FanIn(l))
		}
		weights += units * float64(p.Cell.Multiplied()*p.HeadUnits()+p.Projection)
	}
	if p.Pass == rnn.Train {
		weight += 4
	}
	input := state * float64(p.Input)
	switch {
	case p.OneHot:
		input = 4
	case p.Symbols > 0:
		input = 4 * float64(p.Given())
	}
	return weight*weights + input*float64(rnn.StepsBeyond(p, -p.History))
}

// stateBytes is the bytes of the last layer's states, each once. Training keeps the states of all
// layers and reads the gradients of the last layer's.
func stateBytes(p rnn.Problem, state float64) float64 {
	one := state * float64(rnn.StepsBeyond(p, -p.History)) * float64(p.Out())
	if p.Pass == rnn.Train {
		return one * float64(p.Layers+1)
	}
	return one
}

// floorOf converts f for the record of a run that took so many seconds.
func floorOf(f *model.Floor, seconds float64) *record.Floor {
	if f == nil || f.Seconds <= 0 || seconds <= 0 {
		return nil
	}
	out := &record.Floor{Seconds: f.Seconds, Bound: f.Bound, Parts: map[string]float64{}, Bytes: f.Bytes(), Share: f.Seconds / seconds, Error: orNil(f.Error)}
	for _, p := range f.Parts {
		out.Parts[p.String()] += p.Seconds
	}
	return out
}
