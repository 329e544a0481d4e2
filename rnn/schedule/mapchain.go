package schedule

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
)

// A MapChain is maps of one shape run in one go: element by element, each after those before it.
// Two views are the same or disjoint, unless steps only read them.
type MapChain struct{ Steps []Map }

func (m MapChain) Name() string { return "maps" }

// Reads lists the operands that no earlier step has written.
func (m MapChain) Reads() []View {
	var reads, written []View
	for _, s := range m.Steps {
		for _, v := range s.Args() {
			if !slices.Contains(written, v) && !slices.Contains(reads, v) {
				reads = append(reads, v)
			}
		}
		written = append(written, s.Out)
	}
	return reads
}

func (m MapChain) Writes() []View {
	var writes []View
	for _, s := range m.Steps {
		if !slices.Contains(writes, s.Out) {
			writes = append(writes, s.Out)
		}
	}
	return writes
}

func (m MapChain) FLOPs() int64 {
	var n int64
	for _, s := range m.Steps {
		n += s.FLOPs()
	}
	return n
}

func (m MapChain) String() string {
	var steps []string
	for _, s := range m.Steps {
		steps = append(steps, s.String())
	}
	return strings.Join(steps, "; ")
}

func (m MapChain) check() error {
	if len(m.Steps) == 0 {
		return fmt.Errorf("schedule: maps without a step")
	}
	for i, s := range m.Steps {
		if err := s.check(); err != nil {
			return err
		}
		if !m.joins(i) {
			return shapeError(m)
		}
	}
	return nil
}

// joins reports whether step i has the shape of the steps before it. Neither may write a part of a
// view that the other reads or writes.
func (m MapChain) joins(i int) bool {
	s, first := m.Steps[i], m.Steps[0].Out
	if s.Out.Rows != first.Rows || s.Out.Cols != first.Cols {
		return false
	}
	apart := func(v, w View) bool { return v == w || !v.Overlaps(w) }
	for _, before := range m.Steps[:i] {
		if !apart(before.Out, s.Out) {
			return false
		}
		for _, v := range s.Args() {
			if !apart(before.Out, v) {
				return false
			}
		}
		for _, v := range before.Args() {
			if !apart(v, s.Out) {
				return false
			}
		}
	}
	return true
}

// Append adds a step, unless it does not join: then it reports false.
func (m *MapChain) Append(s Map) bool {
	longer := MapChain{append(m.Steps, s)}
	if !longer.joins(len(m.Steps)) {
		return false
	}
	*m = longer
	return true
}

// Program is the program that m runs for each element, and the view of each of its vectors: Next
// for views that m writes, Prev for those that it only reads.
func (m MapChain) Program() (p cell.Program, vector func(cell.Ref) View) {
	reads, writes := m.Reads(), m.Writes()
	ref := func(v View) cell.Ref {
		if i := slices.Index(writes, v); i >= 0 {
			return cell.Ref{Kind: cell.Next, Index: i}
		}
		return cell.Ref{Kind: cell.Prev, Index: slices.Index(reads, v)}
	}
	for _, s := range m.Steps {
		in := cell.Instr{Op: s.Op, Out: ref(s.Out), Value: s.Value}
		for i, v := range s.Args() {
			if i == 0 {
				in.A = ref(v)
			} else {
				in.B = ref(v)
			}
		}
		p = append(p, in)
	}
	return p, func(r cell.Ref) View {
		if r.Kind == cell.Next {
			return writes[r.Index]
		}
		return reads[r.Index]
	}
}
