package cpu

// A teamState is where a team's leader hands operations to its helpers.
type teamState struct {
	order counter   // operations handed out
	at    *node     // the latest
	done  []counter // per helper, operations finished
	taken []counter // per member, how many of its pieces somebody has begun
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
