package cpu

import (
	"slices"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An input is the product before a persistent operation: one sequence's inputs by the weights of
// all gates. While the operation runs a block of steps, it computes the product of the next block.
// If all workers have a band, they compute its columns among their own products: those are bound by
// reading weights, and the input product by multiply-adds. This takes the registers of AVX-512. If
// some workers have no band, those compute all of it.
type input struct {
	product         // of all steps
	first   product // of the first block, computed before all steps
	block   int     // steps of the other blocks, at most

	in, out       track
	helped        bool    // workers without a band compute it
	begun, formed counter // blocks after the first, in this run
}

// aheadBlock is the default number of steps of a block. It is aheadFar if the weights of both
// products exceed a third of the last cache, since each block reads the input's weights once.
const (
	aheadBlock = fused.TileRows
	aheadFar   = 4 * aheadBlock
	leastL3    = 8 << 20 // used if its size is unknown

	// startSteps is the number of steps of a small layer per aheadBlock steps of a block. Longer
	// blocks mean fewer starts of a block, but also a longer first block before all steps.
	startSteps = 128
)

// inputs returns, by node of the product, the block of steps of each input product that the
// persistent operation after it can compute. Unless one team runs all nodes in program order, no
// other node may wait for the product.
func (pl *planner) inputs(s *schedule.Schedule, f simd.Format, k knob.Params, ordered bool) map[int]int {
	blocks := map[int]int{}
	among := fused.Forms(pl.kernels.Level())
	if f != simd.F32 || !among && (!ordered || pl.kernels.Level() < simd.AVX2) {
		return blocks
	}
	awaited := map[int]bool{}
	if !ordered { // otherwise it is not needed, and there may be millions of nodes
		for _, n := range s.Nodes {
			for _, i := range n.Wait {
				awaited[i] = true
			}
		}
	}
	for i := 0; i+1 < len(s.Nodes); i++ {
		n, next := s.Nodes[i], s.Nodes[i+1]
		g, product := n.Op.(schedule.Gemm)
		op, persistent := next.Op.(schedule.Persistent)
		if !product || !persistent || !ordered && (n.Stream != next.Stream || len(next.Wait) > 0 || awaited[i]) {
			continue
		}
		if block := pl.ahead(g, op, k); block > 0 && op.Batch() == 1 && op.Keep.Empty() && isInput(g, op) && (among || pl.helps(op, f, k)) {
			blocks[i] = block
		}
	}
	return blocks
}

// helps reports whether some workers of the one team have no band of op and compute the product
// before it. For a small layer of one gate it returns false: its product takes less time than a
// worker needs to read what another one has written.
func (pl *planner) helps(op schedule.Persistent, f simd.Format, k knob.Params) bool {
	bands := min(pl.workers, ceil(op.Hidden(), line))
	if most := pl.most(op, f, k, pl.workers, true); most > 0 {
		bands = min(bands, most)
	}
	if k["bands"] == 0 && pl.weights(op, f) <= nearest() { // as in forms
		bands = 1
	}
	return bands < pl.workers && (len(op.R) > 1 || 2*pl.weights(op, f) >= nearest())
}

// formed returns the most steps of a persistent operation of s that can compute its input product;
// 0: there is none.
func (pl *planner) formed(s *schedule.Schedule) int {
	most := 0
	if s.Precision == schedule.FP32 {
		for i := range pl.inputs(s, simd.F32, nil, true) {
			most = max(most, s.Nodes[i+1].Op.(schedule.Persistent).Steps)
		}
	}
	return most
}

// ahead returns the steps of a block; 0: the whole product runs before all steps. Weights that come
// from memory are read as rarely as possible.
func (pl *planner) ahead(g schedule.Gemm, op schedule.Persistent, k knob.Params) int {
	block := k["ahead"]
	if block == 0 {
		weights, last := pl.weights(op, simd.F32)+4*pl.floats(g.B.M, simd.F32), max(cpuid.CPU.Cache.L3, leastL3)
		switch {
		case pl.weights(op, simd.F32) <= nearest():
			block = min(max(op.Steps/startSteps, 1)*aheadBlock, aheadFar)
		case weights > last:
			return 0
		case 3*weights > last:
			block = aheadFar
		default:
			block = aheadBlock
		}
	}
	if firstBlock(op.Steps, block) >= op.Steps {
		return 0
	}
	return block
}

// firstBlock returns the steps of the first block, so that the other blocks have whole tiles.
func firstBlock(steps, block int) int { return block + steps%fused.TileRows }

// isInput reports whether g is the whole input product of op, and op does not write what g reads.
func isInput(g schedule.Gemm, op schedule.Persistent) bool {
	return g.C == op.X && g.B.M.Packed && !g.TransA && !g.Accumulate && !slices.ContainsFunc(op.Writes(), func(w schedule.View) bool {
		return slices.ContainsFunc(g.Reads(), func(r schedule.View) bool { return r.M == w.M })
	})
}

// form makes n, a persistent operation after a product, compute that product in blocks of so many
// steps, if forms allows it. It reports whether it does.
func (p *binder) form(n *node, op schedule.Gemm, block int) bool {
	w, members, parts := n.work.(*persistent), p.members(n.stream%p.teams), 1
	if n.pieces > 0 {
		parts = members
	}
	bands, helped, ok := w.forms(p.knobs, members, parts)
	if !ok {
		return false
	}
	if helped {
		w.most, n.pieces = bands, 1
	}
	g := *p.gemm(op).(*product)
	g.pieces = 0
	w.input = &input{
		product: g, first: g, block: block, helped: helped,
		in: track{data: g.A.Data, step: g.A.Stride}, out: track{data: g.C, step: g.LdC},
	}
	w.input.first.M = firstBlock(g.M, block)
	return true
}

// forms reports whether w computes the product before it, in how many bands, and whether workers
// without a band help. It sets w.most to 1 for weights that the nearest cache holds.
func (w *persistent) forms(k knob.Params, members, parts int) (bands int, helped, ok bool) {
	if w.recurrence == nil {
		return 0, false, false
	}
	if k["bands"] == 0 && w.near(w.hidden) && members > 1 {
		w.most = 1 // two bands are faster only if both have to wait for the product
	}
	if _, _, bands = w.own(0, parts); w.interpreted() && bands > 1 {
		return 0, false, false
	}
	helped = bands < members
	among := !w.interpreted() && fused.Forms(w.program.device.kernels.Level()) && (k["ahead"] > 0 || w.waits(bands) && w.calls(w.largest(bands)))
	return bands, helped, helped || among
}

// start computes the first block of the product with all workers, before all steps.
func (in *input) start(part, parts int, pool *pool, meeting *barrier, s *scratch) {
	if part == 0 {
		in.begun.Store(0)
		in.formed.Store(0)
	}
	in.first.share(part, parts, s)
	if parts > 1 {
		pool.meet(meeting, part, parts)
	}
}

// computeBlock computes a block that no worker has begun, and publishes it after the blocks before
// it. It returns false if there is no such block.
func (in *input) computeBlock(pool *pool, s *scratch) bool {
	block := in.begun.Add(1) - 1
	from := in.first.M + int(block)*in.block
	if from >= in.M {
		return false
	}
	g := in.Product
	g.M = min(in.block, g.M-from)
	g.A.Data, g.C = in.in.at(from, 0), in.out.at(from, 0)
	in.engine.Run(&g, 0, 1, s.gemm)
	pool.await(&in.formed, block)
	in.formed.Store(block + 1)
	return true
}

// await waits until so many blocks after the first are published, and computes others meanwhile.
func (in *input) await(blocks int, pool *pool, s *scratch) {
	for in.formed.Load() < uint64(blocks) {
		if !in.computeBlock(pool, s) {
			pool.await(&in.formed, uint64(blocks))
		}
	}
}

// waits reports whether bands wait for their weights, because the nearest cache does not hold them.
// The limit is raised by the ratio of the largest band to the mean, since the largest has as much
// more of the input product.
func (w *persistent) waits(bands int) bool {
	mean := float64(w.hidden) / float64(bands)
	return 4*float64(len(w.weights)*w.hidden)*mean > float64(nearest())*float64(w.largest(bands))/mean
}

// tiles packs the inputs of rows steps from step at on. It appends to t the tiles of their products
// for units from … to-1 of each gate.
func (in *input) tiles(t []fused.Tile, k *simd.Kernels, packed []float32, at, rows, from, to, hidden int) []fused.Tile {
	for row := 0; row < rows; row += fused.TileRows {
		k.Transpose(packed[row*in.K:], in.in.at(at+row, 0), fused.TileRows, in.in.step, in.K, fused.TileRows)
	}
	for gate := 0; gate < in.N; gate += hidden {
		for c := (gate + from) / line * line; c < gate+to; c += line {
			strip := gemm.Columns(in.Packed, simd.F32, in.K, c)
			first, last := max(gate+from, c), min(gate+to, c+line)
			for row := 0; row < rows; row += fused.TileRows {
				t = append(t, fused.NewTile(strip, packed[row*in.K:], in.out.at(at+row, 0)[c:], fused.Span{From: first - c, N: last - first}))
			}
		}
	}
	return t
}

// tilesOf returns the most tiles of a block of a product of so many columns.
func tilesOf(columns, hidden, block int) int {
	return (ceil(columns, line) + columns/hidden) * ceil(block, fused.TileRows)
}
