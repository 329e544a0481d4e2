package cpu

import (
	"fmt"
	"slices"

	"rnnbench/rnn/schedule"
)

// An allReduce is a schedule.AllReduce. With one replica it does nothing.
type allReduce struct {
	program *program
	vectors [][]float32
}

func (p *binder) allReduce(op schedule.AllReduce) (work, error) {
	if err := p.device.sums(op); err != nil {
		return nil, err
	}
	w := &allReduce{program: p.program}
	if op.Replicas == 1 {
		return w, nil
	}
	p.sums = true
	for _, v := range op.Sums {
		m := p.matrix(v)
		if m.stride == m.cols {
			w.vectors = append(w.vectors, m.data[:m.rows*m.cols])
			continue
		}
		for i := range m.rows {
			w.vectors = append(w.vectors, m.row(i))
		}
	}
	return w, nil
}

// sums declines a sum over another number of replicas than there are.
func (pl *planner) sums(op schedule.AllReduce) error {
	if op.Replicas == 1 {
		return nil
	}
	if pl.group == nil {
		return fmt.Errorf("cpu: %w: a sum over %d replicas needs as many processes, but this one is alone", schedule.ErrDevice, op.Replicas)
	}
	if n := pl.group.Replicas(); n != op.Replicas {
		return fmt.Errorf("cpu: %w: a sum over %d replicas needs as many processes, but there are %d", schedule.ErrDevice, op.Replicas, n)
	}
	return nil
}

func (w *allReduce) share(int, int, *scratch) {
	if len(w.vectors) > 0 {
		_ = w.program.device.group.Sum(w.vectors...) // the error stays in the group, where Run finds it
	}
}

// reducing returns the stream that has all sums over replicas and nothing else, or -1. Another
// goroutine serves it, so that workers compute while it waits.
func reducing(s *schedule.Schedule) int {
	at := -1
	for _, n := range s.Nodes {
		if _, ok := n.Op.(schedule.AllReduce); ok {
			if at >= 0 && at != n.Stream {
				return -1
			}
			at = n.Stream
		}
	}
	if at < 0 || slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool {
		_, ok := n.Op.(schedule.AllReduce)
		return n.Stream == at && !ok
	}) {
		return -1
	}
	return at
}

// computing returns the number of streams that workers serve.
func computing(s *schedule.Schedule) int {
	if reducing(s) >= 0 {
		return s.Streams - 1
	}
	return s.Streams
}

// reduce runs the stream of sums for n runs, beside the workers.
func (p *program) reduce(n int) {
	q := p.queues[p.reducing]
	for r := range n {
		run := p.done + uint64(r)
		for k, i := range q {
			node := &p.nodes[i]
			ready := func() bool { return p.over(node.wait, run) }
			if p.teams == 1 { // inOrder counts no progress of streams
				ready = func() bool { return p.begun.Load() > run*uint64(len(q))+uint64(k) }
			}
			for !ready() {
				if p.device.pool.err.Load() != nil {
					return
				}
				nap()
			}
			node.work.share(0, 1, nil)
			p.progress[p.reducing].Add(1)
		}
	}
}

// awaitSums waits for the sums that a node depends on. Worker 0, which runs all other nodes, calls it.
func (p *program) awaitSums(wait []turn, run uint64) {
	for _, t := range wait {
		if t.stream == p.reducing {
			p.device.pool.await(&p.progress[p.reducing], run*uint64(len(p.queues[p.reducing]))+t.nodes)
		}
	}
}

// failure returns the error of sums over replicas, if any.
func (p *program) failure() error {
	if !p.sums {
		return nil
	}
	return p.device.group.Err()
}

// leave leaves the group after a run has failed, so that the other replicas get an error and do not
// wait.
func leave(p *program) {
	if p.sums {
		_ = p.device.group.Close() // the run's own error says more
	}
}
