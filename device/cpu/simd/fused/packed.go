package fused

import (
	"fmt"

	"rnnbench/rnn/cell"
)

// Rows of at most half a vector run several at a time, packed into one vector.

// Packs returns how many rows of n units RunPacked runs in one vector; 1: use Run.
func (k *Loop) Packs(n int) int {
	if k.run == nil {
		return 1
	}
	return max(1, k.width/max(1, n))
}

// Apart reports whether RunPacked allows gaps between the rows of vectors of kind k.
func Apart(k cell.Kind) bool {
	switch k {
	case cell.X, cell.R, cell.Saved, cell.DX, cell.DR:
		return true
	}
	return false
}

// RunPacked is Run with several rows in one vector, without stream. Vectors of constants
// must repeat each row Packs(n) times. Rows of other vectors must be contiguous, unless Apart
// allows gaps. It changes v. packs is memory for two.
func (k *Loop) RunPacked(v []Vector, at []uintptr, packs []Pack, n, rows, steps int) {
	v = v[:len(k.rows.vectors)]
	if n == 0 || rows == 0 || steps == 0 {
		return
	}
	const float = 4
	together := k.Packs(n)
	groups := (rows + together - 1) / together
	for i := range v {
		w, kind := &v[i], k.rows.vectors[i].Kind
		if w.check(n, rows, steps); w.Row != n && !Apart(kind) && !kind.Broadcast() {
			panic(fmt.Sprintf("fused: rows of %d units are %d apart", n, w.Row))
		}
		w.Shift = float * (w.Row - n)
		w.Step += (rows - 1 - (groups-1)*together) * w.Row
		w.Row *= together
	}
	packs = packs[:2]
	packs[0].set(together, n)
	packs[1].set(rows-(groups-1)*together, n)
	k.run(v, at[:len(v)], n, groups, steps, 0, packs)
}

// set sets p up for so many rows of n units.
func (p *Pack) set(rows, n int) {
	p.Rows = rows
	p.Bits[0], p.Lanes[0] = 1<<(rows*n)-1, [8]uint32{}
	for r := range rows {
		p.Bits[1+r] = (1<<n - 1) << (r * n)
		if rows*n > len(p.Lanes[0]) {
			continue
		}
		lanes := [8]uint32{}
		for u := r * n; u < (r+1)*n; u++ {
			lanes[u], p.Lanes[0][u] = ^uint32(0), ^uint32(0)
		}
		p.Lanes[1+r] = lanes
	}
}
