package scan

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
)

// The copy engine reads boxes of a tensor. A tensor must begin at a multiple of 16 bytes, and so
// must each of its rows and each box. Unaligned rows of a matrix begin anywhere. But rows period
// steps apart begin at the same offset modulo 16 bytes, so period steps together form one row of
// the tensor. A tile is read as period boxes: each has the steps of one remainder modulo the
// period. A box begins at the last multiple of 16 bytes before the wanted elements.

// engineLanes is the number of channels side by side in such a tile: a line of memory in single
// precision.
const engineLanes = scanLine / 4

// repeats returns the period of g: the steps after which rows begin at the same offset modulo 16
// bytes again.
func (s *operands) repeats(g *codegen.Group) int {
	bytes, n := s.Batch()*g.View.M.Cols*g.Element.Bytes(), 1
	for ; n*bytes%16 != 0; n *= 2 {
	}
	return n
}

// lead returns how many steps before g's first one its tensor begins, at a multiple of 16 bytes. ok
// reports whether g begins with a whole step of its matrix, which this needs.
func lead(s *operands, g *codegen.Group) (steps int, ok bool) {
	steps = g.View.Row / s.Batch() % s.repeats(g)
	return steps, g.View.Row%s.Batch() == 0
}

// aligned reports whether the first row of g begins at a multiple of 16 bytes.
func aligned(g *codegen.Group) bool { return g.View.Row*g.View.M.Cols*g.Element.Bytes()%16 == 0 }

// dealOut gives each chain some channels of one sequence, or all channels of several sequences. So
// few boxes hold what a chain reads of a step. A chain has at most so many lanes.
func dealOut(s *geometry, lanes int) {
	if n := s.Hidden(); n > lanes {
		s.over = overlap(s, lanes)
		most := lanes - s.over
		if n%4 == 0 {
			most = most / 4 * 4
		}
		sides := ints.CeilDiv(n, most)
		if s.units, s.seqs = most, 1; n%8 != 0 || s.over > 0 {
			s.units = ints.CeilDiv(n, sides)
		}
		if n%4 == 0 { // so that more pieces begin at multiples of 16 bytes
			s.units = ints.RoundUp(s.units, 4)
		}
		s.lanes, s.chains = lanesFor(s.units+s.over), s.Batch()*sides
		return
	}
	s.chains = ints.CeilDiv(s.Batch(), lanes/s.Hidden())
	s.units, s.seqs = s.Hidden(), ints.CeilDiv(s.Batch(), s.chains)
	s.lanes = lanesFor(s.seqs * s.units)
}

// lanesFor returns the fewest lanes for so many channels. Warps share no row; a row of up to two
// warps has a power of two.
func lanesFor(channels int) int {
	if n := ints.PowerOfTwo(channels); n <= 64 {
		return n
	}
	return ints.RoundUp(channels, 32)
}

// dealtTo returns the scan with channels dealt out to chains. ok reports whether the copy engine
// can copy its tiles.
func dealtTo(s *Scan, p driver.Properties, lanes int) (d Scan, ok bool) {
	d = *s
	d.width, d.engine = 1, true
	dealOut(&d.geometry, lanes)
	if p.Capability < 90 {
		return d, false
	}
	for _, l := range d.loads {
		g := d.holderOf(l)
		if _, ok := lead(&d.operands, g); !ok || spanOf(&d.geometry, g) > maxBox || d.repeats(g)*d.Batch()*g.View.M.Cols > maxColumns {
			return d, false
		}
	}
	return d, true
}

// maxColumns is the most columns of a tensor, so that coordinates fit their type.
const maxColumns = 1 << 30

// holderOf returns the group of a load.
func (s *operands) holderOf(l load) *codegen.Group {
	return &s.groups[slices.IndexFunc(s.groups, func(g codegen.Group) bool { return g.Name == l.group })]
}

// joint reports whether one box has all that a chain reads of g. That is so if the chain has
// several sequences. It is also so if the chain has all channels of one sequence, and the columns
// form one piece of a row.
func joint(s *geometry, g *codegen.Group) bool {
	first, last := s.columns(g)
	n, columns := s.Hidden(), 0
	for _, l := range s.loads {
		if l.group == g.Name {
			columns++
		}
	}
	return s.seqs > 1 || s.units == n && columns > 1 && columns == last-first+1 && columns*n+16/g.Element.Bytes() <= maxBox
}

