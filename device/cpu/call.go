package cpu

import (
	"errors"
	"sync"
	"time"

	"rnnbench/device"
)

var _ device.Caller = (*program)(nil)

// Call implements device.Caller. The first worker writes inputs, runs and reads outputs. The other
// workers stay awake between calls: waking a thread takes ten times as long as a small layer.
func (p *program) Call(c device.Calls) (device.Called, error) {
	in, err := p.reach(c.In, c.Each)
	if err != nil {
		return device.Called{}, err
	}
	from, err := p.reach(c.Out, c.Read)
	if err != nil {
		return device.Called{}, err
	}
	zeroed := p.zeroed[c.In.ID]
	out, inputs := make([]float32, c.Read), len(c.Inputs)/c.Each
	all := device.Called{Wall: make([]time.Duration, c.N), Run: make([]time.Duration, c.N)}
	err = session{program: p, runs: c.N}.together(func(run func(n int)) {
		epoch := time.Now() // time.Since reads one clock, and time.Now two
		for i := range c.N {
			x := c.Inputs[i%inputs*c.Each:][:c.Each]
			start := time.Since(epoch)
			copy(in, x)
			if zeroed != nil {
				zeroed.known = false
			}
			begin := time.Since(epoch)
			run(1)
			end := time.Since(epoch)
			copy(out, from)
			all.Wall[i], all.Run[i] = time.Since(epoch)-start, end-begin
		}
	})
	return all, err
}

// A session is a number of runs in a row. The workers that they need stay awake throughout.
type session struct {
	*program
	runs   int
	hosted bool // by a host program: see pool.with
}

// together wakes the workers, calls lead on the first one, and waits for the end of all runs. lead
// calls run to execute one or several runs at a time.
func (s session) together(lead func(run func(n int))) error {
	if s.closed {
		return errClosed
	}
	var reduction sync.WaitGroup
	if s.reducing >= 0 {
		reduction.Go(func() { s.reduce(s.runs) })
	}
	done, pool := s.done, s.device.pool
	on := pool.on
	if s.hosted {
		on = pool.with
	}
	err := on(s.seats[:s.awake], func(w int) {
		pool.meet(s.ready, w, s.awake) // all workers are awake now
		if w > 0 {
			s.follow(w)
			return
		}
		lead(func(n int) {
			s.lead(done, n)
			done += uint64(n)
		})
		if s.awake > 1 {
			s.team[0].dismiss(pool)
		}
	})
	reduction.Wait()
	return s.end(err)
}

// end counts all runs, which ended with err, and returns the error of the session.
func (s session) end(err error) error {
	s.done += uint64(s.runs)
	if err != nil {
		s.reset()
		leave(s.program)
		return err
	}
	if err := s.failure(); err != nil {
		return err
	}
	if s.badIndex.Swap(false) {
		return errors.New("cpu: an index is out of range: one-hot inputs and targets must be integers from 0 to their table's size minus 1")
	}
	return nil
}

// lead executes n runs as the first worker and waits for the end of the last one. done counts the
// runs before.
func (s session) lead(done uint64, n int) {
	if s.teams == 1 {
		for r := range n {
			s.inOrder(done + uint64(r))
		}
		return
	}
	end := done + uint64(n)
	s.admitted.Store(end)
	for r := range n {
		s.byStream(0, done+uint64(r))
	}
	for i := range s.progress { // wait for the other teams' last operations
		s.device.pool.await(&s.progress[i], end*uint64(len(s.queues[i])))
	}
}

// follow executes all runs as another worker, which leads a team or helps in one.
func (s session) follow(w int) {
	team := 0
	for s.first(team+1) <= w {
		team++
	}
	if w != s.first(team) {
		s.help(team, w)
		return
	}
	for r := range s.runs {
		run := s.done + uint64(r)
		s.device.pool.await(&s.admitted, run+1)
		s.byStream(team, run)
	}
	s.team[team].dismiss(s.device.pool)
}

// needed returns how many of so many workers are needed to run some nodes as one team: one if it
// shares none of them.
func needed(nodes []node, workers int) int {
	for i := range nodes {
		if nodes[i].pieces > 0 && nodes[i].takers != 1 {
			return workers
		}
	}
	return 1
}
