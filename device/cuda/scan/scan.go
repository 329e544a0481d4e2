package scan

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Scan is a linear recurrence over time, forward or backward, as one kernel that reads and writes
// memory once (tiles.cu). All that the cell computes from its inputs alone is computed as they
// arrive. Of it, only the values that the steps need are kept while the tile waits for its
// exclusive prefix.
type Scan struct{ geometry }

// The operands of a scan are its cell's computation and the matrices that it reads and writes.
type operands struct {
	*scanCell
	schedule.Sequence
	grad     *schedule.SequenceGrad // backward pass only
	products schedule.View          // recurrent products, which are known beforehand

	groups []codegen.Group
	width  int // adjacent elements that a thread handles at a time
}

// A geometry says how a scan is divided among blocks and threads, and over time.
type geometry struct {
	operands
	chunk    int // steps per thread in a tile
	lanes    int // threads side by side, across channels
	threads  int // threads per block
	blocks   int // blocks per multiprocessor
	chains   int // columns of tiles, along which states pass
	tiles    int // tiles per chain
	carriers int // blocks that are walkers, which pass states along chains

	units int // unaligned rows: channels of a chain per sequence (deal.go); 0: a chain is lanes vectors side by side
	seqs  int // sequences per chain, if units > 0
	over  int // channels that a chain shares with the next one (cut.go)
	asked     // settings of knobs

	members        int        // blocks of a team; 0: no team
	tail, regular  int        // steps per thread in tiles of the last turn, and tiles of a chain before it
	group          int        // tiles of a chain per group; 1: no groups
	queue                     // of a block's tiles
	delayed        []cell.Ref // results that need no state, but are written together with those that do
	engine, hopper bool       // the copy engine copies tiles; warps move registers to others
}

// A scanCell is the computation of a cell's scan, for any sizes.
type scanCell struct {
	cell     *cell.Cell
	backward bool

	flow    *flow
	late    []bool // values that depend on a state
	results map[cell.Ref]int
	compose map[cell.Ref]int
	keep    []int // early values from which late ones are computed
	loads   []load
}

// Cells caches the scanCells of a program.
type Cells map[scanKey]*scanCell

type scanKey struct {
	cell            *cell.Cell
	train, backward bool
	resets          bool // sequences begin anew at some steps
}

// A load is a vector with one row per step. A state has one row more if both the state before a
// step and that after it are read.
type load struct {
	group  string
	column int
	shift  int // from a step's number to its row
	more   int
	refs   []cell.Ref
}

// before and after are the kinds of a state on either side of a step, in the order of the pass.
func (s *scanCell) before() cell.Kind {
	if s.backward {
		return cell.DNext
	}
	return cell.Prev
}

func (s *scanCell) after() cell.Kind {
	if s.backward {
		return cell.DPrev
	}
	return cell.Next
}

// Scan returns op as a scan; nil: op is none, or is serial.
func (c Cells) Scan(op schedule.Op) *Scan {
	if schedule.SerialScan(op) {
		return nil
	}
	switch op := op.(type) {
	case schedule.Scan:
		s := &Scan{geometry: geometry{operands: operands{Sequence: op.Sequence, products: op.R}}}
		step, compose := programs(&op.Sequence, op.Step(0).Program(), op.Cell.Recurrence.Compose, false)
		s.scanCell = c.of(scanKey{cell: op.Cell, train: op.Train, backward: false, resets: !op.Keep.Empty()}, step, compose)
		return s
	case schedule.ScanBackward:
		s := &Scan{geometry: geometry{operands: operands{Sequence: op.Sequence, grad: &op.SequenceGrad}}}
		step, compose := programs(&op.Sequence, op.Cell.Backward, op.Cell.Recurrence.ComposeBackward, true)
		s.scanCell = c.of(scanKey{cell: op.Cell, train: true, backward: true, resets: !op.Keep.Empty()}, step, compose)
		return s
	}
	return nil
}

func (c Cells) of(key scanKey, program, compose cell.Program) *scanCell {
	if s, ok := c[key]; ok {
		return s
	}
	s := &scanCell{cell: key.cell, backward: key.backward, flow: newFlow()}
	s.results, s.compose = s.flow.add(program), s.flow.add(compose)
	s.late = s.flow.after(s.carried)
	s.keep = s.flow.frontier(s.targets(true, s.outputs(true)), s.late, s.constant)
	for _, v := range s.flow.values {
		if v.leaf && !s.carried(v.ref) && !s.constant(v.ref) {
			s.load(v.ref)
		}
	}
	c[key] = s
	return s
}

