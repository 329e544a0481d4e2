package cuda

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A scatter is how kernels/back.cu divides a layer.
type scatter struct {
	layer
	clusters int  // of a group; more than one, of one block or of more, are spread over the GPU
	cluster  int  // blocks of a cluster
	units    int  // of a block
	samples  int  // sequences of a group
	warps    int  // of a block
	tensor   bool // products on tensor cores
	out      int  // else units of the layer of a thread
	lanes    int  // and threads that share them
	resident int  // of a thread's pieces of weights, in registers
}

func (s scatter) spread() bool { return s.clusters > 1 }
func (s scatter) blocks() int  { return s.clusters * s.cluster }
func (s scatter) threads() int { return 32 * s.warps }

// step is how many columns a thread has side by side where not on tensor cores.
func (s scatter) step() int { return max(1, 4/s.samples) }

// chunks is the number of pieces of a block's columns.
func (s scatter) chunks() int {
	if s.tensor {
		return ints.CeilDiv(s.gates*s.units*s.weights.Bytes(), 64)
	}
	return ints.CeilDiv(s.gates*s.units, s.lanes*s.step())
}

// per is the number of registers of a thread's piece of weights.
func (s scatter) per() int {
	if s.tensor {
		return 8
	}
	return s.out * s.step()
}

// pieces is the number of a thread's pieces of weights.
func (s scatter) pieces() int {
	if s.tensor {
		return ints.CeilDiv(ints.CeilDiv(s.blocks()*s.units, 16), s.warps) * s.chunks()
	}
	return ints.CeilDiv(ints.CeilDiv(s.blocks()*s.units, s.out)*s.lanes, s.threads()) * s.chunks()
}

// grads is what a block's gradients take of shared memory.
func (s scatter) grads() int {
	if !s.tensor {
		return 4 * s.chunks() * s.lanes * s.step() * s.samples
	}
	row := 64 * s.chunks()
	if row%128 == 0 {
		row += 64
	}
	if s.exact {
		return s.samples * (row + 8)
	}
	return s.samples * row
}

// shared is what a block needs of shared memory: barriers, parts that come,
// gradients of its gates and weights beyond registers.
func (s scatter) shared() int {
	bytes := 128 + s.grads() + 4*s.per()*s.threads()*(s.pieces()-s.resident)
	if !s.spread() && s.cluster > 1 {
		bytes += s.grads()
	}
	if s.cluster > 1 || !s.spread() {
		bytes += 2 * 4 * s.blocks() * s.units * s.samples
	}
	if s.spread() {
		bytes += 4 * ints.RoundUp(s.units*s.samples*(s.clusters|1), 4)
	}
	return bytes
}

// same is how many lanes share the sum of a unit's parts.
func (s scatter) same() int {
	n := 1
	for s.spread() && n*8 < s.clusters && n*2 <= s.threads()/(s.units*s.samples) && n < 32 {
		n *= 2
	}
	return n
}

// each is how many units of sequences a thread has.
func (s scatter) each() int { return ints.CeilDiv(s.units*s.samples*s.same(), s.threads()) }

// overhead is how many registers a thread needs besides its weights; carried are
// those of a unit.
func (s scatter) overhead(carried int) int {
	n := 56 + s.each()*carried
	switch {
	case !s.tensor:
		n += 8 + s.out*s.samples
		if s.pieces()*s.per() > maxRegisters-n { // some are read from shared memory, ahead of their use
			n += 12
		}
	case s.exact:
		n += s.sums() + 28 + s.samples
	default:
		n += s.sums() + 20 + s.samples/2
	}
	if s.tensor && s.spread() { // where words go
		n += 8
	}
	return n
}

// sums is the number of a thread's on tensor cores.
func (s scatter) sums() int {
	groups := ints.CeilDiv(ints.CeilDiv(s.blocks()*s.units, 16), s.warps)
	return s.samples * max(1, min(groups, 32/s.samples))
}

// aligned is what a block's units are a multiple of: of what is sent at a time.
func (s scatter) aligned() int {
	if s.tensor {
		return 2
	}
	return max(2, s.out/s.lanes)
}

