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

// A Scan is a linear recurrence over time, forward or backward, as one kernel
// that reads and writes memory once (tiles.cu). What the cell computes
// from its inputs alone is computed as they arrive, and of it only what the
// states are combined with is kept while the tile waits for the state that it
// begins with.
type Scan struct{ geometry }

// The operands of a scan are what its cell computes, and the matrices that it reads
// and writes.
type operands struct {
	*scanCell
	schedule.Sequence
	grad     *schedule.SequenceGrad // of a backward pass
	products schedule.View          // the recurrent ones, known ahead

	groups []codegen.Group
	width  int // elements side by side that a thread takes at a time
}

// A geometry is how a scan is cut among blocks and threads, and over time.
type geometry struct {
	operands
	chunk    int // steps of a thread in a tile
	lanes    int // threads side by side across channels
	threads  int // of a block
	blocks   int // of a multiprocessor
	chains   int // columns of tiles, through which states go
	tiles    int // of a chain
	carriers int // blocks that carry states from tile to tile

	units int // channels of a chain in each of its sequences, if tiles may begin at any byte (deal.go); else 0: chains are so many vectors side by side
	seqs  int // sequences of such a chain
	over  int // channels of a chain that are the next one's, too (cut.go)
	asked     // by knobs

	members        int        // blocks of a team; 0: there are none
	tail, regular  int        // steps of a thread in tiles of the last turn, and tiles of a chain ahead of it
	group          int        // tiles of a chain; 1: a block of the team looks at each tile
	queue                     // of tiles in a member
	delayed        []cell.Ref // results that no state is needed for, written with those that need one
	engine, hopper bool       // tiles are copied by the copy engine; threads have registers as they need them
}

// A scanCell is what a scan of a cell computes, whatever the sizes.
type scanCell struct {
	cell     *cell.Cell
	backward bool

	flow    *flow
	late    []bool // the values that depend on a state
	results map[cell.Ref]int
	compose map[cell.Ref]int
	keep    []int // early values that late ones are computed from
	loads   []load
}

// Cells are those met so far.
type Cells map[scanKey]*scanCell

type scanKey struct {
	cell            *cell.Cell
	train, backward bool
	anew            bool // sequences begin anew at some steps
}

// A load is a vector that has a row per step. States have one more where both
// the state before and the one after a step are read.
type load struct {
	group  string
	column int
	shift  int // of the first step's row
	more   int
	refs   []cell.Ref
}

// before and after are what a pass has of a state on both sides of a step.
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

