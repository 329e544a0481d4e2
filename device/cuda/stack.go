package cuda

import (
	"fmt"
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

// Persistent layers upon each other run as one kernel, each in blocks of its own
// (kernels/stack.cu), where a product of the states of one is the input of the next
// and nothing is between them. What the product would have left in memory is never
// formed: so its matrix is one that the host may not read.

// Stacks say which operations run so, by their places in the schedule, and
// which weights are packed for it, by their matrix's number.
type stacks struct {
	at     map[int]*stacked // by the place of the first layer
	inside map[int]bool     // what else is in a stack
	lower  map[int]bool     // weights of the layer beneath
	own    map[int]bool     // recurrent weights
}

// A stacked is how layers run upon each other: groups of blocks, each with all layers
// and a part of the sequences. A block has 16 units of a layer.
type stacked struct {
	layer
	layers  []schedule.Persistent
	lower   []schedule.Gemm // the products of each but the first
	states  int             // of the cell
	takes   int             // gates with inputs
	free    int             // of them, whose products are kept apart
	blocks  int             // of a layer in a group
	groups  int
	samples int // sequences that are multiplied together
	parts   int // of so many sequences, which take turns
	split   int // warps that share the columns
	chunks  int // pieces of a warp's columns, 64 bytes each
	own     int // of them in registers
	near    int // and of those of the layer beneath
	places  int // for sums
	more    int // registers of a thread that multiplies
	fewer   int // and of one that runs cells; 0: all have the same
	meeting int64
	bulk    *bulk // of the kernel for many sequences; nil: it is the other
}

// stackUnits of a block and warps of it that run cells, steps for which h stays in
// memory, and turns that inputs are read ahead.
const (
	stackUnits = 16
	stackCells = 4
	stackDepth = 16
	stackAhead = 4
)

// newStacks finds them. An error wraps schedule.ErrUnsupported: knobs ask for what
// there is none of.
func newStacks(s *schedule.Schedule, k knob.Params, p driver.Properties) (stacks, error) {
	out := stacks{at: map[int]*stacked{}, inside: map[int]bool{}, lower: map[int]bool{}, own: map[int]bool{}}
	why := "they take tensor cores that multiply halves"
	if k["stack"] != 2 && p.Capability >= 80 {
		why = out.find(s, k, p)
	}
	if k["stack"]%2 == 1 && len(out.at) == 0 {
		return out, fmt.Errorf("cuda: stack=%d: %w: no layers run as one kernel: %s", k["stack"], schedule.ErrKnob, why)
	}
	return out, nil
}

// find has as many layers as fit run together, where that pays or knobs ask for it,
// or says why those that it found last do not.
func (out *stacks) find(s *schedule.Schedule, k knob.Params, p driver.Properties) (why string) {
	why = "none lie upon each other, over two steps or more, with nothing but a product between them"
	element, uses := elements(s), usesOf(s)
	for i := 0; i < len(s.Nodes); i++ {
		n := 1 // layers
		for i+2*n < len(s.Nodes) && follows(s, i+2*(n-1), uses) {
			n++
		}
		if n == 1 {
			continue
		}
		for parts := 1; parts <= n/2; parts++ {
			st, no := newStacked(s, i, ints.CeilDiv(n, parts), element, k, p)
			if no != "" {
				why = no
				continue
			}
			if k["stack"] != 0 || st.pays(k, p) {
				out.take(i, st)
			}
			i += 2 * (len(st.layers) - 1)
			break
		}
	}
	return why
}

// take has st run from place i on.
func (out *stacks) take(i int, st *stacked) {
	out.at[i] = st
	for l, op := range st.layers {
		for _, r := range op.R {
			out.own[r.M.ID] = true
		}
		if l > 0 {
			out.inside[i+2*l-1], out.inside[i+2*l] = true, true
			out.lower[st.lower[l-1].B.M.ID] = true
		}
	}
}

// usesOf counts the operations that touch each matrix.
func usesOf(s *schedule.Schedule) []int {
	uses := make([]int, len(s.Matrices))
	last := make([]int, len(s.Matrices)) // the latest that does, from 1 on
	n := 0
	for op := range s.Operations() {
		n++
		for v := range schedule.Accesses(op) {
			if last[v.M.ID] != n {
				last[v.M.ID] = n
				uses[v.M.ID]++
			}
		}
	}
	return uses
}

// follows reports whether the layer of node i is the input of one like it: a
// product comes next and then that layer, and nothing else touches either's
// weights, which are packed, or the product.
func follows(s *schedule.Schedule, i int, uses []int) bool {
	if i+2 >= len(s.Nodes) {
		return false
	}
	op, ok := s.Nodes[i].Op.(schedule.Persistent)
	g, product := s.Nodes[i+1].Op.(schedule.Gemm)
	next, again := s.Nodes[i+2].Op.(schedule.Persistent)
	if !ok || !product || !again {
		return false
	}
	for _, n := range s.Nodes[i+1 : i+3] {
		if n.Stream != s.Nodes[i].Stream || len(n.Wait) > 0 {
			return false
		}
	}
	for _, r := range slices.Concat(op.R, next.R, []schedule.View{g.B}) {
		if uses[r.M.ID] != 2 || !r.M.Packed || r != r.M.All() {
			return false
		}
	}
	h, batch := op.Hidden(), op.Batch()
	return op.Cell == next.Cell && op.Train == next.Train && op.Steps == next.Steps && op.Steps > 1 && batch == next.Batch() && h == next.Hidden() &&
		g.A == op.State[op.Cell.Through].Band(batch, op.Steps*batch) && !g.TransA && !g.TransB && !g.Accumulate &&
		g.C == next.X && g.C.M.Scratch && uses[g.C.M.ID] == 2
}

// newStacked is how n layers from place i on run upon each other, or why they do not.
func newStacked(s *schedule.Schedule, i, n int, element []driver.Element, k knob.Params, p driver.Properties) (*stacked, string) {
	op := s.Nodes[i].Op.(schedule.Persistent)
	r := newRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
	free := r.reads(cell.X)
	st := &stacked{
		layer:  layer{hidden: op.Hidden(), gates: len(r.gates), batch: op.Batch(), weights: element[op.R[0].M.ID], exact: s.Precision == schedule.FP32, within: within(op.Cell), inputs: 0},
		states: len(op.Cell.States), takes: len(op.Cell.Gates), free: len(free),
	}
	if element[op.X.M.ID] == driver.Single {
		st.inputs = r.inputs()
	}
	for l := range n {
		st.layers = append(st.layers, s.Nodes[i+2*l].Op.(schedule.Persistent))
		if l > 0 {
			st.lower = append(st.lower, s.Nodes[i+2*l-1].Op.(schedule.Gemm))
		}
	}
	for _, next := range st.layers[1:] {
		same := vectors(next)
		for i, v := range vectors(op) {
			if !v.Empty() && element[v.M.ID] != element[same[i].M.ID] {
				return nil, "layers store what they read in different ways"
			}
		}
	}
	for g := range st.takes { // an input belongs to one sum
		apart := slices.ContainsFunc(free, func(f cell.Ref) bool { return f.Index == g })
		if own := g < len(r.gates) && r.gates[g].owns(cell.X); own == apart {
			return nil, fmt.Sprintf("an input of %v belongs to several sums, or to none", op.Cell)
		}
	}
	if st.exact && op.Cell.Kinked() {
		return nil, fmt.Sprintf("halves do not hold the states of %v, which may grow", op.Cell)
	}
	if why := st.group(k["groups"], p); why != "" {
		return nil, why
	}
	switch many := *st; {
	case k["stack"] == 3:
		return st, st.copied(k["samples"], p)
	case k["stack"] == 0 && k["samples"] == 0 && st.many() && many.copied(0, p) == "" && many.bulk.cluster == 2:
		return &many, ""
	}
	return st, st.looked(k["samples"], p)
}

// group cuts st into so many groups, or, of 0, into as many as there is room for.
func (st *stacked) group(groups int, p driver.Properties) (why string) {
	st.blocks = ints.CeilDiv(st.hidden, stackUnits)
	st.groups = min(st.batch, p.SMs/(st.blocks*len(st.layers)))
	switch {
	case st.groups < 1:
		return fmt.Sprintf("%d layers of %d blocks are more than the GPU's %d multiprocessors", len(st.layers), st.blocks, p.SMs)
	case groups > st.groups:
		return fmt.Sprintf("there are no %d groups of %d layers, at most %d", groups, len(st.layers), st.groups)
	case groups > 0:
		st.groups = groups
	}
	return ""
}

// looked has warps of st look at the words of h that they multiply, so many sequences
// at a time; 0: by how many there are.
func (st *stacked) looked(samples int, p driver.Properties) (why string) {
	if st.samples = samples; samples == 0 {
		st.samples = 8
		if st.sequences() > 16 {
			st.samples = 16
		}
	}
	if st.samples%8 != 0 {
		return fmt.Sprintf("%d sequences are not eights", samples)
	}
	st.parts, st.split = ints.CeilDiv(st.sequences(), st.samples), 8
	lines := ints.CeilDiv(st.hidden*st.weights.Bytes(), 64)
	if lines <= 4 {
		st.split = 4
	}
	st.chunks = ints.CeilDiv(lines, st.split)
	registers := min(maxRegisters, registersOfSM/st.threads()/8*8)
	if st.split == 8 && p.Hopper {
		st.more, st.fewer = 216, 72
		registers = st.more
	}
	room := max(0, registers-st.overhead())
	st.own = min(st.chunks, room/(8*st.gates))
	st.near = min(st.chunks, (room-st.own*8*st.gates)/(8*st.takes))
	for st.places = 3; st.places > 2 && st.shared() > p.Shared; st.places-- {
	}
	return st.fits(p)
}

// fits says why the shared memory of a block does not do.
func (st *stacked) fits(p driver.Properties) (why string) {
	if st.shared() > p.Shared {
		return fmt.Sprintf("a block's %d units of %d layers take %d KiB of shared memory, and there are %d", stackUnits, len(st.layers), st.shared()>>10, p.Shared>>10)
	}
	return ""
}

// vectors are what a layer reads and writes of each unit.
func vectors(op schedule.Persistent) []schedule.View {
	return append([]schedule.View{op.X, op.BX, op.BR, op.Peep, op.Saved}, op.State...)
}

// sequences of a group.
func (st *stacked) sequences() int { return ints.CeilDiv(st.batch, st.groups) }

func (st *stacked) threads() int {
	if st.bulk != nil {
		return 3 * 128
	}
	return 32 * (st.split + stackCells)
}

// bounded is within, for values of 16 bits: then a state's own bits tell whether it
// is new.
func (st *stacked) bounded() int {
	if st.weights == driver.Single {
		return 0
	}
	return st.within
}

// wide is how many words of 32 bits a word of a state takes in memory at most.
func (st *stacked) wide() int { return 2 - ints.FromBool(st.bounded() == 1) }

// overhead is how many registers a thread that multiplies needs besides weights:
// sums, and the states of both layers.
func (st *stacked) overhead() int {
	values := (st.gates + st.free) * st.samples / 8
	chains := 1
	switch {
	case st.exact:
		chains = 2 + ints.FromBool(values == 1)
	case values < 3:
		chains = 4 / values
	}
	return 24 + 4*chains*values + 8*st.chunks*st.samples/8*st.wide()
}

// shared is what a block needs of shared memory: places for sums, with two barriers
// each, the weights beyond registers, and states.
func (st *stacked) shared() int {
	if st.bulk != nil {
		return st.bulkShared()
	}
	sums := st.places * st.split * (st.gates + st.free) * st.samples * 20 * 4
	far := 32 * st.split * 32 * ((st.chunks-st.own)*st.gates + (st.chunks-st.near)*st.takes)
	return sums + far + 4*st.samples*stackUnits*(st.parts*st.states+stackAhead*(st.gates+st.free)) + 16*st.places
}

// bytes is what the blocks leave in memory for each other: of each group the
// numbers and, of each layer, a few steps' states.
func (st *stacked) bytes() int64 {
	if st.bulk != nil {
		return st.bulkBytes()
	}
	step := int64(st.chunks*st.split*16) * int64(st.sequences())
	room := func(wide int64) int64 { return 32 + int64(len(st.layers))*(32+stackDepth*step*wide) }
	words := room(int64(st.wide()))
	if st.bounded() == 2 {
		words += room(1)
	}
	return 4 * (64 + int64(st.groups)*words)
}

// pays reports whether st is expected to be clearly faster than its layers one after
// the other, where knobs ask for no form of these, among such as were measured.
func (st *stacked) pays(k knob.Params, p driver.Properties) bool {
	for _, name := range []string{"resident", "cluster", "groups", "samples", "tile", "lanes", "tensor", "share"} {
		if k[name] != 0 {
			return false
		}
	}
	op, layers, most := st.layers[0], len(st.layers), 128
	switch {
	case op.Train || st.hidden < 128 || st.weights == driver.Single && !(st.exact && layers >= 4 && st.hidden <= 512):
		return false
	case st.exact:
		most = 8
	case st.bulk != nil && layers == 2:
		most = 64
	case st.bulk != nil:
		most = 256
	case layers == 2 || st.gates == 1:
		most = 32
	}
	b := binder{Target: &launch.Target{Knobs: k, Properties: p}}
	all, _ := b.groupings(op.Cell, st.layer)
	if len(all) == 0 || st.sequences() > most {
		return false
	}
	const rate, start = 1700, 10 // cycles of a microsecond, and microseconds
	steps := float64(op.Steps)
	product := 2 * float64(st.batch*st.takes) * float64(st.hidden*st.hidden) / 300e6
	alone := float64(layers)*(all[0].cycles/rate+start/steps) + float64(layers-1)*product
	return st.microseconds()*(steps+float64(layers-1))/steps+start/steps < 0.9*alone
}

// microseconds is about what a step takes, fitted to 19 stacks on an H200, to 12 %, and
// to 11 of the kernel for many sequences, to 15 %.
func (st *stacked) microseconds() float64 {
	large, sequences := float64(st.hidden)/512, float64(st.sequences())
	if st.bulk != nil {
		return max(1.15+0.75*large+0.011*(1+large)*sequences, 0.045*large*sequences)
	}
	if st.exact {
		return 0.5 + large*(2.1+0.26*sequences)
	}
	return 0.5 + max(1, large)*max(0.65, sequences/16)*(0.65+0.12*float64(st.gates))
}

// stacked is the kernel of st.
func (b *binder) stacked(st *stacked) launch.Command {
	op := st.layers[0]
	r := newRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
	groups := b.sequenceGroups(op)
	sizes := fmt.Sprintf("SPREAD = 1, ORDERED = 1, CLUSTER = 1, BAND = %d, LAYERS = %d, BLOCKS = %d, SEQUENCES = %d, SAMPLES = %d, PARTS = %d, SPLIT = %d, CELLS = %d, CHUNKS = %d, RESIDENT = %d, NEAR = %d, TAKES = %d, DEPTH = %d, PLACES = %d, MORE = %d, FEWER = %d, BOUNDED = %d, EXACT = %d, CLOCKS = %d",
		stackUnits, len(st.layers), st.blocks, st.sequences(), st.samples, st.parts, st.split, stackCells, st.chunks, st.own, st.near, st.takes, stackDepth, st.places, st.more, st.fewer, st.bounded(), ints.FromBool(st.exact), b.Knobs["clocks"])
	kernel := "stack"
	if st.bulk != nil {
		sizes, kernel = b.bulkSizes(st), "stackbulk"
	}
	words := []any{kernel, " ", op.Cell.Name, b.functions(), op.Train, op.Hidden(), sizes, b.Element(op.R[0])}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	write := func() codegen.Source {
		return codegen.Source{Name: "stack", Text: "constexpr int " + sizes + ";\n" + file("recurrence").Text + r.text(groups, b.Element(op.R[0]), b.functions()) + file("fragments").Text + file(kernel).Text + st.entry(groups)}
	}
	args := []uint64{uint64(op.Steps), uint64(st.batch), uint64(b.Base) + uint64(st.meeting), b.Status()}
	for l, op := range st.layers {
		args = append(args, b.Arguments(b.sequenceGroups(op))...)
		for _, w := range op.R {
			args = append(args, uint64(b.At(w)))
		}
		if l > 0 {
			args = append(args, uint64(b.At(st.lower[l-1].B)))
		}
	}
	s := launch.New(b.Source(write, words...), [3]int{st.groups * len(st.layers) * st.blocks, 1, 1}, [3]int{st.threads(), 1, 1}, args...)
	s.Launch.Shared, s.Launch.Cooperative = st.shared(), true
	if st.bulk != nil {
		s.Launch.Cluster = st.bulk.cluster
	}
	return s
}

// entry spells the kernel, in which blocks go to their layers.
func (st *stacked) entry(groups []codegen.Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "extern \"C\" __global__ void __launch_bounds__(%d, 1)\nstack(int steps, int batch, unsigned* control, unsigned* trouble", st.threads())
	cells := make([]string, len(st.layers))
	for l := range st.layers {
		mine := slices.Clone(groups)
		for i := range mine {
			mine[i].Name += fmt.Sprintf("_%d", l)
		}
		b.WriteString(codegen.Params(mine))
		cells[l] = codegen.List(mine, func(_ int, g codegen.Group) string { return fmt.Sprintf(", %s, ld_%s", g.Name, g.Name) })
		for g := range st.gates {
			fmt.Fprintf(&b, ", const W* weights%d_%d", g, l)
			cells[l] += fmt.Sprintf(", weights%d_%d", g, l)
		}
		if l > 0 {
			fmt.Fprintf(&b, ", const W* beneath_%d", l)
		}
	}
	b.WriteString(") {\n  const int layer = blockIdx.x / BLOCKS % LAYERS;\n")
	last := len(st.layers) - 1
	fmt.Fprintf(&b, "  if (layer == 0) return stack_layer<true>(Cell{{}%s}, (const W*)nullptr, layer, steps, batch, control, trouble);\n", cells[0])
	b.WriteString("  const Cell cell = ")
	for l := 1; l < last; l++ {
		fmt.Fprintf(&b, "layer == %d ? Cell{{}%s} : ", l, cells[l])
	}
	fmt.Fprintf(&b, "Cell{{}%s};\n  const W* const beneath = ", cells[last])
	for l := 1; l < last; l++ {
		fmt.Fprintf(&b, "layer == %d ? beneath_%d : ", l, l)
	}
	fmt.Fprintf(&b, "beneath_%d;\n  stack_layer<false>(cell, beneath, layer, steps, batch, control, trouble);\n}\n", last)
	return b.String()
}