// shaped fills in how s, of so many blocks at most, divides the units, or says
// why it does not fit.
func (s scatter) shaped(blocks, carried int, p driver.Properties) (scatter, string) {
	s.units = ints.RoundUp(ints.CeilDiv(s.hidden, blocks), s.aligned())
	if used := ints.CeilDiv(s.hidden, s.units); s.spread() {
		s.clusters = ints.CeilDiv(used, s.cluster)
	} else {
		s.cluster = used
	}
	room := min(maxRegisters, registersOfSM/ints.RoundUp(s.threads(), 128)/8*8) - s.overhead(carried)
	s.resident = min(s.pieces(), max(0, room)/s.per())
	if s.shared() > p.Shared {
		return s, fmt.Sprintf("%d weights of a block's %d units take %d KiB of shared memory beyond registers, and there are %d",
			s.gates*s.hidden*s.units, s.units, s.shared()>>10, p.Shared>>10)
	}
	return s, ""
}

// together is how many groups run at the same time.
func (s scatter) together(p driver.Properties) int {
	if s.cluster == 1 {
		return p.SMs / s.clusters
	}
	return max(1, p.Together(s.cluster)/s.clusters)
}

// cycles is about what a step of all sequences takes, fitted to 168 measurements on
// an H200: products, for which shared memory delivers 128 bytes per cycle; sums and
// the cell; and the exchange of parts. Pushes of all groups share what connects
// multiprocessors, and words the 4 TB/s that memory takes and gives.
func (s scatter) cycles(p driver.Properties) float64 {
	groups, together := ints.CeilDiv(s.batch, s.samples), s.together(p)
	side := float64(min(groups, together))
	warps, pieces, far := float64(s.warps), float64(s.pieces()), float64(s.pieces()-s.resident)
	units, live := float64(s.blocks()*s.units), float64(min(s.batch, s.samples))
	chunks := float64(s.chunks())
	var step, message float64
	if s.tensor {
		tiles, products := float64(s.samples/8), 2.0
		step, message = 1550, 4
		if s.exact {
			products, step = 3, 1750
		}
		rounds := math.Ceil(pieces / chunks * tiles / 4)
		step += 8*products*pieces*tiles*warps/4 + 4*warps*(chunks*rounds*min(tiles, 4)+far*float64(s.per())/4)
		live = float64(ints.RoundUp(int(live), 2))
	} else {
		multiply, load := 1.45*pieces*float64(s.per()*s.samples)*warps/4, warps*(pieces*float64(s.step()*s.samples)+far*float64(s.per()))
		step = 155 + max(multiply, load) + min(multiply, load)/6 + 95*pieces/chunks
		message = float64(min(4, s.out/s.lanes*s.samples))
	}
	step += 300 * float64((ints.CeilDiv(s.units*s.samples*s.same(), min(s.threads(), 256))-1)*s.gates) // sixteen warps take turns
	if s.cluster > 1 {
		step += 220 + 0.75*units*live/message
	}
	if s.spread() {
		words := units * live / float64(s.cluster)
		step += 995 + 16*words*float64(s.blocks())*side/2280 + 20*words/float64(s.threads())
		if s.cluster > 1 {
			step += 300
		}
		if s.cluster > 1 && s.cluster < 16 {
			step *= 1.06
		}
	} else {
		step += 60 * side
	}
	return float64(ints.CeilDiv(groups, together)) * step
}

// unitRegisters is about how many registers the gradient of a unit takes.
func unitRegisters(c *cell.Cell) int {
	reads, writes := c.Backward.Vectors()
	return 2*len(reads) + 2*len(c.States) + len(writes) - 2
}

// backgroupings lists how the gradient of a layer of c can run in groups that
// knobs allow, the cheapest first, or says why there are none.
func (b *binder) backgroupings(c *cell.Cell, l layer) ([]grouping, string) {
	all, why := b.scatters(l, unitRegisters(c))
	more, no := b.gatherings(l, unitRegisters(c), len(carried(c)))
	if len(all) == 0 {
		why = no
	}
	all = append(all, more...)
	slices.SortStableFunc(all, cheaper)
	return all, why
}

