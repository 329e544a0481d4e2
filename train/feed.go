package train

import "rnnbench/train/data"

// A minibatch is what one iteration reads, and where its source is afterwards.
type minibatch struct {
	x, target []float32
	state     []byte
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
		f.free <- &minibatch{x: make([]float32, values), target: make([]float32, targets)}
	}
	go f.run()
	return f
}

func (f *feed) run() {
	defer close(f.ready)
	for {
		select {
		case m := <-f.free:
			f.source.Next(m.x, m.target)
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
