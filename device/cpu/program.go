package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"rnnbench/device"
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
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
	runs     uint64    // runs done before this burst
	team     []teamState

	meetings []*counter // of persistent operations and scans

	// Most operations of a step are those of the step before.
	fused  map[cellPass]*fused.Kernel
	maps   map[cell.Op]kernel
	recent recent

	badIndex atomic.Bool
}

// A cellPass is one of a cell's programs.
type cellPass struct {
	cell *cell.Cell
	pass fused.Pass
}

// A node is an operation ready to run.
type node struct {
	work     work
	stream   int
	pieces   int    // per worker of the team; 0: not worth splitting
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
	team     []scratch     // of all workers of the team, in order
	_        [64]byte
}

// A teamState is where a team's leader hands operations to its helpers.
type teamState struct {
	order counter   // operations handed out
	at    *node     // the latest
	done  []counter // per helper, operations finished
	taken []counter // per member, how many of its pieces somebody has begun
}

// forkFLOPs is the least work, in operations, that is worth handing to a
// helper: a hand-over and back takes about a quarter of a microsecond.
const forkFLOPs = 20_000

// An operation of several times that is cut into more pieces than there are
// workers: each begins with its own, whose data its caches hold, and then helps
// those that are behind, since processors are rarely equally fast. Products that
// pack their operands as they go would pack more for it and are cut once.
const (
	stealFLOPs  = 40 * forkFLOPs
	stealPieces = 8              // of a cell
	pieceFLOPs  = 80 * forkFLOPs // of a product at least
)

// layout is what Compile allocates: per matrix its offset, in floats.
type layout struct {
	offset []int
	total  int
}

// format is how packed matrices are stored. All arithmetic is single precision:
// 16 bits are a way to store weights, so without packed weights there is nothing
// to store so.
func format(s *schedule.Schedule) (simd.Format, error) {
	var f simd.Format
	switch s.Precision {
	case schedule.FP32:
		return simd.F32, nil
	case schedule.FP16:
		f = simd.F16
	case schedule.BF16:
		f = simd.BF16
	default:
		return 0, fmt.Errorf("cpu: %w: the CPU does not support precision %v", schedule.ErrPrecision, s.Precision)
	}
	if !slices.ContainsFunc(s.Matrices, func(m *schedule.Matrix) bool { return m.Packed }) {
		return 0, fmt.Errorf("cpu: %w: %v stores packed weights in 16 bits, but this schedule packs none", schedule.ErrPrecision, s.Precision)
	}
	return f, nil
}

// line is a cache line and a vector in floats.
const line = 16

// floats is how many m takes in memory.
func (d *Device) floats(m *schedule.Matrix, f simd.Format) int {
	if m.Packed {
		return d.gemm.PackedLen(f, m.Rows, m.Cols)
	}
	return m.Elements()
}

func (d *Device) layout(s *schedule.Schedule, f simd.Format) layout {
	var l layout
	for _, m := range s.Matrices {
		l.offset = append(l.offset, l.total)
		n := d.floats(m, f)
		l.total += (n + line - 1) / line * line
		l.total += line // rows of neighbours should not fall on the same cache sets
	}
	return l
}

// Memory implements device.Device.
func (d *Device) Memory(s *schedule.Schedule, k knob.Params) (int64, error) {
	f, err := format(s)
	if err == nil {
		err = d.declined(s, f, k)
	}
	if err != nil {
		return 0, err
	}
	return 4*(int64(d.layout(s, f).total)+int64(d.workers)*int64(d.needs(s, f, k).floats())) + bound(s), nil
}

// bound is what bind makes of s, in bytes: many small steps take more than their matrices.
func bound(s *schedule.Schedule) int64 {
	const (
		each   = int64(unsafe.Sizeof(node{}) + 4 + 4) // and its place in a queue
		one    = int64(unsafe.Sizeof(pointwise{}) + unsafe.Sizeof(mapped{}))
		vector = int64(unsafe.Sizeof(matrix{}))
	)
	vectors := map[*cell.Instr]int64{} // of programs, by the first of their instructions
	fused := func(p cell.Program) int64 {
		n, ok := vectors[&p[0]]
		if !ok {
			n = int64(vectorsOf(p))
			vectors[&p[0]] = n
		}
		return int64(unsafe.Sizeof(fusedCell{})) + n*vector
	}
	sum := each * int64(len(s.Nodes))
	for _, n := range s.Nodes {
		sum += int64(len(n.Wait)) * int64(unsafe.Sizeof(turn{}))
	}
	var maps recent
	for op := range s.Operations() {
		switch op := op.(type) {
		case schedule.Gemm:
			sum += int64(unsafe.Sizeof(product{}))
		case schedule.Map:
			if _, ok := maps.find(op); !ok {
				maps.add(op, nil)
				sum += one
			}
		case schedule.Maps:
			sum += one + int64(len(op.Steps)-1)*int64(unsafe.Sizeof(mapped{}))
		case schedule.SumRows:
			sum += int64(unsafe.Sizeof(sumRows{}))
		case schedule.Cell:
			sum += fused(op.Program())
		case schedule.CellBackward:
			sum += fused(op.Cell.Backward)
		}
	}
	return sum
}

