package schedule

import "slices"

// Cut ends the present section of operations and begins another. It returns the number of the new
// one; the section before the first cut is number -1.
func (b *Builder) Cut() int {
	b.cuts = append(b.cuts, len(b.s.Nodes))
	return len(b.cuts) - 1
}

// Sections is the number of sections that Cut has begun.
func (b *Builder) Sections() int { return len(b.cuts) }

// Arrange puts sections in another order, which has each of them once. Of the cuts it keeps the one
// before number keep of that order, or none if there is no such section.
func (b *Builder) Arrange(order []int, keep int) {
	ends := append(slices.Clone(b.cuts), len(b.s.Nodes))
	if len(order) == 0 {
		return
	}
	nodes := slices.Clone(b.s.Nodes[:ends[0]])
	b.cuts = nil
	for at, i := range order {
		if at == keep {
			b.cuts = []int{len(nodes)}
		}
		nodes = append(nodes, b.s.Nodes[ends[i]:ends[i+1]]...)
	}
	b.s.Nodes = nodes
}

// Within restricts what follows to n streams from first, and appends mark to the names of its
// matrices. n = 0 is all streams.
func (b *Builder) Within(first, n int, mark string) {
	b.first, b.among, b.mark = first, n, mark
}