// spanOf returns the number of elements per step of a box of g. These are the chain's channels or,
// if joint, all from the first column that is read to the last.
func spanOf(s *geometry, g *codegen.Group) int {
	first, last := s.columns(g)
	n, each := s.units+s.over, 16/g.Element.Bytes()
	if joint(s, g) {
		n = (s.seqs-1)*g.View.M.Cols + (last-first+1)*s.Hidden()
	}
	if skewed(s, g) {
		n += each - 1
	}
	return ints.RoundUp(n, each)
}

// skewed reports whether a chain's elements of a step may begin after a multiple of 16 bytes.
func skewed(s *geometry, g *codegen.Group) bool {
	return (g.View.M.Cols|g.View.Col|s.Hidden()|s.units)%(16/g.Element.Bytes()) != 0
}

// elements returns the number of elements in 16 bytes.
func (p *contiguous) elements() int { return 16 / p.group.Element.Bytes() }

// columns returns the first and last columns of g that are read.
func (s *operands) columns(g *codegen.Group) (first, last int) {
	first = g.View.M.Cols
	for _, l := range s.loads {
		if l.group == g.Name {
			first, last = min(first, l.column), max(last, l.column)
		}
	}
	return first, last
}

// slackOf returns how many bytes the engine may read beyond a matrix: to the end of the tensor's
// last row, or to the next multiple of 16.
func slackOf(s *geometry) (bytes int64) {
	if s.units == 0 {
		return 0
	}
	for _, l := range s.loads {
		g := s.holderOf(l)
		bytes = max(bytes, 16+int64(s.repeats(g)*s.Batch()*g.View.M.Cols*g.Element.Bytes()))
	}
	return bytes
}

// periodic describes the tensor of a piece with period steps per row, for boxes of so many rows.
func periodic(s *geometry, p *contiguous, at driver.Pointer, rows int) *driver.Tensor {
	size, long := p.group.Element.Bytes(), p.period*s.Batch()*p.group.View.M.Cols
	return &driver.Tensor{
		At: at - driver.Pointer((p.group.View.Col+p.lead*s.Batch()*p.group.View.M.Cols)*size), Element: p.group.Element,
		Sizes:   [3]int{long, 1, ints.CeilDiv(s.Steps+p.shift+p.lead, p.period)},
		Strides: [2]int{long * size, long * size},
		Box:     [3]int{p.pitch / size, 1, rows},
	}
}

// place lays out a piece in shared memory and returns its bytes. stretch: a chain has all that is
// in a row, so the piece is one stretch of memory.
func (s *geometry) place(p *contiguous, stretch bool) int {
	size, ld := p.group.Element.Bytes(), p.group.View.M.Cols
	p.lead, _ = lead(&s.operands, p.group)
	if p.joint = joint(s, p.group); p.joint {
		p.column, _ = s.columns(p.group)
	}
	if s.seqs > 1 {
		p.lane = ld
	}
	if stretch {
		p.whole, p.column, p.pitch = true, 0, s.Batch()*ld*size
		return ints.RoundUp((s.rows()+p.more)*p.pitch+32, 128)
	}
	p.pitch, p.skewed = spanOf(s, p.group)*size, skewed(s, p.group)
	return s.lines(p)
}

