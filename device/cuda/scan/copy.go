package scan

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
)

// How tiles of teams get to shared memory: by the GPU's copy engine if rows are aligned to 16
// bytes, otherwise by the threads of a warp.

// A contiguous is a piece of a tile that is copied at once. Either it is one stretch of memory:
// loads side by side that form whole rows of a matrix. Or it is the columns of one load, in boxes.
type contiguous struct {
	group  *codegen.Group
	column int // the load's column; 0 if whole
	whole  bool
	at     int // offset in a tile's shared memory
	pitch  int // bytes from row to row
	shift  int // from a step's number to its row
	more   int // rows beyond those of the steps
	boxes  int
	each   int  // rows of a box
	period int  // steps per row of the tensor, for unaligned rows (deal.go); else 0
	apart  int  // bytes from a step's boxes to the next step's, within a period
	lead   int  // steps from the beginning of the tensor to the first step
	lane   int  // elements from one sequence of a chain to the next; 0: one sequence
	joint  bool // one box has all loads of the group, though rows are not whole
	skewed bool // what is wanted of a box's row may begin after a multiple of 16 bytes
}

// boxed reports whether the copy engine can copy tiles. A tile of several sequences needs its lanes
// to lie within one sequence or to be whole sequences.
func boxed(s *geometry, p driver.Properties) bool {
	wide := s.lanes * s.width
	if p.Capability < 90 || s.width < 4 || s.Batch() > 1 && s.Hidden()%wide != 0 && wide%s.Hidden() != 0 {
		return false
	}
	for _, g := range s.groups {
		size := g.Element.Bytes()
		for _, n := range []int{g.View.M.Cols, g.View.Row*g.View.M.Cols + g.View.Col, s.Hidden(), wide / 2} {
			if n*size%16 != 0 {
				return false
			}
		}
	}
	return true
}

// rows returns the number of steps of a tile.
func (s *geometry) rows() int { return s.threads / s.lanes * s.chunk }

// pieces returns the pieces of a tile, the piece that contains each load, and the bytes of all
// pieces.
func (s *geometry) pieces() (all []contiguous, of []int, bytes int) {
	wide := s.lanes * s.width
	for _, l := range s.loads {
		g := &s.groups[slices.IndexFunc(s.groups, func(g codegen.Group) bool { return g.Name == l.group })]
		if i := slices.IndexFunc(all, func(p contiguous) bool { return (p.whole || p.joint) && p.group == g }); i >= 0 {
			of = append(of, i)
			continue
		}
		columns := 0
		for _, o := range s.loads {
			if o.group == l.group && o.shift == l.shift && o.more == l.more {
				columns++
			}
		}
		size := g.Element.Bytes()
		p := contiguous{group: g, column: l.column, at: bytes, pitch: wide * size, shift: l.shift, more: l.more, boxes: 1, each: s.rows() + l.more}
		stretch := s.Batch() == 1 && s.Hidden() == wide && columns*wide == g.View.M.Cols
		if s.units > 0 {
			stretch = s.chains == 1 && columns*s.Hidden() == g.View.M.Cols && (aligned(g) || skewable(s))
			bytes += s.place(&p, stretch)
			of, all = append(of, len(all)), append(all, p)
			continue
		}
		if p.whole = s.engine && stretch; p.whole {
			p.column, p.pitch = 0, g.View.M.Cols*size
		} else if s.sole() {
			p.boxes, p.each = s.parts(), s.rows()/s.parts()
		} else if s.engine { // each box begins at a multiple of 128 bytes
			aligned := max(1, 128/p.pitch)
			for p.each = aligned * ints.CeilDiv(p.each, aligned); p.each > maxBox; p.each = aligned * ints.CeilDiv(s.rows()+l.more, aligned*p.boxes) {
				p.boxes++
			}
		}
		bytes += 128 * ints.CeilDiv(p.boxes*p.each*p.pitch, 128)
		of = append(of, len(all))
		all = append(all, p)
	}
	return all, of, bytes
}

// maxBox is the most rows of a box.
const maxBox = 256

// idles reports whether some lanes have no channel.
func idles(s *geometry) bool { return s.units > 0 && s.seqs*s.units+s.over < s.lanes }

