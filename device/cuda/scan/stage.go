package scan

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/cell"
)

// How results of teams are written. Mostly threads write them directly, eight threads a line of
// memory. If a tile has all channels, its rows are one stretch of memory. Then threads can leave
// results in shared memory, and the copy engine writes them, one stretch per warp. That pays in two
// cases. Vectors are less than a line, which threads would write in small pieces. Or results
// precede a tile's composition, which direct writes would delay.

// A stage is a matrix whose rows a tile leaves in shared memory for the copy engine.
type stage struct {
	group *codegen.Group
	at    int  // offset in the staged memory
	pitch int  // bytes from row to row
	shift int  // from a step's number to its row
	lead  int  // steps from a multiple of 16 bytes to the first step
	own   int  // bytes of a warp's part, for unaligned rows (deal.go); else 0
	lane  int  // elements from one sequence to the next; 0: one sequence
	rows  bool // threads, not the engine, write the staged rows: all columns of few channels of several sequences
}

// stagedLanes is the most lanes for which a forward pass stages unaligned rows. The states of 2 × 5
// × 2,097,151 took 1.7 times as long staged, since the engine's stretches began between sectors of
// memory.
const stagedLanes = 8

// stretch reports whether a tile's rows of g can be staged: they are contiguous, and vectors are a
// line at most. short reports whether vectors are less than a line.
func (s *geometry) stretch(g *codegen.Group) bool {
	if walked(s) {
		return false
	}
	if s.units > 0 && s.chains > 1 {
		return s.seqs > 1 && s.lanes <= 32 // a warp writes whole rows: see rows
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

// holder returns the group of r.
func (s *operands) holder(r cell.Ref) *codegen.Group {
	return &s.groups[slices.IndexFunc(s.groups, func(g codegen.Group) bool { return g.Name == argument(r) })]
}

// mixed returns results that need no state but share a matrix of short vectors with results that
// do.
func (s *geometry) mixed() (out []cell.Ref) {
	late := s.outputs(true)
	for _, r := range s.outputs(false) {
		if s.short(s.holder(r)) && slices.ContainsFunc(late, func(o cell.Ref) bool { return argument(o) == argument(r) }) {
			out = append(out, r)
		}
	}
	return out
}

// written returns the results that a tile writes before its composition or, late, after its prefix
// is known.
func (s *geometry) written(late bool) []cell.Ref {
	if late {
		return append(s.outputs(true), s.delayed...)
	}
	return slices.DeleteFunc(s.outputs(false), func(r cell.Ref) bool { return slices.Contains(s.delayed, r) })
}

// goals returns the values of written results and, late, of the states after a step.
func (s *geometry) goals(late bool) []int { return s.targets(late, s.written(late)) }

// stages returns the stages of the results that are written at once, and the bytes of a tile's
// stages so far.
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
				continue // its rows are contiguous anyway
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

// staged returns the bytes of all stages.
func (s *geometry) staged() int {
	_, bytes := s.stages(true)
	return bytes
}

// leaving names the delayed results and the staged matrices, to distinguish kernels.
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

// staging returns the stage of r; nil: its thread writes it directly.
func staging(all []stage, r cell.Ref) *stage {
	if i := slices.IndexFunc(all, func(st stage) bool { return st.group.Name == argument(r) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// stageWarps spells how many rows a warp stages, and its part of the stage, which is the same for
// any number of steps. It also waits until the engine has read what the warp staged before.
const stageWarps = `      const int part = threadIdx.x / 32 * (32 / LANES * t.each), lines = max(0, min(32 / LANES * t.each, steps - g.low(t.time) - part));
      const int line = threadIdx.x % 32 / LANES * t.each, own = threadIdx.x / 32 * (32 / LANES * K);
      if (threadIdx.x % 32 == 0) engine_read();
      __syncwarp();
`

// stageBegin spells the wait of a warp until what it staged before has been read.
func stageBegin(all []stage) string {
	if all[0].rows {
		return "      __syncwarp();\n"
	}
	return stageWarps
}

// place spells where a thread stages step i of r.
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

// first spells the first row that a warp stages.
func (st *stage) first(s *Scan) string {
	if s.backward {
		return fmt.Sprintf("(steps - g.low(t.time) - part - lines + %d)", st.shift)
	}
	return fmt.Sprintf("(g.low(t.time) + part + %d)", st.shift)
}

// skew spells how many bytes after a multiple of 16 a warp's stretch of memory begins. Its part of
// the stage begins alike.
func (st *stage) skew(s *Scan) string {
	return fmt.Sprintf("(%s + %d) %% %d * %d %% 16", st.first(s), st.lead, s.repeats(st.group), st.pitch)
}

// stageEnd spells the start of the writes of what a warp has staged.
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

// stageRows spells how a warp writes its staged rows, row by row.
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