// lines lays out a piece in periodic boxes and returns its bytes.
func (s *geometry) lines(p *contiguous) int {
	p.period = s.repeats(p.group)
	rows := s.rows() + p.more
	if s.sole() {
		p.each = ints.CeilDiv(rows/s.parts(), p.period)
		p.apart = ints.RoundUp(p.each*p.pitch, 128)
		return s.parts() * p.period * p.apart
	}
	need, aligned := ints.CeilDiv(rows, p.period), 128/gcd(128, p.pitch)
	for p.boxes = 1; ; p.boxes++ {
		if p.each = ints.CeilDiv(need, p.boxes); p.boxes > 1 {
			p.each = ints.RoundUp(p.each, aligned)
		}
		if p.each <= maxBox {
			break
		}
	}
	p.apart = ints.RoundUp(p.boxes*p.each*p.pitch, 128)
	return p.period * p.apart
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// tailRowsOf returns the rows of a part's box in tiles of the last turn.
func tailRowsOf(s *geometry, p *contiguous) int {
	lines := s.threads / s.lanes * s.tail / s.parts()
	if p.period > 0 {
		return ints.CeilDiv(lines, p.period)
	}
	return lines
}

// linePlace spells the address of step i's element in a slot that consists of boxes. Steps with the
// same remainder modulo the period lie in the same box, one row after another. So a thread finds
// the first row in each box once for all steps.
func linePlace(s *writer, p slot, from, who string) string {
	each, size := "t.each", p.element.Bytes()
	if s.members == 0 {
		each = "K"
	}
	name := fmt.Sprintf("%d_%d", p.at, p.ahead)
	row, base := fmt.Sprintf("(int)(%s / LANES) * %s + %d + j", who, each, p.ahead), fmt.Sprint(p.at)
	if p.memory { // rows behind a thread's last step may be none of the tile
		row = fmt.Sprintf("max(0, DEEP * K - 1 + %d - under - (int)(%s / LANES) * %s - %d - j)", p.more, who, each, p.ahead)
	}
	line := "row"
	if s.sole() {
		line = fmt.Sprintf("(row - %s / LANES / (DEEP / PARTS) * (DEEP / PARTS) * t.each)", who)
		base += fmt.Sprintf(" + %s / LANES / (DEEP / PARTS) * %d", who, p.period*p.apart)
	}
	behind := ""
	if p.off != "" {
		behind = fmt.Sprintf(" + (row * %d + %s) %% %d * %d", p.each, p.off, 16/size, size)
	}
	left, rest, next := "", fmt.Sprintf("%s / %d * %d", line, p.period, p.pitch), fmt.Sprintf("i / %d * %d", p.period, p.pitch)
	if p.memory {
		left, rest = fmt.Sprintf(", left%s[%d]", name, p.period), "0"
		next = fmt.Sprintf("max(0, (int)left%s[i %% %d] - i / %d) * %d", name, p.period, p.period, p.pitch)
	}
	found := fmt.Sprintf("        line%s[j] = %s + %s %% %d * %d + %s + %s%s;\n", name, base, line, p.period, p.apart, rest, p.laneText(who, size), behind)
	if p.memory {
		found += fmt.Sprintf("        left%s[j] = row / %d;\n", name, p.period)
	}
	if s.lines == nil {
		s.lines = map[string]string{}
	}
	s.lines[name] = fmt.Sprintf("      unsigned line%s[%d]%s;\n#pragma unroll\n      for (int j = 0; j < %d; j++) {\n        const unsigned row = %s;\n%s      }\n", name, p.period, left, p.period, row, found)
	return fmt.Sprintf("(%v*)(%s + line%s[i %% %d] + %s)", p.element, from, name, p.period, next)
}

// bytesDealt spells the bytes of piece i of a tile, or of a part of one without groups.
func bytesDealt(s *writer, b *strings.Builder, i int, p *contiguous) string {
	switch {
	case p.whole && s.sole(): // neighbouring parts share the 16 bytes where they meet
		fmt.Fprintf(b, "      const int lines%[1]d = max(0, min(lines, steps - low)), skip%[1]d = part * lines * %[2]d / 16 * 16;\n", i, p.pitch)
		fmt.Fprintf(b, "      const int bytes%[1]d = lines%[1]d > 0 ? ((part * lines + lines%[1]d) * %[2]d + 15) / 16 * 16 - skip%[1]d : 0;\n", i, p.pitch)
		return fmt.Sprintf(" + bytes%d", i)
	case p.whole:
		skew := ""
		if skewable(&s.geometry) {
			skew = fmt.Sprintf(" + skew%d", i)
		}
		fmt.Fprintf(b, "      const int bytes%d = (min(DEEP * K + %d, steps + %d - low) * %d%s + 15) / 16 * 16;\n", i, p.more, p.more, p.pitch, skew)
		return fmt.Sprintf(" + bytes%d", i)
	case s.sole():
		return fmt.Sprintf(" + (lines + %d) / %d * %d", p.period-1, p.period, p.period*p.pitch)
	}
	return fmt.Sprintf(" + %d", p.period*p.boxes*p.each*p.pitch)
}

// copyDealt spells the copy of piece i, as one stretch or as periodic boxes.
func copyDealt(s *writer, b *strings.Builder, i int, p *contiguous) {
	switch name := p.group.Name; {
	case p.whole && s.sole():
		fmt.Fprintf(b, "      if (bytes%[1]d > 0) read_bulk(to + %[2]d + skip%[1]d, (const char*)(%[3]s + (long long)(g.low(ahead.time) + %[4]d) * batch * ld_%[3]s) + skip%[1]d, bytes%[1]d, bar);\n",
			i, p.at, name, p.shift)
		return
	case p.whole:
		skew := ""
		if skewable(&s.geometry) {
			skew = fmt.Sprintf(" - skew%d", i)
		}
		fmt.Fprintf(b, "      read_bulk(to + %d, (const char*)(%s + (long long)(low + %d) * batch * ld_%s)%s, bytes%d, bar);\n", p.at, name, p.shift-p.more, name, skew, i)
		return
	}
	copyLines(s, b, i, p)
}

// copyLines spells the copy of piece i as periodic boxes.
func copyLines(s *writer, b *strings.Builder, i int, p *contiguous) {
	box, part := fmt.Sprintf("box%d", i), ""
	if s.sole() {
		part = fmt.Sprintf(" + part * %d", p.period*p.apart)
		if s.tapers() {
			box = fmt.Sprintf("ahead.time < g.regular ? box%d : tail%d", i, i)
		}
	}
	fmt.Fprintf(b, "#pragma unroll 1\n      for (int j = 0; j < %d; j++) {\n        const int row = low + %d + j, from = (row %% %d * (batch * ld_%s) + n * ld_%s + %d + u) / %d * %d;\n",
		p.period, p.lead+p.shift-p.more, p.period, p.group.Name, p.group.Name, p.group.View.Col+p.column*s.Hidden(), p.elements(), p.elements())
	for k := range p.boxes {
		fmt.Fprintf(b, "        tensor_load(to + %d%s + j * %d, %s, from, 0, row / %d + %d, bar);\n", p.at+k*p.each*p.pitch, part, p.apart, box, p.period, k*p.each)
	}
	b.WriteString("      }\n")
}

// offsetsOf spells how many elements after a multiple of 16 bytes row 0 of a tile's boxes begins.
func offsetsOf(s *writer, chain string) string {
	low := "g.low(t.time)"
	switch {
	case s.backward:
		low = backwardLow("t")
	case s.members == 0:
		low = "t.time * (DEEP * K)"
	}
	text := ""
	all, _, _ := s.pieces()
	for i, p := range all {
		if p.skewed {
			text += fmt.Sprintf("      const unsigned off%d = (%s + %d) * %d + at_n * ld_%s + %d + at_u;\n",
				i, low, p.lead+p.shift-p.more, s.Batch()*p.group.View.M.Cols%p.elements(), p.group.Name, p.group.View.Col+p.column*s.Hidden())
		}
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("      const int sides = (hidden + UNITS - 1) / UNITS, at_n = %[1]s / sides * SEQS, at_u = %[1]s %% sides * UNITS;\n", chain) + text
}

// skewsOf spells how many bytes after a multiple of 16 stretches begin.
func skewsOf(s *writer, low string) string {
	text := ""
	all, _, _ := s.pieces()
	for i, p := range all {
		if p.whole && s.units > 0 && skewable(&s.geometry) {
			text += fmt.Sprintf("      const int skew%d = (%s + %d) %% %d * %d %% 16;\n", i, low, p.lead+p.shift-p.more, s.repeats(p.group), p.pitch)
		}
	}
	return text
}

// dealingOf returns words that distinguish kernels whose channels are dealt out differently.
func dealingOf(s *geometry) string {
	if s.units == 0 {
		return ""
	}
	text := fmt.Sprint(" dealt ", s.units, " ", s.seqs, " ", s.Batch(), " ", s.over, " ", s.asked)
	all, _, _ := s.pieces()
	for _, p := range all {
		text += fmt.Sprint(" ", p.group.View.M.Cols, " ", p.group.View.Col, " ", p.lead)
	}
	return text
}
