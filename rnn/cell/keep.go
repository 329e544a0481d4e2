package cell

import "slices"

// keep chooses the values that the forward pass keeps for the backward pass. p names each value once and
// keeps none. keep returns p with the chosen values as Saved, in the order of p, and their number.
//
// The gradient reads some values of the forward pass. A value that is not kept is computed again from
// the states, the per-unit weights and the values that are kept, but never from the products, which are
// gone. So the values to keep separate the products from all that the gradient reads. keep finds the
// smallest such set: a minimum cut of the program's graph. Of several it takes the latest, which leaves
// the least to compute again.
func keep(p Program, c *Cell) (Program, int) {
	d := differ{needed: map[Ref]bool{}}
	d.differentiate(p, c)
	chosen := separate(p, d.needed)
	kept, names := 0, map[Ref]Ref{}
	for _, in := range p {
		if chosen[in.Out] {
			names[in.Out] = Ref{Saved, kept}
			kept++
		}
	}
	return p.renamed(func(r Ref) Ref {
		if to, ok := names[r]; ok {
			return to
		}
		return r
	}), kept
}

// separate finds the latest minimum set of temporaries of p through which every way from a product to a
// needed value leads. The method is that of Ford and Fulkerson: as many ways as can be found of which no
// two share a value, and then one value of each.
func separate(p Program, needed map[Ref]bool) map[Ref]bool {
	const source, sink = 0, 1 // and two nodes per temporary, its beginning and its end
	node := map[Ref]int{}
	for _, in := range p {
		if in.Out.Kind == Temp {
			node[in.Out] = 2 + 2*len(node)
		}
	}
	n := 2 + 2*len(node)
	room := make([]int, n*n) // from node to node
	for _, in := range p {
		begin, inner := node[in.Out]
		if !inner {
			continue
		}
		room[begin*n+begin+1] = 1
		for _, a := range in.Args() {
			if from, inner := node[a]; inner {
				room[(from+1)*n+begin] = n
			} else if a.Kind == X || a.Kind == R {
				room[source*n+begin] = n
			}
		}
		if needed[in.Out] {
			room[(begin+1)*n+sink] = n
		}
	}
	toSink := func() []int { // per node, the next one on a way to the sink with room; -1: none
		next := slices.Repeat([]int{-1}, n)
		next[sink] = sink
		for queue := []int{sink}; len(queue) > 0; queue = queue[1:] {
			for from := range n {
				if next[from] < 0 && room[from*n+queue[0]] > 0 {
					next[from] = queue[0]
					queue = append(queue, from)
				}
			}
		}
		return next
	}
	next := toSink()
	for ; next[source] >= 0; next = toSink() {
		for at := source; at != sink; at = next[at] {
			room[at*n+next[at]]--
			room[next[at]*n+at]++
		}
	}
	chosen := map[Ref]bool{}
	for v, begin := range node {
		chosen[v] = next[begin] < 0 && next[begin+1] >= 0
	}
	return chosen
}
