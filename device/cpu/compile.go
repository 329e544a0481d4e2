package cpu

import (
	"errors"
	"fmt"

	"rnnbench/device"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A binder binds the operations of a program to memory while the program is compiled. Most
// operations of a step equal those of the step before, so it reuses what it has made for them.
type binder struct {
	*program
	here struct{ first, members int } // the workers that will run the current operation

	fused  map[cellPass]*fused.Kernel
	maps   map[mapKey]kernel
	recent recent
}

// A cellPass is one of a cell's programs.
type cellPass struct {
	cell *cell.Cell
	pass fused.Pass
}

// Compile implements device.Device.
func (d *Device) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	f, k, err := d.settle(s, k)
	if err != nil {
		return nil, err
	}
	d = d.limited(k)
	teams := d.teams(s, f, k)
	s = asRun(s, f, teams)
	l := d.layout(s, f)
	arena, free, err := allocate(l.total)
	if err != nil {
		return nil, fmt.Errorf("cpu: cannot allocate %d MiB: %w: %w", l.total>>18, device.ErrMemory, err)
	}
	p := &program{
		device: d, schedule: s, knobs: k, free: free, format: f, queues: make([][]int32, s.Streams), reducing: reducing(s), within: map[int]int{},
	}
	for i, m := range s.Matrices {
		n := d.floats(m, f)
		p.memory = append(p.memory, arena[l.offset[i]:l.offset[i]+n:l.offset[i]+n])
	}
	p.teams, p.seats = teams, d.pool.seats(d.workers)
	p.ready = p.barrier(0, d.workers)
	b := binder{program: p, fused: map[cellPass]*fused.Kernel{}, maps: map[mapKey]kernel{}}
	if err := b.bind(); err != nil {
		return nil, errors.Join(err, free())
	}
	if p.awake = d.workers; teams == 1 {
		p.awake = needed(p.nodes, d.workers)
	}
	p.scratch = make([]scratch, d.workers)
	for w := range p.scratch {
		p.scratch[w] = d.newScratch(s, f, k)
		p.scratch[w].worker = w
	}
	start(p)
	p.hosting.of = p
	for t := range p.team {
		for m, team := 0, p.scratch[p.first(t):p.first(t+1)]; m < len(team); m++ {
			team[m].team = team
		}
	}
	return p, nil
}

// start makes the counts of p's progress.
func start(p *program) {
	p.progress = make([]counter, len(p.queues))
	p.team = make([]teamState, p.teams)
	for t := range p.team {
		p.team[t].gather(p.device.pool.clusters(p.device.workers, p.first(t), p.members(t)))
	}
}

// bind turns all operations into nodes.
func (p *binder) bind() error {
	p.here.members = p.device.workers // all workers prepare as one team
	for _, op := range p.schedule.Prepare {
		w, err := p.work(op)
		if err != nil {
			return err
		}
		p.prepare = append(p.prepare, node{work: w, pieces: 1})
	}
	place := make([]uint32, len(p.schedule.Nodes)) // per node, its position in its stream
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
		team := n.Stream % p.teams
		p.here.first, p.here.members = p.first(team), p.members(team)
		w, err := p.work(n.Op)
		if err != nil {
			return err
		}
		out := node{work: w, stream: n.Stream, pieces: p.device.share(n.Op, p.format, p.knobs)}
		out.takers = p.device.takers(n.Op, out.pieces, p.here.members)
		if j, ok := pairs[i]; ok {
			sum := p.matrix(p.schedule.Nodes[j].Op.(schedule.SumRows).Out)
			w.(*product).Sums, summed[j] = sum.row(0), true
			p.within[j] = i
		}
		if summed[i] {
			out.work, out.pieces = absorbed{}, 0
		}
		for _, j := range n.Wait {
			out.wait = append(out.wait, turn{p.schedule.Nodes[j].Stream, uint64(place[j]) + 1})
		}
		p.queues[n.Stream] = append(p.queues[n.Stream], int32(i))
		p.nodes = append(p.nodes, out)
	}
	for i, block := range p.device.inputs(p.schedule, p.format, p.knobs, p.teams == 1) {
		if p.form(&p.nodes[i+1], p.schedule.Nodes[i].Op.(schedule.Gemm), block) {
			p.nodes[i].work, p.nodes[i].pieces = absorbed{}, 0
			p.within[i] = i + 1
		}
	}
	p.turnBack()
	p.zeroTables()
	for i, j := range p.device.packPairs(p.schedule, p.teams == 1) {
		first, second := p.nodes[i].work.(*product), p.nodes[j].work.(*product)
		if second.Sums != nil {
			if first.Sums != nil || conflicts(p.schedule.Nodes[i].Op, p.schedule.Nodes[pairs[j]].Op) {
				continue
			}
			first.Sums = second.Sums
		}
		first.Second = &second.Product
		p.nodes[j].work, p.nodes[j].pieces = absorbed{}, 0
		p.within[j] = i
		p.nodes[i].pieces, p.nodes[i].takers = max(p.nodes[i].pieces, 1), 0
	}
	return nil
}

// turnBack makes every other product with the same packed weights read them from their end. Steps
// read the same weights again and again, and those that were read last are still in a cache.
func (p *binder) turnBack() {
	backward := map[schedule.View]bool{}
	for i, n := range p.schedule.Nodes {
		if w, ok := p.nodes[i].work.(*product); ok && w.pieces > 0 {
			b := n.Op.(schedule.Gemm).B
			w.Backward, p.nodes[i].backward = backward[b], backward[b]
			backward[b] = !backward[b]
		}
	}
}