// carried reports whether a step takes r from the step before.
func (s *scanCell) carried(r cell.Ref) bool {
	return r.Kind == cell.Factor || r.Kind == s.before() && slices.Contains(s.cell.Recurrence.Carried, r.Index)
}

// constant reports whether r is the same at every step, or the column of resets.
func (s *scanCell) constant(r cell.Ref) bool {
	return r.Kind.Broadcast() || r.Kind == cell.Keep || r.Kind == cell.DNext && !s.carried(r)
}

// view returns the matrix that holds r.
func (s *operands) view(r cell.Ref) schedule.View {
	if r.Kind == cell.R {
		return s.products
	}
	return codegen.Whole(&s.Sequence, s.grad, r)
}

// argument names the kernel argument that holds r: the same one before and after a step.
func argument(r cell.Ref) string {
	switch r.Kind {
	case cell.Prev, cell.Next:
		return fmt.Sprintf("state%d", r.Index)
	case cell.DNext, cell.DPrev:
		return fmt.Sprintf("carry%d", r.Index)
	}
	return fmt.Sprintf("all_%v", r.Kind)
}

// load adds r to the vectors that are loaded at each step. If a state is read both before and after
// steps, one load with one more row serves both.
func (s *scanCell) load(r cell.Ref) {
	l := load{group: argument(r), column: codegen.Offset(r), refs: []cell.Ref{r}}
	if r.Kind == cell.Next {
		l.shift = 1
	}
	for i := range s.loads {
		if o := &s.loads[i]; o.group == l.group && o.column == l.column {
			o.shift, o.more = 1, 1
			o.refs = append(o.refs, r)
			return
		}
	}
	s.loads = append(s.loads, l)
}

// outputs lists the results written at each step that depend on a state (late) or do not.
func (s *scanCell) outputs(late bool) []cell.Ref {
	var out []cell.Ref
	for r, v := range s.results {
		if r.Kind != cell.Temp && r.Kind != cell.DPrev && s.late[v] == late {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b cell.Ref) int { return 100*(int(a.Kind)-int(b.Kind)) + a.Index - b.Index })
	return out
}

// targets returns the values of written results and, late, of the states after a step.
func (s *scanCell) targets(late bool, written []cell.Ref) []int {
	var out []int
	for _, r := range written {
		out = append(out, s.results[r])
	}
	if late {
		for _, k := range s.cell.Recurrence.Carried {
			out = append(out, s.results[cell.Ref{Kind: s.after(), Index: k}])
		}
	}
	return out
}

// shape chooses the geometry for matrices as l stores them.
func (s *Scan) shape(l *launch.Memory, p driver.Properties, k knob.Params) {
	s.width = 4
	refs := s.outputs(true)
	refs = append(refs, s.outputs(false)...)
	for _, v := range s.flow.values {
		if v.leaf && v.ref.Kind != cell.Factor && v.ref.Kind != cell.Keep {
			refs = append(refs, v.ref)
		}
	}
	for _, i := range s.cell.Recurrence.Carried { // the first states, too
		refs = append(refs, cell.Ref{Kind: s.before(), Index: i})
	}
	for _, r := range refs {
		v := s.view(r)
		size := l.Elements[v.M.ID].Bytes()
		at := int(l.Offsets[v.M.ID])/size + v.Row*v.M.Cols + v.Col
		for (at|v.M.Cols|s.Hidden())%s.width != 0 {
			s.width /= 2
		}
		if i := slices.IndexFunc(s.groups, func(g codegen.Group) bool { return g.Name == argument(r) }); i < 0 {
			s.groups = append(s.groups, codegen.Group{Name: argument(r), Element: l.Elements[v.M.ID], View: v})
		}
	}
	for r := range s.results {
		if i := slices.IndexFunc(s.groups, func(g codegen.Group) bool { return r.Kind != cell.Temp && g.Name == argument(r) }); i >= 0 {
			s.groups[i].Written = true
		}
	}
	slices.SortFunc(s.groups, func(a, b codegen.Group) int { return strings.Compare(a.Name, b.Name) })
	s.asked = ask(k)
	if k["scansteps"] == 0 && s.small >= smallSole && oneTile(s, p) {
		return
	}
	if !s.formTeam(p, k) {
		s.divide(p, k)
	}
}