// scatters lists how the gradient of a layer can run in groups that knobs allow,
// the cheapest first, or says why there are none. carried is about how many
// registers a thread needs for each unit.
func (b *binder) scatters(l layer, carried int) ([]grouping, string) {
	var all []grouping
	why := "the GPU has no clusters of blocks"
	seen := map[string]bool{}
	for _, form := range b.scatterForms(l) {
		b.scatterShapes(func(clusters, cluster, groups int) {
			if groups > ints.CeilDiv(l.batch, form.samples) && b.Knobs["groups"] == 0 || clusters > 1 && form.samples > maxSpread {
				return
			}
			s := form
			s.clusters, s.cluster = clusters, cluster
			s, no := s.shaped(clusters*cluster, carried, b.Properties)
			if no != "" {
				why = no
				return
			}
			if s.cluster > 1 && b.Properties.Together(s.cluster) < s.clusters || clusters > 1 && s.clusters == 1 {
				return
			}
			if g := s.grouping(b.Properties); !seen[g.sizes] {
				seen[g.sizes] = true
				g.knobs["cluster"] = cluster
				if g.spread {
					g.knobs["resident"], g.knobs["groups"] = 2, groups
				}
				all = append(all, g)
			}
		})
	}
	return all, why
}

// scatterForms lists ways to multiply that knobs allow.
func (b *binder) scatterForms(l layer) []scatter {
	var all []scatter
	for _, warps := range []int{4, 8, 16} {
		if b.Knobs["tensor"] != 2 {
			for _, samples := range b.samples(l.batch, 8, 16, 32) {
				if samples%8 == 0 && samples <= ints.RoundUp(l.batch, 8) {
					all = append(all, scatter{layer: l, samples: samples, warps: warps, tensor: true})
				}
			}
		}
		if b.Knobs["tensor"] == 1 {
			continue
		}
		for _, samples := range b.samples(l.batch, 1, 2, 4, 8) {
			if samples != ints.PowerOfTwo(samples) {
				continue
			}
			for _, out := range []int{4, 8} {
				for lanes := out / 2; lanes <= min(out, 8) && samples <= 8 && out*samples <= 64; lanes *= 2 {
					all = append(all, scatter{layer: l, samples: samples, warps: warps, out: out, lanes: lanes})
				}
			}
		}
	}
	return all
}

// scatterShapes yields the groups that knobs allow: clusters of one, their
// blocks, and how many groups there are.
func (b *binder) scatterShapes(yield func(clusters, cluster, groups int)) {
	hopper := b.Properties.Capability >= 90
	if (b.Knobs["resident"] == 0 || b.Knobs["resident"] == 1) && hopper {
		for _, n := range b.choose("cluster", clusterSizes()...) {
			yield(1, n, 1)
		}
	}
	if b.Knobs["resident"] == 1 {
		return
	}
	for _, groups := range b.choose("groups", 1, 2, 3, 4, 8, maxGroups) {
		for _, n := range b.choose("cluster", clusterSizes()...) {
			room := b.Properties.SMs
			if n > 1 {
				room = b.Properties.Together(n)
			}
			if clusters := room / groups; clusters > 1 && (n == 1 || hopper) {
				yield(clusters, n, groups)
			}
		}
	}
}

// grouping is how s runs.
func (s scatter) grouping(p driver.Properties) grouping {
	sizes := fmt.Sprintf("SPREAD = %d, CLUSTERS = %d, CLUSTER = %d, UNITS = %d, SAMPLES = %d, WARPS = %d, CHUNKS = %d, RESIDENT = %d, SAME = %d, ",
		ints.FromBool(s.spread()), s.clusters, s.cluster, s.units, s.samples, s.warps, s.chunks(), s.resident, s.same())
	kernel := "backtensor"
	if s.tensor {
		sizes += fmt.Sprintf("EXACT = %d", ints.FromBool(s.exact))
	} else {
		kernel = "backvector"
		sizes += fmt.Sprintf("OUT = %d, LANES = %d", s.out, s.lanes)
	}
	return grouping{
		spread: s.spread(), few: s.spread(), cluster: s.cluster, blocks: s.blocks(), samples: s.samples, threads: s.threads(), shared: s.shared(), together: s.together(p), cycles: s.cycles(p),
		kernel: kernel, sizes: sizes, knobs: knob.Params{"resident": 1, "samples": s.samples, "tensor": 2 - ints.FromBool(s.tensor)},
	}
}

// maxSpread bounds the sequences of a group that is spread over the GPU: blocks
// leave parts for each other in memory.
const maxSpread = 16

