package train

import (
	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/train/data"
)

// A minibatch is what one iteration reads, and where its source is afterwards.
type minibatch struct {
	x, target, weight []float32 // weight is nil where all steps count alike
	counted           int       // steps of all sequences that count
	state             []byte
}

// newMinibatch is for a source of so many values and targets.
func newMinibatch(source data.Source, values, targets int) *minibatch {
	m := &minibatch{x: make([]float32, values), target: make([]float32, targets), counted: targets}
	if source.Shape().Weighted {
		m.weight = make([]float32, targets)
	}
	return m
}

// next draws the minibatch from source. The weights of steps that count make their mean.
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

// filled are the matrices of a replica with the minibatch.
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

// A feed forms the next minibatch while the device works on this one.
type feed struct {
	source data.Source
	ready  chan *minibatch
	free   chan *minibatch
	done   chan struct{}
}

// newFeed forms minibatches of so many values and targets.
func newFeed(source data.Source, values, targets int) *feed {
	f := &feed{source: source, ready: make(chan *minibatch, 1), free: make(chan *minibatch, 2), done: make(chan struct{})}
	for range cap(f.free) {
		f.free <- newMinibatch(source, values, targets)
	}
	go f.run()
	return f
}

// feedOf forms the minibatches of t's replicas.
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

// next is the minibatch to train on, which recycle takes back.
func (f *feed) next() *minibatch     { return <-f.ready }
func (f *feed) recycle(m *minibatch) { f.free <- m }

// close ends the feed; its source is then idle.
func (f *feed) close() {
	close(f.done)
	for range f.ready {
	}
}
