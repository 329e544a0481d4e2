package train

import (
	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/train/data"
)

// A minibatch is what one iteration reads, and the position of its source afterwards.
type minibatch struct {
	x, target, weight []float32 // weight is nil where all steps count alike
	counted           int       // steps of all sequences that count
	state             []byte
}

// newMinibatch makes room for a minibatch of source with so many values and targets.
func newMinibatch(source data.Source, values, targets int) *minibatch {
	m := &minibatch{x: make([]float32, values), target: make([]float32, targets), counted: targets}
	if source.Shape().Weighted {
		m.weight = make([]float32, targets)
	}
	return m
}

// next draws the minibatch from source. Steps that count get equal weights, which add up to 1.
func (m *minibatch) next(source data.Source) {
	source.Next(m.x, m.target)
	if m.weight == nil {
		return
	}
	m.counted = 0
	for _, class := range m.target {
		if class >= 0 {
			m.counted++
		}
	}
	for i, class := range m.target {
		if m.weight[i] = 0; class >= 0 {
			m.weight[i] = 1 / float32(m.counted)
		}
	}
}

// filled lists a replica's matrices with the values of the minibatch.
func (m *minibatch) filled(r replica) []device.Filled {
	all := []device.Filled{{Matrix: r.input(), Values: m.x}, {Matrix: r.plan.Head.Target, Values: m.target}}
	if m.weight != nil {
		all = append(all, device.Filled{Matrix: r.plan.Head.Weight, Values: m.weight})
	}
	return all
}

// write copies the minibatch to where a plan reads it, its x to input.
func (m *minibatch) write(p *rnn.Plan, mem rnn.Memory, input *schedule.Matrix) error {
	err := mem.Write(input, m.x)
	if err == nil {
		err = mem.Write(p.Head.Target, m.target)
	}
	if err == nil && m.weight != nil {
		err = mem.Write(p.Head.Weight, m.weight)
	}
	return err
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
