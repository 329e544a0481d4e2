package cuda

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A tiling is how kernels/cluster.cu divides a layer.
type tiling struct {
	hidden, gates int
	spread        bool // over the GPU, not in clusters
	cluster       int  // blocks that share the units
	units         int  // of a block
	samples       int  // sequences of a cluster
	tile          int  // units of a thread
	lanes         int  // threads that share a unit's columns
	chunks        int  // pieces of a thread's columns
	resident      int  // of them in registers
}

func (t tiling) threads() int { return t.units / t.tile * t.lanes }

// step is how many columns a thread has side by side.
func (t tiling) step() int { return max(1, 4/t.samples) }

// per is the number of a thread's weights per chunk.
func (t tiling) per() int { return t.tile * t.gates * t.step() }

func (t tiling) columns() int { return t.chunks * t.lanes * t.step() }

// shared is what a block needs of shared memory: barriers, two buffers of states
// and the weights beyond registers.
func (t tiling) shared() int {
	return 128 + 2*4*t.columns()*t.samples + 4*t.threads()*t.per()*(t.chunks-t.resident)
}

// sums is the number of values that a thread adds up.
func (t tiling) sums() int { return ints.PowerOfTwo(t.tile) * ints.PowerOfTwo(t.gates) * t.samples }

// overhead is how many registers a thread needs besides its weights.
func (t tiling) overhead() int {
	each := max(1, t.sums()/t.lanes)
	chains := 1
	if t.samples == 1 {
		chains = 2
	}
	return 48 + max(chains*t.sums()+4, 14*each) + 10*(each-1)
}

// registers is how many a thread needs in all; a thread has 255 at most.
func (t tiling) registers() int { return t.overhead() + t.resident*t.per() }

const maxRegisters, registersOfSM = 255, 65536

// limit is how many registers a thread can have.
func (t tiling) limit() int {
	return min(maxRegisters, registersOfSM/ints.RoundUp(t.threads(), 128)/8*8)
}

// settled reports whether all weights are waited for ahead of the steps: there are
// registers to spare, or some would be spilled, it was not measured to be slower, and
// as many of a batch's clusters run side by side.
func (t tiling) settled(batch int, p driver.Properties) bool {
	if t.spread && t.gates > 1 || t.limit()-t.registers() <= 5 {
		return false
	}
	more := 11 // registers that it takes of gru 256 with a sequence at a time; of gru 192 twice as many
	if t.asked(p) {
		more *= 2
	}
	return t.spread || p.Part || t.samples > 1 || max(1, t.perSM(more, p)) >= min(t.perSM(0, p), ints.CeilDiv(batch, t.together(p)))
}

// shaped fills in how t, of so many blocks at most, divides the units, or says why it
// does not fit.
func (t tiling) shaped(blocks int, p driver.Properties) (tiling, string) {
	t.units = ints.RoundUp(ints.CeilDiv(t.hidden, blocks), 32/t.lanes*t.tile)
	t.cluster = ints.CeilDiv(t.hidden, t.units)
	t.chunks = ints.CeilDiv(t.hidden, t.lanes*t.step())
	switch threads := t.threads(); {
	case t.samples != ints.PowerOfTwo(t.samples):
		return t, fmt.Sprintf("%d sequences are no power of two", t.samples)
	case ints.PowerOfTwo(t.tile)*ints.PowerOfTwo(t.gates) > t.lanes:
		return t, "a thread has more rows than lanes to sum them over"
	case threads > 1024:
		return t, fmt.Sprintf("a block of %d units has %d threads, of at most 1024", t.units, threads)
	default:
		t.resident = min(t.chunks, max(0, t.limit()-t.overhead())/t.per())
	}
	if t.resident < t.chunks && t.per()%4 != 0 {
		return t, "weights in shared memory come in fours"
	}
	if t.shared() > p.Shared {
		return t, fmt.Sprintf("%d weights of a block's %d units take %d KiB of shared memory beyond registers, and there are %d",
			t.gates*t.hidden*t.units, t.units, t.shared()>>10, p.Shared>>10)
	}
	return t, ""
}