// Compile implements device.Device.
func (d *Device) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	k, err := k.Complete(d.Knobs(s))
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	f, err := format(s)
	if err == nil {
		err = d.declined(s, f, k)
	}
	if err != nil {
		return nil, err
	}
	l := d.layout(s, f)
	arena, free, err := allocate(l.total)
	if err != nil {
		return nil, fmt.Errorf("cpu: cannot allocate %d MiB: %w: %w", l.total>>18, device.ErrMemory, err)
	}
	p := &program{
		device: d, schedule: s, knobs: k, free: free, format: f, queues: make([][]int32, s.Streams),
		fused: map[cellPass]*fused.Kernel{}, maps: map[cell.Op]kernel{},
	}
	for i, m := range s.Matrices {
		n := d.floats(m, f)
		p.memory = append(p.memory, arena[l.offset[i]:l.offset[i]+n:l.offset[i]+n])
	}
	p.teams = d.teams(s, f, k)
	if err := p.bind(); err != nil {
		return nil, errors.Join(err, free())
	}
	p.scratch = make([]scratch, d.workers)
	for w := range p.scratch {
		p.scratch[w] = d.newScratch(s, f, k)
	}
	p.progress = make([]counter, s.Streams)
	p.team = make([]teamState, p.teams)
	for t := range p.team {
		p.team[t].done = make([]counter, p.members(t)-1)
		p.team[t].taken = make([]counter, p.members(t))
		for m, team := 0, p.scratch[p.first(t):p.first(t+1)]; m < len(team); m++ {
			team[m].team = team
		}
	}
	return p, nil
}

// bind turns operations into work.
func (p *program) bind() error {
	for _, op := range p.schedule.Prepare {
		w, err := p.work(op)
		if err != nil {
			return err
		}
		p.prepare = append(p.prepare, node{work: w, pieces: 1})
	}
	place := make([]uint32, len(p.schedule.Nodes)) // per node, its place in its stream
	of := make([]int, p.schedule.Streams)          // per stream, its nodes so far
	for i, n := range p.schedule.Nodes {
		place[i] = uint32(of[n.Stream])
		of[n.Stream]++
	}
	for s, n := range of {
		p.queues[s] = make([]int32, 0, n)
	}
	p.nodes = make([]node, 0, len(p.schedule.Nodes))
	pairs, summed := sums(p.schedule), map[int]bool{}
	for i, n := range p.schedule.Nodes {
		w, err := p.work(n.Op)
		if err != nil {
			return err
		}
		out := node{work: w, stream: n.Stream, pieces: p.pieces(n.Op)}
		if j, ok := pairs[i]; ok {
			sum := p.matrix(p.schedule.Nodes[j].Op.(schedule.SumRows).Out)
			w.(*product).Sums, summed[j] = sum.row(0), true
		}
		if summed[i] {
			out.work, out.pieces = done{}, 0
		}
		for _, j := range n.Wait {
			out.wait = append(out.wait, turn{p.schedule.Nodes[j].Stream, uint64(place[j]) + 1})
		}
		p.queues[n.Stream] = append(p.queues[n.Stream], int32(i))
		p.nodes = append(p.nodes, out)
	}
	for i, block := range p.device.inputs(p.schedule, p.format, p.knobs, p.teams == 1) {
		if p.form(&p.nodes[i+1], p.schedule.Nodes[i].Op.(schedule.Gemm), block) {
			p.nodes[i].work, p.nodes[i].pieces = done{}, 0
		}
	}
	p.recent = recent{}
	p.turnBack()
	for i, j := range p.device.besides(p.schedule, p.teams == 1) {
		first, second := p.nodes[i].work.(*product), p.nodes[j].work.(*product)
		if second.Sums != nil {
			if first.Sums != nil || conflicts(p.schedule.Nodes[i].Op, p.schedule.Nodes[pairs[j]].Op) {
				continue
			}
			first.Sums = second.Sums
		}
		first.Beside = &second.Product
		p.nodes[j].work, p.nodes[j].pieces = done{}, 0
		p.nodes[i].pieces = max(p.nodes[i].pieces, 1)
	}
	return nil
}