func (s *operands) element(name string) driver.Element {
	return s.groups[slices.IndexFunc(s.groups, func(g codegen.Group) bool { return g.Name == name })].Element
}

// bytes returns the bytes of a load per thread and step.
func (s *operands) bytes(l load) int { return s.width * s.element(l.group).Bytes() }

// across returns the number of vectors per step in all sequences.
func (s *operands) across() int { return s.Batch() * s.Hidden() / s.width }

// loaded returns the bytes per step that a thread loads; moved also counts what it writes.
func (s *operands) loaded() (n int) {
	for _, l := range s.loads {
		n += s.bytes(l)
	}
	return n
}

func (s *operands) moved() int {
	n := s.loaded()
	for _, r := range append(s.outputs(false), s.outputs(true)...) {
		n += s.width * s.element(argument(r)).Bytes()
	}
	return n
}

// busy reports whether a step computes more than one activation per busyBytes that it moves: then
// the rates of exponentials and reciprocals matter.
func (s *operands) busy() bool {
	activations := 0
	for _, v := range s.flow.values {
		if !v.leaf && slow(v.op) {
			activations++
		}
	}
	return activations*busyBytes*s.width > s.moved()
}

const busyBytes = 8

// values returns the number of a thread's carried values, at least one per vector even if no step
// reads any.
func (s *operands) values() int { return s.width * max(1, len(s.cell.Recurrence.Carried)) }

// Traffic returns the bytes that a scan reads and writes per unit and step, in single precision.
func (s *scanCell) Traffic() int {
	return 4 * (len(s.loads) + len(s.outputs(false)) + len(s.outputs(true)))
}

// tileAggregates returns the bytes of the words in which tiles publish their aggregates, for
// walkers or a team. prefixBytes returns those of the words in which tiles find their prefixes or,
// with groups, in which a team publishes group aggregates.
func tileAggregates(s *Scan) int64 {
	if s.carriers == 0 && s.members == 0 {
		return 0
	}
	tiles := s.tiles
	if walked(&s.geometry) {
		tiles = ring(&s.geometry)
	}
	bytes := 16 * int64(s.chains*tiles) * int64(s.lanes*s.values())
	if s.over > 0 {
		bytes += 8 * int64(s.chains*s.lanes) // words that say which lanes have been read (taken)
	}
	return bytes
}

func prefixBytes(s *Scan) int64 {
	if s.members > 0 {
		return groupAggregates(s)
	}
	return 8 * int64(s.chains*s.tiles) * int64(s.lanes*s.values())
}

// name returns the kernel's name.
func (s *Scan) name() string {
	pass, way := "scan", "tiles"
	if s.grad != nil {
		pass = "scan_backward"
	}
	if s.members > 0 {
		way = "team"
	}
	if !s.Keep.Empty() {
		way += "_resets"
	}
	return codegen.KernelName(pass, way, s.Cell.Name)
}

