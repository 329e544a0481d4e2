package scan

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/cell"
)

// How results of teams leave. Mostly threads write them, a line of memory for eight of them. Where a tile's channels
// are all there are, its rows are one stretch of memory, and threads can leave them in shared memory, from where the
// copy engine writes them, a stretch for each warp: where a vector is less than a line, and
// threads would write it piece by piece, and ahead of a tile's composition, which what they write themselves would delay.

// A stage is a matrix whose rows a tile leaves in shared memory.
type stage struct {
	group *codegen.Group
	at    int  // in what the tile leaves
	pitch int  // bytes from row to row
	shift int  // of the first step's row
	lead  int  // steps from a multiple of 16 bytes to the first one
	own   int  // bytes of a warp's part, where rows may begin anywhere (deal.go); else 0
	lane  int  // elements from a sequence to the next, if there are several; else 0
	rows  bool // threads write row by row what is left: of few channels of several sequences, all columns
}

// stagedLanes are the most lanes for which a forward pass stages rows that begin anywhere: of 2 × 5 × 2,097,151 the states
// took 1.7 times as long staged, where the engine's stretches begin between sectors of memory.
const stagedLanes = 8

// stretch reports whether rows of g are one stretch of memory and vectors a line at most, short whether they are less.
func (s *geometry) stretch(g *codegen.Group) bool {
	if walked(s) {
		return false
	}
	if s.units > 0 && s.chains > 1 {
		return s.seqs > 1 && s.lanes <= 32 // a warp writes whole rows
	}
	if s.units > 0 {
		_, ok := lead(&s.operands, g)
		return ok && s.chains == 1 && (s.backward || s.lanes <= stagedLanes || s.sector > anywhere) && s.seqs*s.units*g.Element.Bytes() <= scanLine
	}
	wide := s.lanes * s.width
	return s.engine && s.Batch() == 1 && s.Hidden() == wide && wide*g.Element.Bytes() <= scanLine
}

func (s *geometry) short(g *codegen.Group) bool {
	return s.stretch(g) && max(1, s.seqs)*s.Hidden()*g.Element.Bytes() < scanLine
}

// holder is the group that r is in.
func (s *operands) holder(r cell.Ref) *codegen.Group {
	return &s.groups[slices.IndexFunc(s.groups, func(g codegen.Group) bool { return g.Name == argument(r) })]
}

// mixed are results that no state is needed for, in matrices of short vectors that have others besides.
func (s *geometry) mixed() (out []cell.Ref) {
	late := s.outputs(true)
	for _, r := range s.outputs(false) {
		if s.short(s.holder(r)) && slices.ContainsFunc(late, func(o cell.Ref) bool { return argument(o) == argument(r) }) {
			out = append(out, r)
		}
	}
	return out
}

// written are the results of a tile that are written ahead of its composition or, late, once it has its state.
func (s *geometry) written(late bool) []cell.Ref {
	if late {
		return append(s.outputs(true), s.delayed...)
	}
	return slices.DeleteFunc(s.outputs(false), func(r cell.Ref) bool { return slices.Contains(s.delayed, r) })
}

// goals are the values of what is written, and of the states after a step.
func (s *geometry) goals(late bool) []int { return s.targets(late, s.written(late)) }

// stages are those of what is written at a time, bytes those of a tile with the earlier ones.
func (s *geometry) stages(late bool) (all []stage, bytes int) {
	if s.members == 0 && (s.units == 0 || s.chains == 1) {
		return nil, 0
	}
	if late {
		_, bytes = s.stages(false)
	}
	columns, written := map[*codegen.Group]int{}, s.written(late)
	for _, r := range written {
		columns[s.holder(r)]++
	}
	for i := range s.groups {
		g := &s.groups[i]
		if columns[g]*s.Hidden() != g.View.M.Cols || !s.stretch(g) || late && !s.short(g) {
			continue
		}
		st := stage{group: g, at: bytes, pitch: g.View.M.Cols * g.Element.Bytes()}
		if slices.ContainsFunc(written, func(r cell.Ref) bool { return s.holder(r) == g && r.Kind == cell.Next }) {
			st.shift = 1
		}
		if s.units > 0 && s.chains > 1 {
			if columns[g] == 1 {
				continue // which lies side by side as it is
			}
			st.rows, st.lane, st.pitch = true, g.View.M.Cols, st.pitch*s.seqs
			st.own = s.chunk * st.pitch
			bytes += ints.RoundUp(s.threads/32*st.own, 128)
			all = append(all, st)
			continue
		}
		if s.units > 0 {
			st.pitch *= s.Batch()
			st.lead, _ = lead(&s.operands, g)
			st.own = ints.RoundUp(32/s.lanes*s.chunk*st.pitch+16, 16)
			bytes += ints.RoundUp(s.threads/32*st.own, 128)
			if st.lane = g.View.M.Cols; s.seqs == 1 {
				st.lane = 0
			}
			all = append(all, st)
			continue
		}
		bytes += 128 * ints.CeilDiv(s.rows()*st.pitch, 128)
		all = append(all, st)
	}
	return all, bytes
}

// staged are the bytes of all stages.
func (s *geometry) staged() int {
	_, bytes := s.stages(true)
	return bytes
}