// perSM is how many blocks fit on a multiprocessor whose threads have so many
// registers more than they need. With two or four sequences at a time compilers take
// up to 36 and 52 more than registers counts. Each quarter of a multiprocessor has
// registers of its own, for whole warps. Of clusters of a size in between those that
// were asked for more fit than are known of, which makes up for both.
func (t tiling) perSM(more int, p driver.Properties) int {
	need, others := t.registers()+more, min(p.Shared/t.shared(), 2048/t.threads())
	if !t.asked(p) {
		return min(registersOfSM/(t.threads()*ints.RoundUp(need, 8)), others)
	}
	if t.samples == 2 || t.samples == 4 {
		need = max(need, min(maxRegisters, need+20+8*t.samples))
	}
	warps := 4 * (registersOfSM / 4 / 32 / ints.RoundUp(need, 8))
	return min(warps/(t.threads()/32), others)
}

// asked reports whether the GPU was asked how many of t's clusters fit.
func (t tiling) asked(p driver.Properties) bool { return p.Clusters[t.cluster] > 0 }

// cycles is about what a step of all sequences takes, fitted to measurements on
// an H200: products, which hide little of what shared memory delivers, 128 bytes
// per cycle, then the chain of exchanges and functions that nothing hides.
func (t tiling) cycles(batch int, p driver.Properties) float64 {
	clusters := ints.CeilDiv(batch, t.samples)
	together := t.together(p)
	blocks := 1
	if clusters > together && !t.spread && !p.Part {
		blocks = max(1, min(t.perSM(0, p), ints.CeilDiv(clusters, together)))
	}
	waves := ints.CeilDiv(clusters, together*blocks)
	threads := float64(t.threads() * blocks)
	warps := math.Ceil(threads / 128) // of a quarter of a multiprocessor
	length := float64(t.columns() / t.lanes * t.samples)
	least := 0.0 // of a warp alone, which waits for its own sums
	switch {
	case t.gates > 1:
		least = 1.3
	case t.samples > 2 && !t.spread:
		least = 1
	}
	multiply := max(least, 0.63*warps) * float64(t.tile*t.gates) * length
	states := threads * length / 32
	far := 0.93 * max(1, 128*float64(t.samples)/threads) * threads * float64((t.chunks-t.resident)*t.per()) / 32
	chain := 180.0
	if t.gates > 1 {
		chain = 450
	}
	each := max(1, t.sums()/t.lanes)
	stages := math.Log2(float64(t.lanes))
	shuffles := float64(t.sums()-each) + max(0, stages-math.Log2(float64(t.sums())))
	chain += 40*(warps-1) + 0.6*chain*float64(each-1) + 48*stages + 3.6*warps*shuffles
	exchange := 50.0
	if t.spread {
		words := float64(t.hidden * t.samples)
		everywhere, thread := words*float64(t.cluster*min(clusters, together)), words/threads
		if exchange = 560 + everywhere/2000 + 60*thread; t.units*t.samples < 8 { // words of twice the size: see kernels/cluster.cu
			exchange = 710 + everywhere/1000 + 77*thread
		}
	} else if t.cluster > 1 {
		if exchange = 250; blocks > 1 && t.asked(p) && !t.settled(batch, p) {
			exchange = 410
		}
	}
	return float64(waves) * (multiply + 0.73*states + far + chain + exchange)
}

// together is how many groups of blocks run at the same time, one block on each
// multiprocessor.
func (t tiling) together(p driver.Properties) int {
	if t.spread {
		return p.SMs / t.cluster
	}
	return max(1, p.Together(t.cluster))
}

// clusterSizes are those that are tried.
func clusterSizes() []int { return []int{1, 2, 4, 8, 16} }

// choose is the setting of a knob, or values where it has the device choose.
func (b *binder) choose(name string, values ...int) []int {
	if v := b.Knobs[name]; v != 0 {
		return []int{v}
	}
	return values
}

// groupSizes lists the numbers of blocks of groups that knobs allow, clusters first.
func (b *binder) groupSizes() (clusters, spread []int) {
	r := b.Knobs["resident"]
	if (r == 0 || r == 1 || r == 6) && b.Properties.Capability >= 90 {
		clusters = b.choose("cluster", clusterSizes()...)
	}
	if r != 1 && r != 6 {
		for _, n := range b.choose("groups", 1, 2, 4, 8, maxGroups) {
			if blocks := b.Properties.SMs / n; blocks > 0 {
				spread = append(spread, blocks)
			}
		}
	}
	return clusters, spread
}