// Launch returns the launch of op. Its blocks communicate through words.
func Launch(t *launch.Target, cells Cells, op schedule.Op, words Words) launch.Command {
	s := cells.Scan(op)
	s.shape(t.Memory, t.Properties, t.Knobs)
	w := &writer{Scan: s}
	key := []any{"scan ", s.Cell.Name, " ", s.Train, " ", s.grad != nil, " ", s.width, " ", s.chunk, " ", s.threads, " ", s.blocks, " ", s.small, s.keepParams()}
	for _, g := range s.groups {
		key = append(key, " ", g.Element)
	}
	name := s.name()
	args := []uint64{uint64(s.Steps), uint64(s.Batch()), uint64(s.Hidden())}
	grid, block, shared := min(s.chains*s.tiles+s.carriers, s.blocks*t.Properties.SMs), s.threads, s.shared()
	if s.members > 0 {
		grid, block, shared = s.members+s.carriers, s.block(), s.teamShared()
		key = append(key, " team ", s.tail, " ", s.lanes, " ", s.places, " ", s.behind, " ", s.hold, " ", s.sole(), " ", s.looks(), " ", s.engine, " ", s.Hidden(), " ", s.leaving(), " ", walked(&s.geometry), " ", ring(&s.geometry), w.tensorParams(), dealingOf(&s.geometry))
		args = append(args, uint64(s.chains), uint64(s.tiles))
		switch {
		case walked(&s.geometry):
			args = append(args, uint64(s.carriers), uint64(s.period()))
		case !s.sole():
			args = append(args, uint64(s.group), uint64(s.period()))
		default:
			args = append(args, uint64(s.regular), uint64(s.apart()), uint64(s.period()), uint64(s.members/s.chains), uint64(s.members%s.chains))
		}
	} else {
		key = append(key, " ", s.units > 0, w.tensorParams(), dealingOf(&s.geometry))
		if s.units > 0 {
			key = append(key, " ", s.lanes, " ", s.Hidden(), s.leaving())
		}
		power := 0 // log2 of the lanes; unused if chains are dealt out, since lanes are a constant then
		if s.units == 0 {
			power = bits.TrailingZeros(uint(s.lanes))
		}
		args = append(args, uint64(power), uint64(s.chains), uint64(s.tiles), uint64(s.carriers), uint64(s.buffer()))
	}
	args = append(args, uint64(t.Base)+uint64(words.Tickets), uint64(t.Base)+uint64(words.Aggregates))
	if s.members == 0 || !s.sole() {
		args = append(args, uint64(t.Base)+uint64(words.Prefixes))
	}
	args = append(args, t.Status())
	st := launch.New(t.Source(func() codegen.Source { return w.source(name) }, key...), [3]int{grid, 1, 1}, [3]int{block, 1, 1}, slices.Concat(args, t.Arguments(s.groups), s.keepArguments(t))...)
	st.Launch.Shared, st.Launch.Cooperative, st.Early = shared, s.members > 0, t.Properties.Capability >= 90
	st.Seconds = secondsOf(s, t.Properties)
	if s.members > 0 || s.units > 0 {
		st.Launch.Tensors = tensors(&s.geometry, t)
		st.Launch.Pack()
	}
	return st
}

// Words are offsets, or sizes, of the words through which the blocks of a scan communicate. Each
// run of a scan tags its words, so that none is mistaken for another run's.
type Words struct {
	Tickets, Aggregates, Prefixes int64
	Slack                         int64 // bytes after all matrices that the copy engine may read
}

// longest is the most steps of a scan: kernels count them in 32 bits, up to the end of the last
// tile.
const longest = math.MaxInt32 - 1<<20

// Reserve enlarges w, the bytes of words that scans of a stream need, for op if it is a scan. The
// error wraps schedule.ErrUnsupported if the GPU is too old for scans, or if a knob cannot be
// followed.
func (c Cells) Reserve(op schedule.Op, m *launch.Memory, k knob.Params, p driver.Properties, w *Words) error {
	s := c.Scan(op)
	if s == nil {
		return nil
	}
	if p.Capability < 80 {
		return fmt.Errorf("cuda: %s: %w: scans need a GPU of compute capability 8.0 or later, and this one has %d.%d", op.Name(), schedule.ErrDevice, p.Capability/10, p.Capability%10)
	}
	if s.Steps > longest {
		return fmt.Errorf("cuda: %s: %w: a scan takes at most %d steps, and this one has %d", op.Name(), schedule.ErrDevice, longest, s.Steps)
	}
	s.shape(m, p, k)
	if n := k["scansteps"]; n != 0 && n != s.chunk {
		return fmt.Errorf("cuda: scansteps=%d: %w: a thread of a scan of %v has room for %d steps", n, schedule.ErrKnob, s.cell, s.chunk)
	}
	if err := decline(s, k); err != nil {
		return err
	}
	w.Slack = max(w.Slack, slackOf(&s.geometry))
	w.Tickets, w.Aggregates, w.Prefixes = 8, max(w.Aggregates, tileAggregates(s)), max(w.Prefixes, prefixBytes(s))
	return nil
}

// Knobs returns the knobs of schedules with scans.
func Knobs(s *schedule.Schedule) []knob.Knob {
	for op := range s.Operations() {
		if schedule.Scans(op) && !schedule.SerialScan(op) {
			return KnobDocs()
		}
	}
	return nil
}

// KnobDocs returns the knobs of scans.
func KnobDocs() []knob.Knob {
	steps := knob.Knob{Name: "scansteps", Doc: "steps per thread in a tile of a scan; 0: chosen by bytes per step, channels and time", Values: []int{0}, Max: maxTeamSteps, Internal: true}
	return append([]knob.Knob{steps}, rowKnobs()...)
}
