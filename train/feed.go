package train

import (
	"cmp"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/train/data"
)

// A minibatch is what one iteration reads, and the position of its source afterwards.
type minibatch struct {
	x, target []float32
	ofSteps   []float32 // a value for each step of each sequence: its weight, or its padding; nil: all steps count alike
	counted   int       // steps of all sequences that count, or sequences with transcripts
	state     []byte
	err       error // of reading the source

	transcript int // see data.Shape
}

// newMinibatch makes room for a minibatch of source with so many values and targets.
func newMinibatch(source data.Source, values, targets int) *minibatch {
	shape := source.Shape()
	m := &minibatch{x: make([]float32, values), target: make([]float32, targets), counted: targets, transcript: shape.Transcript}
	switch {
	case shape.Transcript > 0:
		m.counted = targets / (1 + shape.Transcript)
		m.ofSteps = make([]float32, values/shape.Given())
	case shape.Weighted:
		m.ofSteps = make([]float32, targets)
	}
	return m
}

// next draws the minibatch from source. Steps that count get equal weights, which add up to 1.
func (m *minibatch) next(source data.Source) {
	source.Next(m.x, m.target)
	if r, ok := source.(data.Reader); ok {
		m.err = r.Err()
	}
	switch {
	case m.ofSteps == nil || m.err != nil:
		return
	case m.transcript > 0:
		rnn.FillPadding(m.ofSteps, m.target, 1+m.transcript)
		return
	}
	m.counted = 0
	for _, class := range m.target {
		if class >= 0 {
			m.counted++
		}
	}
	for i, class := range m.target {
		if m.ofSteps[i] = 0; class >= 0 {
			m.ofSteps[i] = 1 / float32(m.counted)
		}
	}
}

// ofSteps is where a plan reads the value of each step; nil: there are none.
func ofSteps(p *rnn.Plan) *schedule.Matrix { return cmp.Or(p.Head.Weight, p.Head.Padding) }

// filled lists matrices of a plan with the values of the minibatch, its x for input.
func (m *minibatch) filled(p *rnn.Plan, input *schedule.Matrix) []device.Filled {
	all := []device.Filled{{Matrix: input, Values: m.x}, {Matrix: p.Head.Target, Values: m.target}}
	if m.ofSteps != nil {
		all = append(all, device.Filled{Matrix: ofSteps(p), Values: m.ofSteps})
	}
	return all
}

// write copies the minibatch to where a plan reads it, its x to input.
func (m *minibatch) write(p *rnn.Plan, mem rnn.Memory, input *schedule.Matrix) error {
	for _, f := range m.filled(p, input) {
		if err := mem.Write(f.Matrix, f.Values); err != nil {
			return err
		}
	}
	return nil
}

// A feed draws the next minibatch while the device works on the present one.
type feed struct {
	source data.Source
	ready  chan *minibatch
	free   chan *minibatch
	done   chan struct{}
}

// newFeed starts a feed of minibatches with so many values and targets.
func newFeed(source data.Source, values, targets int) *feed {
	f := &feed{source: source, ready: make(chan *minibatch, 1), free: make(chan *minibatch, 2), done: make(chan struct{})}
	for range cap(f.free) {
		f.free <- newMinibatch(source, values, targets)
	}
	go f.run()
	return f
}

// feedOf starts the feed of t's replicas.
func feedOf(t *Trainer) *feed {
	values, targets := 0, 0
	for _, r := range t.replicas {
		values, targets = values+r.input().Elements(), targets+r.plan.Head.Target.Elements()
	}
	return newFeed(t.Source, values, targets)
}

func (f *feed) run() {
	defer close(f.ready)
	for {
		select {
		case m := <-f.free:
			m.next(f.source)
			m.state = f.source.State()
			select {
			case f.ready <- m:
			case <-f.done:
				return
			}
		case <-f.done:
			return
		}
	}
}

// next returns the minibatch to train on, and recycle takes it back.
func (f *feed) next() *minibatch     { return <-f.ready }
func (f *feed) recycle(m *minibatch) { f.free <- m }

// close ends the feed. Its source is idle afterwards.
func (f *feed) close() {
	close(f.done)
	for range f.ready {
	}
}