// areas returns where a tile's loads are in shared memory, and the bytes of all. If a composed tile
// keeps its place, keep says where the values are that its steps will need.
func (s *geometry) areas() (loads map[cell.Ref]slot, keep map[int]slot, bytes int) {
	loads, keep = map[cell.Ref]slot{}, map[int]slot{}
	all, of, bytes := s.pieces()
	var free []slot
	for i, l := range s.loads {
		p := &all[of[i]]
		at := slot{at: p.at, element: p.group.Element, pitch: p.pitch, more: p.more, memory: s.engine && s.backward, period: p.period, apart: p.apart, lane: p.lane, idle: idles(s)}
		if p.whole || p.joint {
			at.at += (l.column - p.column) * s.Hidden() * p.group.Element.Bytes()
		}
		if p.whole && s.units > 0 && skewable(s) {
			at.skew = fmt.Sprintf("skew%d", of[i])
		}
		if p.skewed {
			at.off, at.each = fmt.Sprintf("off%d", of[i]), s.Batch()*p.group.View.M.Cols%p.elements()
		}
		again := at.memory || p.more > 0 || at.element != driver.Single
		for _, r := range l.refs {
			loads[r] = at
			if l.more > 0 && r.Kind == cell.Prev {
				next := at
				next.ahead = 1
				loads[r] = next
			}
			if v := s.flow.known[value{leaf: true, ref: r}]; slices.Contains(s.kept(), v) {
				keep[v], again = loads[r], true
			}
		}
		if !again {
			free = append(free, at)
		}
	}
	if s.hold == 0 {
		return loads, nil, bytes
	}
	for _, v := range s.kept() {
		if _, ok := keep[v]; ok {
			continue
		}
		if len(free) == 0 {
			pitch := s.lanes * s.width * driver.Single.Bytes()
			free = append(free, slot{at: bytes, pitch: pitch})
			bytes += 128 * ints.CeilDiv(s.rows()*pitch, 128)
		}
		keep[v], free = free[0], free[1:]
	}
	return loads, keep, bytes
}

// tensors returns the tensors whose boxes the copy engine reads.
func tensors(s *geometry, b *launch.Target) []*driver.Tensor {
	var tensors []*driver.Tensor
	wide := s.lanes * s.width
	all, _, _ := s.pieces()
	for _, p := range all {
		if !s.engine || p.whole {
			continue
		}
		if p.period > 0 {
			at := b.At(p.group.View)
			if tensors = append(tensors, periodic(s, &p, at, p.each)); s.tapers() {
				tensors = append(tensors, periodic(s, &p, at, tailRowsOf(s, &p)))
			}
			continue
		}
		size, ld := p.group.Element.Bytes(), p.group.View.M.Cols
		t := &driver.Tensor{
			At: b.At(p.group.View) + driver.Pointer(p.column*s.Hidden()*size), Element: p.group.Element,
			Sizes:   [3]int{s.Hidden(), s.Batch(), s.Steps + p.shift},
			Strides: [2]int{ld * size, s.Batch() * ld * size},
			Box:     [3]int{wide, 1, p.each},
		}
		if s.Batch() > 1 && s.Hidden() < wide {
			t.Box = [3]int{s.Hidden(), wide / s.Hidden(), p.each}
		}
		tensors = append(tensors, t)
		if s.tapers() {
			tail := *t
			tail.Box[2] = tailRowsOf(s, &p)
			tensors = append(tensors, &tail)
		}
	}
	return tensors
}

// tensorParams declares the tensors as parameters.
func (s *writer) tensorParams() string {
	text := ""
	all, _, _ := s.pieces()
	for i, p := range all {
		if s.engine && !p.whole {
			text += fmt.Sprintf(", const __grid_constant__ tensor_map box%d", i)
			if s.tapers() {
				text += fmt.Sprintf(", const __grid_constant__ tensor_map tail%d", i)
			}
		}
	}
	return text
}

// under spells how many rows of a backward pass's last tile lie before the first row in memory. The
// engine copies from the first row on, and threads without steps read rows that exist.
func (s *writer) under() string {
	switch {
	case s.backward && s.engine:
	case walked(&s.geometry):
		return skewsOf(s, "g.low(t.time)")
	default:
		return ""
	}
	return "      const int under = max(0, (t.time + 1) * (DEEP * K) - steps);\n" + skewsOf(s, backwardLow("t"))
}

