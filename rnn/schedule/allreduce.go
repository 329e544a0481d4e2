package schedule

import (
	"fmt"
	"slices"
)

// AllReduce sets each view of Sums, in each of so many replicas of the schedule, to its sum over
// all replicas: the gradient of a minibatch of which each replica has a part. All replicas have the
// same sums in the same order. With one replica it does nothing.
type AllReduce struct {
	Sums     []View
	Replicas int
}

func (a AllReduce) Name() string   { return "allreduce" }
func (a AllReduce) Reads() []View  { return a.Sums }
func (a AllReduce) Writes() []View { return a.Sums }

// Elements is the number of elements that are summed.
func (a AllReduce) Elements() (n int64) {
	for _, v := range a.Sums {
		n += int64(v.Rows) * int64(v.Cols)
	}
	return n
}

// FLOPs counts one addition for each element and each other replica. It divides them by the number
// of replicas, since each adds up a part of the elements.
func (a AllReduce) FLOPs() int64 { return a.Elements() * int64(a.Replicas-1) / int64(a.Replicas) }

func (a AllReduce) String() string {
	return fmt.Sprintf("allreduce %v over %d replicas", a.Sums, a.Replicas)
}

func (a AllReduce) check() error {
	if a.Replicas < 1 || a.Replicas > MaxReplicas {
		return fmt.Errorf("schedule: %v: there must be 1 to %d replicas", a, MaxReplicas)
	}
	for i, v := range a.Sums {
		if slices.ContainsFunc(a.Sums[:i], v.Overlaps) {
			return overlapError(a)
		}
	}
	return nil
}

// MaxReplicas bounds the replicas of a schedule.
const MaxReplicas = 1024

// AllReduce has groups of matrices summed over replicas, in the order of the groups. This order
// does not depend on the schedule, so replicas may have different schedules. Each group is summed
// on a stream of its own as soon as the last of its matrices is formed. The other streams go on.
//
// Operations that form these matrices move ahead, to right behind what they wait for. Techniques
// compute all weight gradients at the end of the backward pass, where nothing would be left to hide
// the sums behind.
func (b *Builder) AllReduce(groups [][]*Matrix, replicas int) {
	of := map[*Matrix]int{}
	for g, matrices := range groups {
		for _, m := range matrices {
			of[m] = g
		}
	}
	nodes := moveAhead(b.s.Nodes, of)
	behind := make([]int, len(groups)) // per group, how many nodes come before its sum
	for i, n := range nodes {
		for _, v := range n.Op.Writes() {
			if g, ok := of[v.M]; ok {
				behind[g] = i + 1
			}
		}
	}
	stream := b.s.Streams
	b.s.Streams++
	b.s.Nodes = make([]Node, 0, len(nodes)+len(groups))
	done := 0
	for g, n := range behind {
		if n > done {
			b.s.Nodes = append(b.s.Nodes, nodes[done:n]...)
			done = n
		}
		op := AllReduce{Replicas: replicas}
		for _, m := range groups[g] {
			op.Sums = append(op.Sums, m.All())
		}
		b.Do(stream, op)
	}
	b.s.Nodes = append(b.s.Nodes, nodes[done:]...)
}

// moveAhead moves each node that writes only matrices of set to right behind the last node that it
// must follow. The meaning stays: no node passes one that it conflicts with.
func moveAhead[T any](nodes []Node, set map[*Matrix]T) []Node {
	forms := func(op Op) bool {
		return !slices.ContainsFunc(op.Writes(), func(v View) bool { _, ok := set[v.M]; return !ok })
	}
	type placed struct {
		Node
		behind int // its place, or the place in the old order that it moves behind
	}
	all := make([]placed, len(nodes))
	for i, n := range nodes {
		all[i] = placed{Node: n, behind: i}
		if !forms(n.Op) {
			continue
		}
		all[i].behind = -1
		for j := i - 1; j > all[i].behind; j-- {
			if p := &all[j]; p.behind > all[i].behind && conflict(p.Op, n.Op) {
				all[i].behind = p.behind
			}
		}
	}
	slices.SortStableFunc(all, func(x, y placed) int { return x.behind - y.behind })
	out := make([]Node, len(all))
	for i, p := range all {
		out[i] = p.Node
	}
	return out
}

// conflict reports whether two operations must keep their order.
func conflict(a, b Op) bool {
	for v, write := range Accesses(a) {
		for w, also := range Accesses(b) {
			if (write || also) && v.Overlaps(w) {
				return true
			}
		}
	}
	return false
}