// turnBack has every other product by the same packed weights go through them from their end. They are
// read from step to step, and what was read last is still in a cache.
func (p *program) turnBack() {
	backward := map[schedule.View]bool{}
	for i, n := range p.schedule.Nodes {
		if w, ok := p.nodes[i].work.(*product); ok && w.pieces > 0 {
			b := n.Op.(schedule.Gemm).B
			w.Backward, p.nodes[i].backward = backward[b], backward[b]
			backward[b] = !backward[b]
		}
	}
}

// meeting is a counter for the workers of one operation who meet.
func (p *program) meeting() *counter {
	c := new(counter)
	p.meetings = append(p.meetings, c)
	return c
}

// pieces is how many pieces of op each worker of a team gets.
func (d *Device) pieces(op schedule.Op) int {
	c := cost(op)
	switch op := op.(type) {
	case schedule.Gemm:
		if c >= stealFLOPs && op.B.M.Packed && !op.TransA {
			p := d.product(op, simd.F32)
			return max(1, min(ceil(d.gemm.Pieces(&p, d.workers), d.workers), int(c/pieceFLOPs)/d.workers))
		}
	case schedule.Cell, schedule.CellBackward:
		if c >= stealFLOPs {
			return stealPieces
		}
	case schedule.Persistent: // its workers meet at each step
		c /= int64(op.Steps)
	case schedule.PersistentBackward:
		c /= int64(op.Steps)
	}
	if c >= forkFLOPs {
		return 1
	}
	return 0
}

func ceil(a, b int) int { return (a + b - 1) / b }

// cost estimates the work of op in operations of a product: point-wise ones
// are bound by memory and count for more.
func cost(op schedule.Op) int64 {
	if g, ok := op.(schedule.Gemm); ok {
		return g.FLOPs() + 4*schedule.Bytes(op)
	}
	return 4*op.FLOPs() + 2*schedule.Bytes(op)
}

// teams is how many there are. Each stream has workers of its own where operations are
// so small that splitting them costs more than it saves, or where the weights of
// a persistent operation fit a worker's cache, so that bands would only make it
// wait at meetings.
func (d *Device) teams(s *schedule.Schedule, f simd.Format, k knob.Params) int {
	if n := k["teams"]; n > 0 {
		return n
	}
	most := min(s.Streams, d.workers/max(1, k["bands"]))
	if n := d.persistentWeights(s, f); n > 0 {
		if l2 := gemm.DetectL2(); n <= l2/2 {
			return most
		}
		return 1
	}
	var sum int64
	for _, n := range s.Nodes {
		sum += cost(n.Op)
	}
	if n := int64(len(s.Nodes)); n > 0 && sum/n < teamFLOPs {
		return most
	}
	return 1
}

// teamFLOPs is the mean work of operations below which streams are served side
// by side.
const teamFLOPs = 10 * forkFLOPs

// first is the first worker of a team of so many.
func (d *Device) first(team, teams int) int { return team * d.workers / teams }

// first is the first worker of a team; members is how many it has.
func (p *program) first(team int) int   { return p.device.first(team, p.teams) }
func (p *program) members(team int) int { return p.first(team+1) - p.first(team) }

// Write implements device.Program.
func (p *program) Write(m *schedule.Matrix, src []float32) error {
	return p.move(m, min(len(src)/m.Cols, m.Rows), src, func(mem []float32) { copy(mem, src) })
}

// Read implements device.Program.
func (p *program) Read(m *schedule.Matrix, dst []float32) error {
	return p.move(m, m.Rows, dst, func(mem []float32) { copy(dst, mem) })
}