// partsBytes bounds what groups leave there: two buffers of words, one from each
// block for each unit of each sequence; or two images of all gradients.
func partsBytes(hidden, batch int, p driver.Properties) int64 {
	line := hidden + ints.RoundUp(ints.CeilDiv(hidden, max(1, p.SMs/maxGroups)), 16)
	words := 2 * 8 * int64(p.SMs) * int64(line) * int64(min(maxSpread, ints.RoundUp(batch, 8)))
	return max(words, 2*24*int64(hidden+maxPadding)*int64(ints.RoundUp(batch, maxSamples)))
}

// backwards is op by the kernel that knobs name, or the one expected to be the
// fastest of those that fit.
func (b *binder) backwards(op schedule.PersistentBackward) ([]launch.Command, error) {
	form, _, err := b.backwardForm(op)
	switch {
	case err != nil:
		return nil, err
	case form.grouped():
		return []launch.Command{b.groupBackward(op, form)}, nil
	}
	return b.resident(b.backward(op))
}

// backwardForm is how op runs; see forwardForm.
func (b *binder) backwardForm(op schedule.PersistentBackward) (form grouping, no, err error) {
	if b.Knobs["resident"] == 3 {
		return barrier(), nil, nil
	}
	l := layer{hidden: op.Hidden(), gates: op.Cell.Recurrent, batch: op.Batch(), weights: b.Element(op.R), exact: b.Precision == schedule.FP32, within: 0, inputs: 0}
	list := func(b *binder) ([]grouping, string) { return b.backgroupings(op.Cell, l) }
	of := choice{cell: op.Cell, layer: l, backward: true}
	all, err := b.shared(of, list)
	if err != nil && b.Knobs["samples"] != 0 { // which may be of the forward pass alone
		free, same := *b, *b.Target
		same.Knobs = maps.Clone(b.Knobs)
		free.Target = &same
		delete(free.Knobs, "samples")
		all, err = free.shared(of, list)
	}
	switch n := b.Knobs["back"]; {
	case err != nil && b.Knobs["resident"] == 0:
		return barrier(), err, nil
	case err != nil:
		return grouping{}, nil, err
	case n >= len(all):
		return grouping{}, nil, fmt.Errorf("cuda: back=%d: %w: there are %d ways to divide this gradient, from 0 on", n, schedule.ErrKnob, len(all))
	default:
		return all[n], nil, nil
	}
}

// groupBackward is the kernel of op in groups of blocks.
func (b *binder) groupBackward(op schedule.PersistentBackward, t grouping) launch.Command {
	groups := b.carriedGroups(op)
	words := []any{t.kernel, " ", op.Cell.Name, b.functions(), op.Hidden(), t.sizes, b.Element(op.R)}
	for _, g := range groups {
		words = append(words, " ", g.Name, g.Element)
	}
	write := func() codegen.Source {
		text := "constexpr int " + t.sizes + ";\n" + file("recurrence").Text + backText(op, groups, b.Element(op.R), b.functions()) + t.backFiles()
		text += fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(%d, 1)\npersistentbackward(int steps, int batch, unsigned* control, unsigned* trouble%s, const W* weights) {\n  const Cell cell = {{}%s, weights};\n  back_layer(cell, steps, batch, control, trouble);\n}\n",
			t.threads, codegen.Params(groups), codegen.Members(groups, 0))
		return codegen.Source{Name: "persistentbackward", Text: text}
	}
	args := append([]uint64{uint64(op.Steps), uint64(op.Batch()), b.control(), b.Status()}, b.Arguments(groups)...)
	return t.launch(op.Batch(), b.sides > 1, b.Source(write, words...), append(args, uint64(b.At(op.R))))
}

