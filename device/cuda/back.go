package cuda

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A scatter is how kernels/back.cu divides a layer.
type scatter struct {
	layer
	spread   bool // over the GPU, not in clusters
	cluster  int  // blocks that share the units
	units    int  // of a block, a multiple of 16
	samples  int  // sequences of a group, a multiple of 8
	warps    int  // of a block
	resident int  // of a warp's pieces of weights, in registers
}

// chunks is the number of pieces of a block's columns, 64 bytes each.
func (s scatter) chunks() int { return ceil(s.gates*s.units*s.weights.Bytes(), 64) }

// pieces is the number of a warp's pieces of weights: those of its groups of 16
// of the layer's units.
func (s scatter) pieces() int { return ceil(s.cluster*s.units/16, s.warps) * s.chunks() }

// shared is what a block needs of shared memory: barriers, parts that come,
// gradients of its gates and weights beyond registers.
func (s scatter) shared() int {
	row := 64 * s.chunks()
	if row%128 == 0 {
		row += 64
	}
	parts := 4 * s.cluster * s.units * s.samples
	if !s.spread {
		parts *= 2
	}
	return 128 + parts + s.samples*row + 32*32*s.warps*(s.pieces()-s.resident)
}

// each is how many units of sequences a thread has.
func (s scatter) each() int { return ceil(s.units*s.samples, 32*s.warps) }

func (b *binder) newScatter(l layer, spread bool, blocks, samples, warps int, carried int) (scatter, string) {
	s := scatter{layer: l, spread: spread, samples: samples, warps: warps}
	s.units = roundUp(ceil(l.hidden, blocks), 16)
	s.cluster = ceil(l.hidden, s.units)
	room := min(maxRegisters, registersOfSM/roundUp(32*warps, 128)/8*8) - 72 - samples/2 - s.each()*carried
	s.resident = min(s.pieces(), max(0, room)/8)
	if s.shared() > b.properties.Shared {
		return s, fmt.Sprintf("%d weights of a block's %d units take %d KiB of shared memory beyond registers, and there are %d",
			l.gates*l.hidden*s.units, s.units, s.shared()>>10, b.properties.Shared>>10)
	}
	return s, ""
}

// cycles is about what a step of all sequences takes; see tiling.cycles.
func (s scatter) cycles(together int) float64 {
	groups, live := ceil(s.batch, s.samples), float64(min(s.batch, s.samples))
	threads, tiles := 32*float64(s.warps), float64(s.samples/8)
	warps := float64(ceil(s.warps, 4)) // of a quarter of a multiprocessor
	products := float64(2 * s.pieces())
	multiply := max(8*warps, 16) * products * tiles
	if s.exact {
		multiply = 3*multiply + 10*warps*products
	}
	far := threads / 32 * 8 * float64(s.pieces()-s.resident)
	chain := 450 + 100*float64(s.each()-1) + 8*float64(s.cluster)*float64(s.each())
	length := float64(s.cluster * s.units)
	exchange := 300 + length*live/8
	if s.spread {
		words := length * live
		exchange = 1500 + 1.6*words*8*float64(s.cluster*min(groups, together))/2800 + 190*words/threads
	}
	return float64(ceil(groups, together)) * (multiply + far + chain + exchange)
}

// scatters lists how the gradient of a layer can run in groups, cheapest first.
// carried is about how many registers a thread needs for each unit.
func (b *binder) scatters(l layer, carried int) ([]grouping, string) {
	all, why := b.grouped(l, func(l layer, spread bool, blocks int, add func(grouping, string)) {
		for _, samples := range []int{8, 16, 32} {
			if samples > 8 && samples/2 >= l.batch || spread && samples > maxSpread {
				continue
			}
			for _, warps := range []int{4, 8, 16} {
				s, no := b.newScatter(l, spread, blocks, samples, warps, carried)
				if no != "" {
					add(grouping{}, no)
					continue
				}
				together := tiling{spread: spread, cluster: s.cluster}.together(b.properties)
				add(grouping{
					spread: spread, blocks: s.cluster, samples: samples, threads: 32 * warps, shared: s.shared(), together: together, cycles: s.cycles(together),
					kernel: "back", sizes: fmt.Sprintf("SPREAD = %d, CLUSTER = %d, UNITS = %d, SAMPLES = %d, WARPS = %d, CHUNKS = %d, RESIDENT = %d, EXACT = %d",
						number(spread), s.cluster, s.units, samples, warps, s.chunks(), s.resident, number(l.exact)),
					knobs: knob.Params{},
				}, "")
			}
		}
	})
	slices.SortStableFunc(all, cheaper)
	return all, why
}

// maxSpread bounds the sequences of a group that is spread over the GPU: blocks
// leave parts for each other in memory.
const maxSpread = 16

// partsBytes bounds what groups leave there: two buffers of words, one from each
// block for each unit of each sequence.
func partsBytes(hidden, batch int, p Properties) int64 {
	line := hidden + roundUp(ceil(hidden, max(1, p.SMs/maxGroups)), 16)
	return 2 * 8 * int64(p.SMs) * int64(line) * int64(min(maxSpread, roundUp(batch, 8)))
}

// backChosen says that gradients run in groups unless knobs say otherwise.
const backChosen = true

