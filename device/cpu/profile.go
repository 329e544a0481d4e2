package cpu

import (
	"fmt"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu/predict"
	"rnnbench/rnn/schedule"
)

var _ device.Profiler = (*program)(nil)

// Profile implements device.Profiler. It runs other nodes than Run does, which wrap those of Run, so
// that measured runs pay nothing for it.
func (p *program) Profile(n int) (device.Profile, error) {
	w, err := newWatch(p)
	if err != nil {
		return device.Profile{}, err
	}
	plain := p.nodes
	defer func() { p.nodes = plain }()
	p.nodes = w.wrapped(plain)
	found := device.Profile{Workers: p.device.workers, Teams: p.teams, Groups: w.groups}
	err = session{program: p, runs: n}.together(func(run func(n int)) {
		for range n {
			start := time.Now()
			run(1)
			found.Runs = append(found.Runs, w.collect(time.Since(start)))
		}
	})
	return found, err
}

// A watch holds the times of a run, by group of operations. Each slice has one writer.
type watch struct {
	program *program
	start   time.Time // of all times: since a moment, the clock is read in half the time
	groups  []device.ProfileGroup
	of      []int             // per node, its group
	taken   [][]time.Duration // per team
	busy    [][]time.Duration // per worker
}

// newWatch groups the operations of p by kind and size, in the order of the schedule.
func newWatch(p *program) (*watch, error) {
	predicted, err := predict.Operations(p.device.outline(p.schedule, p.format, p.knobs), host(p.device.kernels.Level()))
	if err != nil {
		return nil, err
	}
	w := &watch{program: p, start: time.Now(), of: make([]int, len(p.nodes))}
	index := map[string]int{}
	for i, n := range p.schedule.Nodes {
		if _, ok := p.within[i]; ok {
			continue
		}
		name := groupName(n.Op)
		g, ok := index[name]
		if !ok {
			g, index[name] = len(w.groups), len(w.groups)
			w.groups = append(w.groups, device.ProfileGroup{Name: name})
		}
		w.of[i] = g
		w.groups[g].Count++
	}
	for i, n := range p.schedule.Nodes {
		host, inner := i, false
		for at, ok := p.within[host]; ok; at, ok = p.within[host] {
			host, inner = at, true
		}
		w.of[i] = w.of[host]
		g := &w.groups[w.of[i]]
		g.FLOPs += n.Op.FLOPs()
		g.Bytes += schedule.Bytes(n.Op)
		if inner {
			g.Within++
		}
		if i < len(predicted) {
			g.Predicted += predicted[i]
		}
	}
	w.taken, w.busy = w.times(p.teams), w.times(p.device.workers)
	return w, nil
}

// groupName names the kind of op and, for products, the sizes.
func groupName(op schedule.Op) string {
	if g, ok := op.(schedule.Gemm); ok {
		m, n, k := g.Sizes()
		return fmt.Sprintf("gemm %d×%d×%d", m, n, k)
	}
	return op.Name()
}

// times returns n lists of times by group. They share no cache line.
func (w *watch) times(n int) (all [][]time.Duration) {
	const apart = 128 / 8
	for range n {
		all = append(all, make([]time.Duration, len(w.groups)+2*apart)[apart:][:len(w.groups)])
	}
	return all
}

// wrapped returns nodes that run the given ones and measure them.
func (w *watch) wrapped(nodes []node) []node {
	p := w.program
	out, inner := slices.Clone(nodes), slices.Clone(nodes)
	for i := range nodes {
		n := &inner[i]
		if _, ok := p.within[i]; ok || n.stream == p.reducing {
			continue // the latter run beside all others
		}
		outer := &watchedNode{watch: w, team: n.stream % p.teams, node: n, group: w.of[i]}
		if outer.alone = n.pieces == 0 || n.takers == 1 || p.members(outer.team) == 1; !outer.alone {
			n.work = &watchedShare{n.work, w, w.of[i]}
		}
		out[i].work, out[i].pieces = outer, 0 // the leader begins it, and hands it out from there
	}
	return out
}

// collect returns the times since the last call.
func (w *watch) collect(wall time.Duration) device.ProfileRun {
	r := device.ProfileRun{Wall: wall, Taken: make([]time.Duration, len(w.groups)), Busy: make([]time.Duration, len(w.groups))}
	gather := func(sum []time.Duration, from [][]time.Duration) {
		for _, list := range from {
			for g, t := range list {
				sum[g] += t
			}
			clear(list)
		}
	}
	gather(r.Taken, w.taken)
	gather(r.Busy, w.busy)
	return r
}

// A watchedNode measures a node from its start to the end of its last share.
type watchedNode struct {
	watch *watch
	team  int
	node  *node
	group int
	alone bool // its team's leader runs it alone, and is busy as long as it takes
}

func (n *watchedNode) share(int, int, *scratch) {
	w := n.watch
	start := time.Since(w.start)
	w.program.execute(n.team, n.node)
	took := time.Since(w.start) - start
	w.taken[n.team][n.group] += took
	if n.alone {
		w.busy[w.program.first(n.team)][n.group] += took
	}
}

// A watchedShare measures the shares of a node by worker.
type watchedShare struct {
	work
	watch *watch
	group int
}

func (n *watchedShare) share(part, parts int, s *scratch) {
	start := time.Since(n.watch.start)
	n.work.share(part, parts, s)
	n.watch.busy[s.worker][n.group] += time.Since(n.watch.start) - start
}