// backFiles are the text of a gradient's kernel.
func (t grouping) backFiles() string {
	if t.kernel == "backturns" {
		return file("fragments").Text + file(t.kernel).Text
	}
	return file(t.kernel).Text + file("back").Text
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
func (b *binder) carriedGroups(op schedule.PersistentBackward) []codegen.Group {
	var p cell.Program // that has the vectors
	for _, r := range carried(op.Cell) {
		p = append(p, cell.Instr{Op: cell.Copy, Out: r, A: r})
	}
	groups := b.Groups(append(p, op.Cell.Backward...), func(r cell.Ref) schedule.View { return codegen.Whole(&op.Sequence, &op.SequenceGrad, r) })
	return slices.DeleteFunc(groups, func(g codegen.Group) bool { return strings.HasPrefix(g.Name, "g_dprev") })
}

// backText is the struct Cell of kernels/back.cu, with functions of that name.
func backText(op schedule.PersistentBackward, groups []codegen.Group, weights driver.Element, functions string) string {
	c := op.Cell
	kept := carried(c)
	reads, writes := c.Backward.Vectors()
	isKept := func(r cell.Ref) bool { return r.Kind == cell.DNext || r.Kind == cell.DPeep || r.Kind == cell.DPrev }
	reads, writes = slices.DeleteFunc(reads, isKept), slices.DeleteFunc(writes, isKept)
	early, rest, ready := cutBackward(c.Backward, isKept)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("typedef %v W;\nstruct Cell : %s {", weights, functions)
	for _, f := range strings.Split(codegen.Params(groups), ", ")[1:] {
		p("  %s;", f)
	}
	p("  const W* weights;")
	p("  enum { hidden = %d, GATES = %d, STATES = %d, THROUGH = %d, INPUTS = %d, READY = %d, RESULTS = %d };", op.Hidden(), c.Recurrent, len(kept), c.Through, max(1, len(reads)), max(1, len(ready)), max(1, len(writes)))
	p("  __device__ void before(int n, int u, float* state) const {")
	for i, r := range kept {
		p("    state[%d] = widen(%s);", i, codegen.Place(r, "n"))
	}
	p("  }\n  __device__ void after(int n, int u, const float* state) const {")
	for i, r := range kept {
		p("    narrow(%s, state[%d]);", codegen.Place(r, "n"), i)
	}
	p("  }\n  __device__ void input(int t, int batch, int n, int u, float* x) const {")
	for i, r := range reads {
		p("    x[%d] = widen(%s);", i, codegen.Place(r, rowBack(r)))
	}
	p("  }\n  __device__ void store(int t, int batch, int n, int u, const float* kept) const {")
	for i, w := range writes {
		p("    narrow(%s, kept[%d]);", codegen.Place(w, rowBack(w)), i)
	}
	p("  }\n  __device__ static void early(const float* x, float* ready) {")
	for i, r := range reads {
		p("    const float %v = x[%d];", r, i)
	}
	b.WriteString(codegen.Statements(early, "    ", reads))
	for i, r := range ready {
		p("    ready[%d] = %v;", i, r)
	}
	p("  }\n  __device__ static void rest(const float* ready, float* state, float* sent, float* kept) {")
	for i, r := range ready {
		p("    const float %v = ready[%d];", r, i)
	}
	for i, r := range kept {
		p("    float %v = state[%d];", r, i)
	}
	b.WriteString(codegen.Statements(rest, "    ", slices.Concat(ready, kept)))
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

// cutBackward cuts a cell's gradient in two: what depends on the forward pass
// alone, and the rest, which takes what is ready from the first.
func cutBackward(p cell.Program, kept func(cell.Ref) bool) (early, rest cell.Program, ready []cell.Ref) {
	late := map[cell.Ref]bool{}
	waits := func(r cell.Ref) bool { return late[r] || kept(r) }
	for _, in := range once(p) {
		if in.Out.Kind == cell.Temp && !slices.ContainsFunc(in.Args(), waits) {
			early = append(early, in)
			continue
		}
		late[in.Out] = true
		rest = append(rest, in)
		for _, a := range in.Args() {
			if !waits(a) && !slices.Contains(ready, a) {
				ready = append(ready, a)
			}
		}
	}
	return early, rest, ready
}

// once is p with each temporary vector written once.
func once(p cell.Program) cell.Program {
	names := map[cell.Ref]cell.Ref{}
	name := func(r cell.Ref) cell.Ref {
		if n, ok := names[r]; ok {
			return n
		}
		return r
	}
	var out cell.Program
	for i, in := range p {
		in.A, in.B = name(in.A), name(in.B)
		if in.Out.Kind == cell.Temp {
			names[in.Out] = cell.Ref{Kind: cell.Temp, Index: i}
			in.Out = names[in.Out]
		}
		out = append(out, in)
	}
	return out
}