// groupings lists those of a layer of c that fit and that knobs allow, cheapest
// first, or says why there are none. Single precision is not cut into halves
// where states may be beyond those, unless knobs say so.
func (b *binder) groupings(c *cell.Cell, l layer) ([]grouping, string) {
	var all []grouping
	why := ""
	if b.Knobs["tensor"] == 1 || b.Knobs["tensor"] == 0 && !(l.exact && c.Kinked()) {
		all, why = b.grouped(l, func(l layer, spread bool, blocks int, add func(grouping, string)) {
			b.tensors(l, len(c.States), spread, blocks, add)
			b.rows(l, spread, blocks, add)
		})
	}
	if b.Knobs["tensor"] != 1 || len(all) == 0 {
		more, no := b.grouped(l, b.tilings)
		if all = append(all, more...); b.Knobs["tensor"] != 1 {
			why = no
		}
	}
	slices.SortStableFunc(all, cheaper)
	return all, why
}

func cheaper(x, y grouping) int { return cmp.Compare(x.cycles, y.cycles) }

// A layer is what groupings are chosen for.
type layer struct {
	hidden, gates, batch int
	weights              driver.Element
	exact                bool // single precision throughout
	within               int  // of the state that goes through weights; see within
	inputs               int  // places for those of a unit and step, where they can be read steps ahead
}

func (b *binder) layer(op schedule.Persistent) layer {
	inputs := 0
	if b.Element(op.X) == driver.Single {
		r := newRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
		inputs = r.inputs()
	}
	return layer{hidden: op.Hidden(), gates: op.Cell.Recurrent, batch: op.Batch(), weights: b.Element(op.R[0]), exact: b.Precision == schedule.FP32, within: within(op.Cell), inputs: inputs}
}

// grouped lists the groupings of one kind, of all numbers of blocks.
func (b *binder) grouped(l layer, kind func(l layer, spread bool, blocks int, add func(grouping, string))) ([]grouping, string) {
	var all []grouping
	why := "the GPU has no clusters of blocks"
	seen := map[string]bool{}
	clusters, spread := b.groupSizes()
	for i, blocks := range slices.Concat(clusters, spread) {
		spread := i >= len(clusters)
		kind(l, spread, blocks, func(t grouping, no string) {
			switch {
			case no != "":
				why = no
				return
			case spread:
				if b.Knobs["groups"] == 0 && b.Properties.SMs/blocks > ints.CeilDiv(l.batch, t.samples) {
					return // groups without sequences
				}
				t.knobs["groups"] = b.choose("groups", b.Properties.SMs/blocks)[0]
				if t.knobs["resident"] == 0 {
					t.knobs["resident"] = 2
				}
			default:
				if t.blocks > 1 && b.Properties.Together(t.blocks) == 0 {
					why = fmt.Sprintf("no %d blocks share memory on this GPU", t.blocks)
					return
				}
				if t.knobs["cluster"] = blocks; t.knobs["resident"] == 0 {
					t.knobs["resident"] = 1
				}
			}
			if !seen[t.describe()] {
				seen[t.describe()] = true
				all = append(all, t)
			}
		})
	}
	return all, why
}

// samples lists how many sequences a group can run at a time without having more
// than half of its places empty.
func (b *binder) samples(batch int, values ...int) []int {
	if b.Knobs["samples"] != 0 {
		return []int{b.Knobs["samples"]}
	}
	n := 1
	for n < len(values) && values[n]/2 < batch {
		n++
	}
	return values[:n]
}

// tilings adds those of groups of so many blocks.
func (b *binder) tilings(l layer, spread bool, blocks int, add func(grouping, string)) {
	for _, samples := range b.samples(l.batch, 1, 2, 4, 8) {
		for _, tile := range b.choose("tile", tiles(l.gates, spread, samples)...) {
			for _, lanes := range b.choose("lanes", 4, 8, 16, 32) {
				t := tiling{hidden: l.hidden, gates: l.gates, spread: spread, samples: samples, tile: tile, lanes: lanes}
				t, no := t.shaped(blocks, b.Properties)
				if no != "" {
					add(grouping{}, no)
					continue
				}
				add(t.grouping(l.batch, b.Properties), "")
			}
		}
	}
}

// tiles lists how many units a thread may have. With as many as its registers hold
// a block of a spread group has fewer warps, each of which reads all of h; numbers
// that are no powers of two take longer to sum, which pays with few values.
func tiles(gates int, spread bool, samples int) []int {
	if gates == 1 && spread && samples <= 2 {
		return []int{1, 2, 3, 4, 5, 6, 7, 8}
	}
	return []int{1, 2, 4}
}

