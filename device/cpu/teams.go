package cpu

import "sync/atomic"

// A teamState is how a team's leader hands operations to its helpers. Helpers that take no part in
// an operation may fall behind. So the leader waits for all of them once in half a round, and never
// overwrites an order that a helper has not seen.
type teamState struct {
	order counter         // number of operations handed out
	at    [round]*node    // the latest operations, by their number modulo round
	done  []atomic.Uint64 // operations finished, a word per helper; helpers of a group share a line
	word  []int           // per member, its index in done
	taken []counter       // per member, how many of its pieces have been begun by any worker
}

const (
	round = 32 // orders that at remembers
	words = 8  // helpers that share a line
)

// gather sets t up for a team in clusters of the given sizes. The first member leads, so it has no
// word that others read.
func (t *teamState) gather(clusters []int) {
	starts := cut(clusters, words)
	groups, members := len(starts)-1, starts[len(starts)-1]
	t.done, t.taken = make([]atomic.Uint64, 2*words*(groups+1)), make([]counter, members)
	for g := range groups {
		for m := range starts[g+1] - starts[g] {
			t.word = append(t.word, 2*words*(g+1)+m) // two lines per group: processors fetch lines in pairs
		}
	}
}

// await waits until the first members have finished an order.
func (t *teamState) await(p *pool, order uint64, members int) {
	for _, word := range t.word[1:members] {
		p.until(&t.done[word], order)
	}
}

// first returns the first worker of a team, and members the number of its workers.
func (p *program) first(team int) int   { return p.device.first(team, p.teams) }
func (p *program) members(team int) int { return p.first(team+1) - p.first(team) }

// inOrder runs every node in program order, which fulfils all waits. Sums over replicas run beside
// it.
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
		p.awaitSums(n.wait, run)
		p.execute(0, n)
	}
	p.device.pool.await(&p.progress[p.reducing], (run+1)*uint64(len(p.queues[p.reducing])))
}

// execute runs a node as the leader of a team.
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

// hand hands n to the helpers and returns its number. nil dismisses them.
func (t *teamState) hand(p *pool, n *node) uint64 {
	order := t.order.Load() + 1
	if order%(round/2) == 0 && order > round/2 {
		t.await(p, order-round/2, len(t.word))
	}
	t.at[order%round] = n
	t.order.Store(order)
	return order
}

// members returns how many members take part in n.
func (t *teamState) members(n *node) int {
	if n.takers == 0 {
		return len(t.word)
	}
	return n.takers
}

// do runs a member's pieces of a node, and then pieces that other members have not begun.
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
		for t.taken[of].Load() < uint64(n.pieces) { // reading is cheaper than adding
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

// dismiss tells the helpers to return.
func (t *teamState) dismiss(p *pool) {
	if len(t.word) > 1 {
		t.hand(p, nil)
	}
}

// byStream runs the streams of a team for one run. It always picks the first node in program order
// among those whose waits are over.
func (p *program) byStream(team int, run uint64) {
	pool := p.device.pool
	for s, q := range p.queues { // wait for the end of the previous run
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
			if idle++; idle > pool.spins {
				if pool.err.Load() != nil {
					panic(errAborted)
				}
				pool.pause(&w)
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