// backwards is op by the kernel that knobs name, or the one expected to be the
// fastest of those that fit.
func (b *binder) backwards(op schedule.PersistentBackward) ([]step, error) {
	if b.knobs["resident"] != 3 && (backChosen || b.knobs["resident"] != 0) {
		l := layer{op.Hidden(), op.Cell.Recurrent, op.Batch(), b.element(op.R), b.precision == schedule.FP32}
		reads, _ := op.Cell.Backward.Vectors()
		all, why := b.scatters(l, 2*len(reads)+4*len(op.Cell.States))
		if len(all) > 0 {
			return []step{b.groupBackward(op, all[0])}, nil
		}
		if b.knobs["resident"] != 0 {
			return nil, fmt.Errorf("cuda: %w: %s", schedule.ErrUnsupported, why)
		}
	}
	return b.resident(b.backward(op))
}

// groupBackward is the kernel of op in groups of blocks.
func (b *binder) groupBackward(op schedule.PersistentBackward, t grouping) step {
	groups := b.carriedGroups(op)
	words := []any{t.kernel, " ", op.Cell.Name, op.Hidden(), t.sizes, b.element(op.R)}
	for _, g := range groups {
		words = append(words, " ", g.name, g.element)
	}
	write := func() source {
		text := "constexpr int " + t.sizes + ";\n" + file("recurrence").text + backText(op, groups, b.element(op.R)) + file(t.kernel).text
		text += fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(%d, 1)\npersistentbackward(int steps, int batch, unsigned* control, unsigned* trouble%s, const W* weights) {\n  const Cell cell = {%s, weights};\n  back_layer(cell, steps, batch, control, trouble);\n}\n",
			t.threads, params(groups), strings.TrimPrefix(members(groups, 0), ", "))
		return source{"persistentbackward", text}
	}
	args := append([]uint64{uint64(op.Steps), uint64(op.Batch()), b.control(), b.trouble()}, b.arguments(groups)...)
	return t.launch(op.Batch(), b.source(write, words...), append(args, uint64(b.at(op.R))))
}

// carried lists what a thread keeps from step to step: the states' gradients,
// then those of peepholes.
func carried(c *cell.Cell) []cell.Ref {
	var all []cell.Ref
	for s := range c.States {
		all = append(all, cell.Ref{Kind: cell.DNext, Index: s})
	}
	for k := range c.Peeps {
		all = append(all, cell.Ref{Kind: cell.DPeep, Index: k})
	}
	return all
}

// carriedGroups are the arguments of a kernel that keeps what is carried itself.
func (b *binder) carriedGroups(op schedule.PersistentBackward) []group {
	var p cell.Program // that has the vectors
	for _, r := range carried(op.Cell) {
		p = append(p, cell.Instr{Op: cell.Copy, Out: r, A: r})
	}
	groups := b.groups(append(p, op.Cell.Backward...), func(r cell.Ref) schedule.View { return whole(&op.Sequence, &op.SequenceGrad, r) })
	return slices.DeleteFunc(groups, func(g group) bool { return strings.HasPrefix(g.name, "g_dprev") })
}

// backText is the struct Cell of kernels/back.cu.
func backText(op schedule.PersistentBackward, groups []group, weights Element) string {
	c := op.Cell
	kept := carried(c)
	reads, writes := c.Backward.Vectors()
	isKept := func(r cell.Ref) bool { return r.Kind == cell.DNext || r.Kind == cell.DPeep || r.Kind == cell.DPrev }
	reads, writes = slices.DeleteFunc(reads, isKept), slices.DeleteFunc(writes, isKept)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("typedef %v W;\nstruct Cell {", weights)
	for _, f := range strings.Split(params(groups), ", ")[1:] {
		p("  %s;", f)
	}
	p("  const W* weights;")
	p("  enum { hidden = %d, GATES = %d, STATES = %d, THROUGH = %d, INPUTS = %d, RESULTS = %d };", op.Hidden(), c.Recurrent, len(kept), c.Through, max(1, len(reads)), max(1, len(writes)))
	p("  __device__ void before(int n, int u, float* state) const {")
	for i, r := range kept {
		p("    state[%d] = widen(%s);", i, place(r, "n"))
	}
	p("  }\n  __device__ void after(int n, int u, const float* state) const {")
	for i, r := range kept {
		p("    narrow(%s, state[%d]);", place(r, "n"), i)
	}
	p("  }\n  __device__ void input(int t, int batch, int n, int u, float* x) const {")
	for i, r := range reads {
		p("    x[%d] = widen(%s);", i, place(r, rowBack(r)))
	}
	p("  }\n  __device__ void store(int t, int batch, int n, int u, const float* kept) const {")
	for i, w := range writes {
		p("    narrow(%s, kept[%d]);", place(w, rowBack(w)), i)
	}
	p("  }\n  __device__ static void rest(const float* x, float* state, float* sent, float* kept) {")
	for i, r := range reads {
		p("    const float %v = x[%d];", r, i)
	}
	for i, r := range kept {
		p("    float %v = state[%d];", r, i)
	}
	b.WriteString(statements(c.Backward, "    ", slices.Concat(reads, kept)))
	for i, w := range writes {
		p("    kept[%d] = %v;", i, w)
	}
	kind := cell.DX
	if c.SplitGrad {
		kind = cell.DR
	}
	for g := range c.Recurrent {
		p("    sent[%d] = %v;", g, cell.Ref{Kind: kind, Index: g})
	}
	for i, r := range kept {
		switch before := (cell.Ref{Kind: cell.DPrev, Index: r.Index}); {
		case r.Kind == cell.DPeep:
			p("    state[%d] = %v;", i, r)
		case c.DirectPrev(r.Index):
			p("    state[%d] = %v;", i, before)
		case r.Index == c.Through: // the product follows
			p("    state[%d] = 0;", i)
		}
	}
	p("  }\n};")
	return b.String()
}