// backwardLow spells the first row in memory of a tile of a backward pass.
func backwardLow(tile string) string {
	return fmt.Sprintf("max(0, steps - (%s.time + 1) * (DEEP * K))", tile)
}

// fetch spells the start of the copies of a turn's tile, or of a part of it.
func (s *writer) fetch(b *strings.Builder) {
	if !s.engine {
		b.WriteString(`      unsigned char* const to = memory + slot * BUFFER;
      for (int who = me; who < THREADS; who += COPIERS) {
        const tile t = g.at(ahead, who);
        if (t.steps > 0) {
`)
		s.copies(b, "who")
		b.WriteString("        }\n      }\n")
		if slices.ContainsFunc(s.loads, func(l load) bool { return s.bytes(l) == 2 }) { // 2 bytes are copied synchronously, so arrive_async does not cover them
			b.WriteString("      end_async();\n      wait_async<0>();\n      bar_arrive(full + 8 * slot);\n")
		} else {
			b.WriteString("      arrive_async(full + 8 * slot);\n")
		}
		return
	}
	low, bar, slot := "g.low(ahead.time)", "full + 8 * slot", " + slot * BUFFER"
	if s.members == 0 {
		low, bar, slot = "ahead.time * (DEEP * K)", "full", ""
	}
	switch {
	case s.sole():
		b.WriteString("      const int lines = DEEP * g.each(ahead.time) / PARTS;\n")
		low, bar = "g.low(ahead.time) + part * lines", "full + 8 * (slot * PARTS + part)"
	case s.backward:
		low = backwardLow("ahead")
	}
	first := "const unsigned column = ahead.chain * (LANES * V), n = batch == 1 ? 0 : column / hidden, u = column - n * hidden"
	if s.units > 0 {
		first = "const int sides = (hidden + UNITS - 1) / UNITS, n = ahead.chain / sides * SEQS, u = ahead.chain % sides * UNITS"
	}
	fmt.Fprintf(b, `      const int low = %s;
      %s;
      const shared_t to = shared_address(memory)%s, bar = %s;
%s`, low, first, slot, bar, skewsOf(s, "low"))
	all, _, _ := s.pieces()
	bytes := "0"
	for i, p := range all {
		switch {
		case s.units > 0:
			bytes += bytesDealt(s, b, i, &p)
		case p.whole && s.sole():
			fmt.Fprintf(b, "      const int bytes%d = max(0, min(lines, steps - low)) * %d;\n", i, p.pitch)
			bytes += fmt.Sprintf(" + bytes%d", i)
		case p.whole:
			fmt.Fprintf(b, "      const int bytes%d = min(DEEP * K + %d, steps + %d - low) * %d;\n", i, p.more, p.more, p.pitch)
			bytes += fmt.Sprintf(" + bytes%d", i)
		case s.sole():
			bytes += fmt.Sprintf(" + lines * %d", p.pitch)
		default:
			bytes += fmt.Sprintf(" + %d", p.boxes*p.each*p.pitch)
		}
	}
	fmt.Fprintf(b, "      bar_arrive(bar, %s);\n", bytes)
	for i, p := range all {
		switch {
		case s.units > 0:
			copyDealt(s, b, i, &p)
		case p.whole && s.sole():
			fmt.Fprintf(b, "      if (bytes%d > 0) read_bulk(to + %d + part * (lines * %d), %s + (long long)(low + %d) * ld_%s, bytes%d, bar);\n", i, p.at, p.pitch, p.group.Name, p.shift, p.group.Name, i)
		case p.whole:
			fmt.Fprintf(b, "      read_bulk(to + %d, %s + (long long)(low + %d) * ld_%s, bytes%d, bar);\n", p.at, p.group.Name, p.shift-p.more, p.group.Name, i)
		case s.sole():
			box := fmt.Sprintf("box%d", i)
			if s.tapers() {
				box = fmt.Sprintf("ahead.time < g.regular ? box%d : tail%d", i, i)
			}
			fmt.Fprintf(b, "      tensor_load(to + %d + part * (lines * %d), %s, u, n, low + %d, bar);\n", p.at, p.pitch, box, p.shift)
		default:
			for k := range p.boxes {
				fmt.Fprintf(b, "      tensor_load(to + %d, box%d, u, n, low + %d, bar);\n", p.at+k*p.each*p.pitch, i, p.shift-p.more+k*p.each)
			}
		}
	}
}
