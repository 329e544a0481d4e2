package cpu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A program is a compiled schedule: its memory, and its operations bound to it.
type program struct {
	device   *Device
	schedule *schedule.Schedule
	knobs    knob.Params
	memory   [][]float32 // per matrix
	format   simd.Format // of packed matrices
	free     func() error
	closed   bool

	prepare []node
	nodes   []node      // in program order
	within  map[int]int // per node that runs as part of another one, that one
	queues  [][]int32   // per stream, its nodes
	scratch []scratch

	teams    int
	progress []counter // per stream, nodes done in all runs so far
	done     uint64    // runs before this session
	admitted counter   // number of runs that may begin
	team     []teamState

	sums     bool    // the schedule sums over replicas
	reducing int     // the stream of sums over replicas; -1: there is none
	begun    counter // number of sums that may begin, if one team runs everything else

	seats    []int // threads of its workers
	awake    int   // workers that run it: all, or only the first if no operation is shared
	ready    *barrier
	counters []*counter // of operations, for reset
	barriers []*barrier // of operations, for reset

	zeroed map[int]*zeroing // by matrix

	badIndex atomic.Bool

	hosting
}

// A node is an operation ready to run.
type node struct {
	work     work
	stream   int
	pieces   int    // per worker of the team; 0: not worth splitting
	takers   int    // workers of the team that take part, from its leader on; 0: all
	backward bool   // a worker begins with its last piece
	wait     []turn // nodes of other streams that must be done before
}

// A turn is a position in a stream. It has passed once so many of the stream's nodes are done.
type turn struct {
	stream int
	nodes  uint64
}

// work is an operation bound to memory. share computes one of so many parts. Parts write different
// results and may run at the same time, in any order. Each result depends on part and parts alone.
type work interface {
	share(part, parts int, s *scratch)
}

// scratch is one worker's own memory.
type scratch struct {
	gemm      *gemm.Scratch
	products  []float32      // of a band of units
	tracks    []fused.Vector // of a cell or a recurrence
	addresses []uintptr      // of these
	weights   [][]float32
	others    []fused.Span
	steps     *fused.Steps
	inputs    []float32 // of a recurrence, packed
	tiles     []fused.Tile
	scan      scanScratch
	part      [1024]float32 // for sums of rows
	step      simd.Coefficients
	team      []scratch // of all workers of the team, in order
	worker    int       // whose memory it is
	_         [64]byte
}

// counter makes a counter for the workers of an operation.
func (p *program) counter() *counter {
	c := new(counter)
	p.counters = append(p.counters, c)
	return c
}

// barrier makes a barrier for n workers of an operation, from first on.
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
	p.changed(m.ID)
	mem, err := p.reach(m, len(src))
	copy(mem, src)
	return err
}

// Read implements device.Program.
func (p *program) Read(m *schedule.Matrix, dst []float32) error {
	mem, err := p.reach(m, len(dst))
	copy(dst, mem)
	return err
}

// reach returns the memory of the first n elements of m, which must be whole rows.
func (p *program) reach(m *schedule.Matrix, n int) ([]float32, error) {
	switch {
	case p.closed:
		return nil, errClosed
	case m.Private():
		return nil, fmt.Errorf("cpu: matrix %s is packed or scratch: it cannot be written or read", m.Name)
	case n == 0 || n != min(n/m.Cols, m.Rows)*m.Cols:
		return nil, fmt.Errorf("cpu: matrix %s is %d×%d: %d elements are not whole rows of it", m.Name, m.Rows, m.Cols, n)
	}
	return p.memory[m.ID][:n], nil
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
			own.team = p.scratch // all workers prepare as one team
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
	var wall time.Duration
	err := session{program: p, runs: n}.together(func(run func(n int)) {
		start := time.Now()
		run(n)
		wall = time.Since(start)
	})
	return device.Sample{Wall: wall}, err
}

// reset clears all counters after a failed run.
func (p *program) reset() {
	p.done = 0
	forgetZeroed(p.zeroed)
	for m := range p.packs {
		p.changed(m)
	}
	p.begun.Store(0)
	p.admitted.Store(0)
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