func (p *program) move(m *schedule.Matrix, rows int, host []float32, f func(mem []float32)) error {
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
		err := p.device.pool.do(func(w int) {
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
func (p *program) Run(n int) (device.Burst, error) {
	if p.closed {
		return device.Burst{}, errClosed
	}
	var start, end time.Time
	ready := counter{}
	err := p.device.pool.do(func(w int) {
		team := 0
		for p.first(team+1) <= w {
			team++
		}
		p.device.pool.meet(&ready, p.device.workers) // all are awake
		if w == 0 {
			start = time.Now()
		}
		switch {
		case w != p.first(team):
			p.help(team, w)
		case p.teams == 1:
			for range n {
				p.inOrder()
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
	p.runs += uint64(n)
	if err != nil {
		p.reset()
		return device.Burst{}, err
	}
	if p.badIndex.Swap(false) {
		return device.Burst{}, errors.New("cpu: an index is out of range: one-hot inputs and targets must be integers from 0 to their table's size minus 1")
	}
	return device.Burst{Wall: end.Sub(start)}, nil
}

// reset forgets what a failed burst left in the counters.
func (p *program) reset() {
	p.runs = 0
	for s := range p.progress {
		p.progress[s].Store(0)
	}
	for t := range p.team {
		p.team[t].order.Store(0)
		for h := range p.team[t].done {
			p.team[t].done[h].Store(0)
		}
	}
	for _, m := range p.meetings {
		m.Store(0)
	}
}

// inOrder runs every node in program order, which no wait contradicts.
func (p *program) inOrder() {
	for i := range p.nodes {
		p.execute(0, &p.nodes[i])
	}
}

// execute runs a node as leader of a team.
func (p *program) execute(team int, n *node) {
	t := &p.team[team]
	first := p.first(team)
	if n.pieces == 0 || len(t.done) == 0 {
		n.work.share(0, 1, &p.scratch[first])
		return
	}
	t.at = n
	for m := range t.taken {
		t.taken[m].Store(0)
	}
	order := t.order.Add(1)
	t.do(n, 0, &p.scratch[first])
	for h := range t.done {
		p.device.pool.await(&t.done[h], order)
	}
}

// do runs a member's pieces of a node, then what others have not begun.
func (t *teamState) do(n *node, member int, s *scratch) {
	members := len(t.taken)
	if n.pieces == 1 {
		n.work.share(member, members, s)
		return
	}
	for k := range members {
		of := (member + k) % members
		for {
			i := int(t.taken[of].Add(1)) - 1
			if i >= n.pieces {
				break
			}
			if n.backward {
				i = n.pieces - 1 - i
			}
			n.work.share(of*n.pieces+i, members*n.pieces, s)
		}
	}
}

// help runs a helper's shares until the leader dismisses it.
func (p *program) help(team, worker int) {
	t := &p.team[team]
	part := worker - p.first(team)
	done := &t.done[part-1]
	for order := done.Load() + 1; ; order++ {
		p.device.pool.await(&t.order, order)
		n := t.at
		if n == nil {
			done.Store(order)
			return
		}
		t.do(n, part, &p.scratch[worker])
		done.Store(order)
	}
}

// dismiss ends the helpers of a team.
func (p *program) dismiss(team int) {
	t := &p.team[team]
	if len(t.done) == 0 {
		return
	}
	t.at = nil
	t.order.Add(1)
}

// byStream runs the streams of a team for one run: always the first node in
// program order among those whose waits are over.
func (p *program) byStream(team int, run uint64) {
	pool := p.device.pool
	for s, q := range p.queues { // the run before is over
		pool.await(&p.progress[s], run*uint64(len(q)))
	}
	next := make([]int, 0, 64)
	for s := team; s < len(p.queues); s += p.teams {
		next = append(next, 0)
	}
	var idle int
	var w wait
	for {
		best, left := -1, false
		for k, s := 0, team; s < len(p.queues); k, s = k+1, s+p.teams {
			if next[k] == len(p.queues[s]) {
				continue
			}
			left = true
			i := p.queues[s][next[k]]
			if (best < 0 || i < p.queues[team+best*p.teams][next[best]]) && p.over(p.nodes[i].wait, run) {
				best = k
			}
		}
		if !left {
			return
		}
		if best < 0 {
			if idle++; idle > 4000 {
				if pool.err.Load() != nil {
					panic(errAborted)
				}
				w.more()
			}
			continue
		}
		idle = 0
		s := team + best*p.teams
		p.execute(team, &p.nodes[p.queues[s][next[best]]])
		next[best]++
		p.progress[s].Add(1)
	}
}

// over reports whether all turns have passed.
func (p *program) over(turns []turn, run uint64) bool {
	for _, t := range turns {
		if p.progress[t.stream].Load() < run*uint64(len(p.queues[t.stream]))+t.nodes {
			return false
		}
	}
	return true
}
