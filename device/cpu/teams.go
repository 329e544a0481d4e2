package cpu

import "sync/atomic"

// A teamState is where a team's leader hands operations to its helpers. Helpers that take no part in one may be late: the
// leader waits for them once in half a round of orders, which keeps what it is about to hand out from overtaking them.
type teamState struct {
	order counter         // operations handed out
	at    [round]*node    // the latest, by their number
	done  []atomic.Uint64 // operations finished, the words of helpers; those of a group share a line
	word  []int           // of each member, which of them is its own
	taken []counter       // per member, how many of its pieces somebody has begun
}

const (
	round = 32 // orders that are remembered
	words = 8  // of a line: helpers that share it
)

// gather makes t that of a team in clusters of such sizes. The first member leads, and finishes nothing for others to know.
func (t *teamState) gather(clusters []int) {
	starts := cut(clusters, words)
	groups, members := len(starts)-1, starts[len(starts)-1]
	t.done, t.taken = make([]atomic.Uint64, 2*words*(groups+1)), make([]counter, members)
	for g := range groups {
		for m := range starts[g+1] - starts[g] {
			t.word = append(t.word, 2*words*(g+1)+m) // a line apart: processors fetch them in pairs
		}
	}
}

// await waits until the first so many members have finished an order.
func (t *teamState) await(p *pool, order uint64, members int) {
	for _, word := range t.word[1:members] {
		p.until(&t.done[word], order)
	}
}

// first is the first worker of a team; members is how many it has.
func (p *program) first(team int) int   { return p.device.first(team, p.teams) }
func (p *program) members(team int) int { return p.first(team+1) - p.first(team) }

// inOrder runs every node in program order, which no wait contradicts. Sums over replicas
// run beside.
func (p *program) inOrder(run uint64) {
	if p.reducing < 0 {
		for i := range p.nodes {
			p.execute(0, &p.nodes[i])
		}
		return
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.stream == p.reducing {
			p.begun.Add(1)
			continue
		}
		p.summed(n.wait, run)
		p.execute(0, n)
	}
	p.device.pool.await(&p.progress[p.reducing], (run+1)*uint64(len(p.queues[p.reducing])))
}

// execute runs a node as leader of a team.
func (p *program) execute(team int, n *node) {
	t := &p.team[team]
	first := p.first(team)
	if n.pieces == 0 || n.takers == 1 || len(t.word) == 1 {
		n.work.share(0, 1, &p.scratch[first])
		return
	}
	if n.pieces > 1 {
		for m := range t.taken {
			t.taken[m].Store(0)
		}
	}
	order := t.hand(p.device.pool, n)
	t.do(n, 0, &p.scratch[first])
	t.await(p.device.pool, order, t.members(n))
}

// hand hands n, or nil, to the helpers.
func (t *teamState) hand(p *pool, n *node) uint64 {
	order := t.order.Load() + 1
	if order%(round/2) == 0 && order > round/2 {
		t.await(p, order-round/2, len(t.word))
	}
	t.at[order%round] = n
	t.order.Store(order)
	return order
}

// members is how many take part in n.
func (t *teamState) members(n *node) int {
	if n.takers == 0 {
		return len(t.word)
	}
	return n.takers
}

// do runs a member's pieces of a node, then what others have not begun.
func (t *teamState) do(n *node, member int, s *scratch) {
	members := t.members(n)
	if member >= members {
		return
	}
	if n.pieces == 1 {
		n.work.share(member, members, s)
		return
	}
	for k := range members {
		of := (member + k) % members
		for t.taken[of].Load() < uint64(n.pieces) { // reading it takes less than adding to it
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
	done := &t.done[t.word[part]]
	for order := done.Load() + 1; ; order++ {
		p.device.pool.await(&t.order, order)
		n := t.at[order%round]
		if n == nil {
			done.Store(order)
			return
		}
		t.do(n, part, &p.scratch[worker])
		done.Store(order)
	}
}

// dismiss ends the helpers.
func (t *teamState) dismiss(p *pool) {
	if len(t.word) > 1 {
		t.hand(p, nil)
	}
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
			if next[k] == len(p.queues[s]) || s == p.reducing {
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