// Scan is the scan that op is; nil: it is none.
func (c Cells) Scan(op schedule.Op) *Scan {
	switch op := op.(type) {
	case schedule.Scan:
		s := &Scan{geometry: geometry{operands: operands{Sequence: op.Sequence, products: op.R}}}
		step, compose := programs(&op.Sequence, op.Step(0).Program(), op.Cell.Recurrence.Compose, false)
		s.scanCell = c.of(scanKey{cell: op.Cell, train: op.Train, backward: false, anew: !op.Keep.Empty()}, step, compose)
		return s
	case schedule.ScanBackward:
		s := &Scan{geometry: geometry{operands: operands{Sequence: op.Sequence, grad: &op.SequenceGrad}}}
		step, compose := programs(&op.Sequence, op.Cell.Backward, op.Cell.Recurrence.ComposeBackward, true)
		s.scanCell = c.of(scanKey{cell: op.Cell, train: true, backward: true, anew: !op.Keep.Empty()}, step, compose)
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

// carried reports whether r is what a step takes over from the one before it.
func (s *scanCell) carried(r cell.Ref) bool {
	return r.Kind == cell.Factor || r.Kind == s.before() && slices.Contains(s.cell.Recurrence.Carried, r.Index)
}

// constant reports whether r is the same in every step.
func (s *scanCell) constant(r cell.Ref) bool {
	return r.Kind.Broadcast() || r.Kind == cell.Keep || r.Kind == cell.DNext && !s.carried(r)
}

// view is the matrix that holds r.
func (s *operands) view(r cell.Ref) schedule.View {
	if r.Kind == cell.R {
		return s.products
	}
	return codegen.Whole(&s.Sequence, s.grad, r)
}

// argument names the matrix that holds r: the same one before and after a step.
func argument(r cell.Ref) string {
	switch r.Kind {
	case cell.Prev, cell.Next:
		return fmt.Sprintf("state%d", r.Index)
	case cell.DNext, cell.DPrev:
		return fmt.Sprintf("carry%d", r.Index)
	}
	return fmt.Sprintf("all_%v", r.Kind)
}

// load adds r to what is loaded per step. A backward pass meets the state after
// a step before the one before it, so that one row follows the other.
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

// outputs lists what is written step by step and does, or does not, depend on a
// state.
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

// targets are the values of what is written and, late, of the states after a step.
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

// shape settles the geometry for matrices that are stored so.
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
	if !s.gather(p, k) {
		s.divide(p, k)
	}
}

func (s *operands) element(name string) driver.Element {
	return s.groups[slices.IndexFunc(s.groups, func(g codegen.Group) bool { return g.Name == name })].Element
}

// bytes are those of a load that a thread has of a step.
func (s *operands) bytes(l load) int { return s.width * s.element(l.group).Bytes() }

// across are the vectors of a step of all sequences.
func (s *operands) across() int { return s.Batch() * s.Hidden() / s.width }

// loaded and moved are the bytes that a thread loads, and reads and writes, of a step.
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

// busy reports whether a step has more than one activation to compute for each busyBytes that it moves: then
// exponentials and reciprocals count.
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

// values are those that a thread has of all carried states, or of one in vain
// where no step reads any.
func (s *operands) values() int { return s.width * max(1, len(s.cell.Recurrence.Carried)) }

// Traffic is what a scan reads and writes per unit and step, in single precision, in
// bytes.
func (s *scanCell) Traffic() int {
	return 4 * (len(s.loads) + len(s.outputs(false)) + len(s.outputs(true)))
}

// tileAggregates and starts are the bytes of the words in which tiles show what they make,
// if there are walkers or a team, and in which they find the states that they begin with or
// groups of a team's tiles show what those make.
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
		bytes += 8 * int64(s.chains*s.lanes) // words of lanes that have been read (taken)
	}
	return bytes
}

func prefixBytes(s *Scan) int64 {
	if s.members > 0 {
		return groupAggregates(s)
	}
	return 8 * int64(s.chains*s.tiles) * int64(s.lanes*s.values())
}

// name is that of the kernel.
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

// Launch is the kernel of op, whose blocks show each other words.
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
		power := 0 // of two: the lanes, which are a constant of the kernel where chains are dealt out
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

// Words are the offsets, or the bytes, of what the blocks of a scan show each
// other. Each run of a scan marks its words, so that none is mistaken for
// another's.
type Words struct {
	Tickets, Aggregates, Prefixes int64
	Slack                         int64 // bytes behind all matrices that the copy engine may read
}

// longest is the most steps of a scan: kernels number them in 32 bits, to the end of the last tile.
const longest = math.MaxInt32 - 1<<20

// Reserve makes w, the bytes that scans of a stream need, large enough for op, if that is a
// scan. An error wraps schedule.ErrUnsupported: the GPU is older than what scans copy
// with, or a scan has no room for the steps that a knob asks for.
func (c Cells) Reserve(op schedule.Op, m *launch.Memory, k knob.Params, p driver.Properties, w *Words) error {
	s := c.Scan(op)
	if s == nil {
		return nil
	}
	if p.Capability < 80 {
		return fmt.Errorf("cuda: %s: %w: scans take a GPU of compute capability 8.0 or later, and this one's is %d.%d", op.Name(), schedule.ErrDevice, p.Capability/10, p.Capability%10)
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

// Knobs are those of schedules with scans.
func Knobs(s *schedule.Schedule) []knob.Knob {
	for op := range s.Operations() {
		switch op.(type) {
		case schedule.Scan, schedule.ScanBackward:
			return KnobDocs()
		}
	}
	return nil
}

// KnobDocs are those knobs.
func KnobDocs() []knob.Knob {
	steps := knob.Knob{Name: "scansteps", Doc: "steps of a thread in a scan; 0: by what it moves for one, channels and time", Values: []int{0}, Max: maxTeamSteps}
	return append([]knob.Knob{steps}, rowKnobs()...)
}