// leaving names the results that are delayed and the matrices that are staged: their bytes are alike where others are.
func (s *geometry) leaving() string {
	text := fmt.Sprint(s.delayed)
	for _, late := range []bool{false, true} {
		all, _ := s.stages(late)
		for _, st := range all {
			text += fmt.Sprint(" ", st.group.Name, " ", st.pitch, " ", st.own, " ", st.lane, " ", st.lead)
		}
	}
	return text
}

// staging is the stage that r is left in, nil if it is written by its thread.
func staging(all []stage, r cell.Ref) *stage {
	if i := slices.IndexFunc(all, func(st stage) bool { return st.group.Name == argument(r) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// stageWarps has the threads of a warp find out how many rows they leave in stages, in a part of their own whatever the
// steps of the tile, and wait until what they left there before has been read.
const stageWarps = `      const int part = threadIdx.x / 32 * (32 / LANES * t.each), lines = max(0, min(32 / LANES * t.each, steps - g.low(t.time) - part));
      const int line = threadIdx.x % 32 / LANES * t.each, own = threadIdx.x / 32 * (32 / LANES * K);
      if (threadIdx.x % 32 == 0) engine_read();
      __syncwarp();
`

// stageBegin has the threads of a warp wait until what they left in stages before has been read.
func stageBegin(all []stage) string {
	if all[0].rows {
		return "      __syncwarp();\n"
	}
	return stageWarps
}

// place is where a thread leaves step i of r.
func (st *stage) place(s *Scan, r cell.Ref) string {
	line, size := "line + i", st.group.Element.Bytes()
	if s.backward {
		line = "lines - 1 - line - i"
	}
	if st.own > 0 {
		lane := fmt.Sprint("g.x() * ", size)
		if st.lane > 0 {
			lane = fmt.Sprintf("(g.x() / UNITS * %d + g.x() %% UNITS) * %d", st.lane, size)
		}
		if st.rows {
			return fmt.Sprintf("(%v*)(staged + %d + threadIdx.x / 32 * %d + i * %d + %s)", st.group.Element, st.at+codegen.Offset(r)*s.Hidden()*size, st.own, st.pitch, lane)
		}
		return fmt.Sprintf("(%v*)(staged + %d + threadIdx.x / 32 * %d + %s + (%s) * %d + %s)", st.group.Element, st.at+codegen.Offset(r)*s.Hidden()*size, st.own, st.skew(s), line, st.pitch, lane)
	}
	return fmt.Sprintf("(%v*)(staged + %d + (own + %s) * %d + g.x() * %d)", st.group.Element, st.at+codegen.Offset(r)*s.Hidden()*size, line, st.pitch, s.width*size)
}

// first is the first row that a warp leaves.
func (st *stage) first(s *Scan) string {
	if s.backward {
		return fmt.Sprintf("(steps - g.low(t.time) - part - lines + %d)", st.shift)
	}
	return fmt.Sprintf("(g.low(t.time) + part + %d)", st.shift)
}

// skew is how many bytes a warp's stretch of memory begins behind a multiple of 16; its part begins with as many.
func (st *stage) skew(s *Scan) string {
	return fmt.Sprintf("(%s + %d) %% %d * %d %% 16", st.first(s), st.lead, s.repeats(st.group), st.pitch)
}

// stageEnd begins to write what the threads of a warp have left in stages.
func (s *writer) stageEnd(b *strings.Builder, all []stage) {
	if all[0].rows {
		s.stageRows(b, all)
		return
	}
	b.WriteString("      show_engine();\n      __syncwarp();\n")
	if s.units > 0 {
		b.WriteString("      if (lines > 0) {\n")
		for _, st := range all {
			name := st.group.Name
			fmt.Fprintf(b, "        write_stretch<%d>(%s + (long long)%s * batch * ld_%s, staged + %d + threadIdx.x / 32 * %d + %s, lines * %d);\n",
				max(16, s.sector), name, st.first(s.Scan), name, st.at, st.own, st.skew(s.Scan), st.pitch)
		}
		b.WriteString("      }\n")
		return
	}
	b.WriteString("      if (threadIdx.x % 32 == 0 && lines > 0) {\n")
	for _, st := range all {
		first := "g.low(t.time) + part"
		if s.backward {
			first = "steps - g.low(t.time) - part - lines"
		}
		fmt.Fprintf(b, "        write_bulk(%s + (long long)(%s + %d) * ld_%s, shared_address(staged + %d + own * %d), lines * %d);\n",
			st.group.Name, first, st.shift, st.group.Name, st.at, st.pitch, st.pitch)
	}
	b.WriteString("      }\n")
}

// stageRows writes, row by row, what the threads of a warp have left.
func (s *writer) stageRows(b *strings.Builder, all []stage) {
	each := "t.each"
	if s.members == 0 {
		each = "K"
	}
	fmt.Fprintf(b, "      __syncwarp();\n      const int lines = max(0, min((int)%s, steps - t.first)), first_n = t.n - g.x() / PART;\n", each)
	for _, st := range all {
		row := fmt.Sprintf("(t.first + %d)", st.shift)
		if s.backward {
			row = fmt.Sprintf("(steps - 1 - t.first + %d)", st.shift)
		}
		name := st.group.Name
		fmt.Fprintf(b, "      write_rows(%s + ((long long)%s * batch + first_n) * ld_%s, %s, staged + %d + threadIdx.x / 32 * %d, %d, lines, min((int)SEQS, batch - first_n) * ld_%s);\n",
			name, row, name, s.stride(name), st.at, st.own, st.pitch, name)
	}
}