// maxGroups bounds the groups spread over the GPU.
const maxGroups = 16

// persistentKnobs are those of layers with weights on chip; 0 has the device
// choose.
func persistentKnobs(s *schedule.Schedule) []knob.Knob {
	found, gradient := false, false
	for op := range s.Operations() {
		switch op.(type) {
		case schedule.Persistent:
			found = true
		case schedule.PersistentBackward:
			found, gradient = true, true
		}
	}
	if !found {
		return nil
	}
	return layerKnobs(gradient)
}

// layerKnobs are those of persistent layers, with the ways to divide a gradient
// where there is one.
func layerKnobs(gradient bool) []knob.Knob {
	back := []int{0}
	if gradient {
		back = []int{0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32}
	}
	return []knob.Knob{
		{Name: "resident", Doc: "where a persistent layer's weights stay, a copy in each group of blocks: 1: groups are clusters; 2: they are spread over the GPU; 4: they are, and take turns with their sequences; 5: they are, and each warp reads what it multiplies; 6: groups are clusters, and each warp multiplies whole rows; 3: one group with a barrier, weights in shared memory; 0: as is expected to be the fastest; where only a layer or its gradient can be so, the other is spread", Values: []int{0, 1, 2, 3, 4, 5, 6}},
		{Name: "cluster", Doc: "blocks of a cluster; 0: chosen", Values: append([]int{0}, clusterSizes()...)},
		{Name: "groups", Doc: "groups spread over the GPU; 0: chosen", Values: []int{0, 1, 2, 3, 4, 8, 16}},
		{Name: "samples", Doc: "sequences that a group runs at a time, in a gradient too where that can; 0: chosen", Values: []int{0, 1, 2, 4, 8, 16, 32}, Max: maxSamples},
		{Name: "tile", Doc: "units of a thread forward, on tensor cores of a warp: 4, 8 or 16; 0: chosen", Values: []int{0, 1, 2, 4, 5, 8, 16}, Max: 16},
		{Name: "lanes", Doc: "threads that share a unit's columns forward; 0: chosen", Values: []int{0, 4, 8, 16, 32}},
		{Name: "share", Doc: "a persistent layer's groups take at most the GPU's multiprocessors divided by this, so that as many layers run side by side; 0: by how many streams have such layers", Values: []int{0, 1, 2, 3, 4}, Max: 32},
		{Name: "tensor", Doc: "products on tensor cores (1) or not (2); single precision takes three for one; 0: chosen", Values: []int{0, 1, 2}},
		{Name: "stack", Doc: "layers whose input is the layer before run with it, as one kernel with the weights of all (1; 3: one that copies h whole, for many sequences), or not (2); 0: where that is expected to be faster", Values: []int{0, 1, 2, 3}},
		{Name: "functions", Doc: "sigmoids and tangents of a persistent layer: by exponentials, right to 1e-7 (1), or by the GPU's tangent, right to 2⁻¹¹ (2); 0: the latter in bf16", Values: []int{0}, Max: 2},
		{Name: "clocks", Doc: "1 leaves the cycles of a step's phases in place of results, to measure", Values: []int{0}, Max: 1},
		{Name: "back", Doc: "how the gradient is divided: so many places behind what is expected to be the fastest", Values: back, Max: 4096},
	}
}

// A grouping is how a layer runs in groups of blocks, each with a copy of the
// weights, and the kernel that runs it so.
type grouping struct {
	spread   bool    // over the GPU, not in clusters
	order    order   // that its weights are best packed in
	few      bool    // no more than run at the same time, which take turns at the sequences
	blocks   int     // of a group
	cluster  int     // of a cluster, where a group that is spread has clusters
	samples  int     // sequences that a group runs at a time
	threads  int     // of a block
	shared   int     // bytes of a block
	together int     // groups that run at the same time
	cycles   float64 // that a step is expected to take
	kernel   string  // file and function
	sizes    string  // its constants
	knobs    knob.Params
}

