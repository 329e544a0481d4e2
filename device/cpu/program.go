package cpu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A program is a schedule with its memory and its operations bound to it.
type program struct {
	device   *Device
	schedule *schedule.Schedule
	knobs    knob.Params
	memory   [][]float32 // per matrix
	format   simd.Format // of packed matrices
	free     func() error
	closed   bool

	prepare []node
	nodes   []node    // in program order
	queues  [][]int32 // per stream, its nodes
	scratch []scratch

	teams    int
	progress []counter // per stream, nodes done in all runs so far
	runs     uint64    // runs done before this sample
	team     []teamState

	sums     bool    // over other replicas
	reducing int     // the stream of sums over replicas; -1: there is none
	begun    counter // sums that may begin, where one team runs everything else

	seats    []int // threads of its workers
	ready    *barrier
	counters []*counter // that operations have
	barriers []*barrier // likewise

	zeroed map[int]*zeroing // by matrix

	badIndex atomic.Bool
}

// A node is an operation ready to run.
type node struct {
	work     work
	stream   int
	pieces   int    // per worker of the team; 0: not worth splitting
	takers   int    // workers of the team that take part, from its leader on; 0: all
	backward bool   // begins with a worker's last piece
	wait     []turn // what must be done on other streams
}

// A turn is a place in a stream: done once so many of its nodes are.
type turn struct {
	stream int
	nodes  uint64
}

// work is an operation bound to memory. Shares of it write different results
// and may run at the same time, in any order; what each computes depends on part
// and parts alone.
type work interface {
	share(part, parts int, s *scratch)
}

// scratch is one worker's own memory.
type scratch struct {
	gemm     *gemm.Scratch
	vectors  [][]float32    // of a fused cell
	products []float32      // of a band of units
	tracks   []fused.Vector // of a recurrence
	weights  [][]float32
	others   []fused.Span
	steps    *fused.Steps
	inputs   []float32 // of a recurrence, packed
	tiles    []fused.Tile
	scan     scanScratch
	part     [1024]float32 // of sums of rows
	step     simd.Coefficients
	team     []scratch // of all workers of the team, in order
	_        [64]byte
}

// counter is one for the workers of an operation.
func (p *program) counter() *counter {
	c := new(counter)
	p.counters = append(p.counters, c)
	return c
}

// barrier is one for n workers of an operation, from the first on.
func (p *program) barrier(first, n int) *barrier {
	b := p.device.pool.barrier(p.device.workers, first, n)
	p.barriers = append(p.barriers, b)
	return b
}

// Write implements device.Program.
func (p *program) Write(m *schedule.Matrix, src []float32) error {
	if w := p.zeroed[m.ID]; w != nil {
		w.known = false
	}
	return p.move(m, src, func(mem []float32) { copy(mem, src) })
}

// Read implements device.Program.
func (p *program) Read(m *schedule.Matrix, dst []float32) error {
	return p.move(m, dst, func(mem []float32) { copy(dst, mem) })
}

func (p *program) move(m *schedule.Matrix, host []float32, f func(mem []float32)) error {
	rows := min(len(host)/m.Cols, m.Rows)
	switch {
	case p.closed:
		return errClosed
	case m.Private():
		return fmt.Errorf("cpu: matrix %s is packed or scratch: it cannot be written or read", m.Name)
	case len(host) == 0 || len(host) != rows*m.Cols:
		return fmt.Errorf("cpu: matrix %s is %d×%d: %d elements are not whole rows of it", m.Name, m.Rows, m.Cols, len(host))
	}
	f(p.memory[m.ID])
	return nil
}

var errClosed = errors.New("cpu: the program is closed")

// Close implements device.Program.
func (p *program) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	return p.free()
}

// Prepare implements device.Program.
func (p *program) Prepare() error {
	if p.closed {
		return errClosed
	}
	for i := range p.prepare {
		err := p.device.pool.on(p.seats, func(w int) {
			own := p.scratch[w]
			own.team = p.scratch // here all workers are one
			p.prepare[i].work.share(w, p.device.workers, &own)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Run implements device.Program.
func (p *program) Run(n int) (device.Sample, error) {
	if p.closed {
		return device.Sample{}, errClosed
	}
	var start, end time.Time
	var beside sync.WaitGroup
	if p.reducing >= 0 {
		beside.Go(func() { p.reduce(n) })
	}
	err := p.device.pool.on(p.seats, func(w int) {
		team := 0
		for p.first(team+1) <= w {
			team++
		}
		p.device.pool.meet(p.ready, w, p.device.workers) // all are awake
		if w == 0 {
			start = time.Now()
		}
		switch {
		case w != p.first(team):
			p.help(team, w)
		case p.teams == 1:
			for r := range n {
				p.inOrder(p.runs + uint64(r))
			}
			p.dismiss(team)
		default:
			for r := range n {
				p.byStream(team, p.runs+uint64(r))
			}
			p.dismiss(team)
		}
		if w == 0 {
			for s := range p.progress { // the other teams' last operations
				if p.teams > 1 {
					p.device.pool.await(&p.progress[s], (p.runs+uint64(n))*uint64(len(p.queues[s])))
				}
			}
			end = time.Now()
		}
	})
	beside.Wait()
	p.runs += uint64(n)
	if err != nil {
		p.reset()
		p.leave()
		return device.Sample{}, err
	}
	if err := p.failure(); err != nil {
		return device.Sample{}, err
	}
	if p.badIndex.Swap(false) {
		return device.Sample{}, errors.New("cpu: an index is out of range: one-hot inputs and targets must be integers from 0 to their table's size minus 1")
	}
	return device.Sample{Wall: end.Sub(start)}, nil
}

// reset forgets what a failed sample left in the counters.
func (p *program) reset() {
	p.runs = 0
	forget(p.zeroed)
	p.begun.Store(0)
	for s := range p.progress {
		p.progress[s].Store(0)
	}
	for t := range p.team {
		p.team[t].order.Store(0)
		for i := range p.team[t].done {
			p.team[t].done[i].Store(0)
		}
	}
	for _, c := range p.counters {
		c.Store(0)
	}
	for _, b := range p.barriers {
		b.reset()
	}
}