// grouping is how t runs so many sequences.
func (t tiling) grouping(batch int, p driver.Properties) grouping {
	return grouping{
		spread: t.spread, order: byUnit, few: t.spread || p.Part, blocks: t.cluster, samples: t.samples, threads: t.threads(), shared: t.shared(), together: t.together(p), cycles: t.cycles(batch, p),
		kernel: "cluster", sizes: fmt.Sprintf("SPREAD = %d, CLUSTER = %d, UNITS = %d, SAMPLES = %d, TILE = %d, LANES = %d, CHUNKS = %d, RESIDENT = %d, SETTLED = %d",
			ints.FromBool(t.spread), t.cluster, t.units, t.samples, t.tile, t.lanes, t.chunks, t.resident, ints.FromBool(t.settled(batch, p))),
		knobs: knob.Params{"samples": t.samples, "tile": t.tile, "lanes": t.lanes, "tensor": 2},
	}
}

// files are the text of t's kernel.
func (t grouping) files() string {
	if t.kernel == "cluster" {
		return file(t.kernel).Text
	}
	return file("fragments").Text + file(t.kernel).Text
}

// groupForward is the kernel of op in groups of blocks.
func (b *binder) groupForward(op schedule.Persistent, t grouping) launch.Command {
	p := op.Step(0, schedule.View{}).Program()
	r := newRecurrence(&op.Sequence, p)
	groups := b.sequenceGroups(op)
	t.sizes += fmt.Sprintf(", ORDERED = %d, CLOCKS = %d", ints.FromBool(b.ordered(op, t)), b.Knobs["clocks"])
	words := []any{t.kernel, " ", op.Cell.Name, b.functions(), op.Train, op.Hidden(), t.sizes, b.Element(op.R[0])}
	for _, g := range groups {
		words = append(words, " ", g.Element)
	}
	write := func() codegen.Source {
		text := "constexpr int " + t.sizes + ";\n" + file("recurrence").Text + r.text(groups, b.Element(op.R[0]), b.functions()) + t.files()
		text += fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(%d, 1)\npersistent(int steps, int batch, unsigned* control, unsigned* trouble%s%s) {\n  const Cell cell = {{}%s};\n  %s_layer(cell, steps, batch, control, trouble);\n}\n",
			t.threads, codegen.Params(groups), codegen.WeightParams(len(op.R)), codegen.Members(groups, len(op.R)), t.kernel)
		return codegen.Source{Name: "persistent", Text: text}
	}
	args := append([]uint64{uint64(op.Steps), uint64(op.Batch()), b.control(), b.Status()}, b.Arguments(groups)...)
	for _, w := range op.R {
		args = append(args, uint64(b.At(w)))
	}
	return t.launch(op.Batch(), b.sides > 1, b.Source(write, words...), args)
}

// functions names those of a persistent layer's cells: see kernels/recurrence.cu.
func (b *binder) functions() string {
	if f := b.Knobs["functions"]; f == 2 || f == 0 && b.Precision == schedule.BF16 {
		return "Coarse"
	}
	return "Quick"
}

// launch is that of a kernel for so many sequences, urgent where others wait for
// it in a wave.
func (t grouping) launch(batch int, urgent bool, src *codegen.Source, args []uint64) launch.Command {
	running := ints.CeilDiv(batch, t.samples)
	if t.few {
		running = min(running, t.together)
	}
	s := launch.New(src, [3]int{running * t.blocks, 1, 1}, [3]int{t.threads, 1, 1}, args...)
	s.Launch.Shared, s.Launch.Cooperative, s.Launch.Urgent = t.shared, t.spread, urgent
	switch {
	case t.cluster > 1:
		s.Launch.Cluster = t.cluster
	case !t.spread:
		s.Launch.Cluster = t.blocks
	}
	return s
}

// exchangeBytes bounds what groups leave in memory for each other, for each of
// their sequences: two buffers of words, twice the size of states as they lie in
// shared memory, in 16 bits two more of the states alone, and a counter.
func exchangeBytes(hidden, batch int) int64 {
	return int64(batch+maxSamples-1) * (4*4*int64(hidden) + 6*maxPadding + launch.Alignment)
}

const maxSamples = 64

// maxPadding bounds the bytes of a sequence's states in shared memory beyond the
// states themselves.
const maxPadding = 64*8 + 64

// describe says what t is and how long a step of it is expected to take.
func (t grouping) describe() string {
	return fmt.Sprintf("%s %d×%d %s, %.0f cycles", t.kernel, t.blocks, t.threads, t.sizes, t.cycles)
}
