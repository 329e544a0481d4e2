package scan

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// If sequences begin anew at some steps (resets), a scan multiplies the state before each step by a
// column of ones and zeros: see schedule.Cell. The column has one value per step and sequence, for
// all units, which threads read at each step.

// The column's values for a step and for the next step.
var keepNow, keepNext = cell.Ref{Kind: cell.Keep, Index: 0}, cell.Ref{Kind: cell.Keep, Index: 1}

// withResets returns p, a program of a step or one that composes steps, with states multiplied by the
// column.
func withResets(p cell.Program, backward bool) cell.Program {
	var head, out cell.Program
	now := map[cell.Ref]cell.Ref{}
	written := map[cell.Ref]bool{}
	temps := p.Temps()
	read := func(r cell.Ref) cell.Ref {
		keep := keepNow
		switch {
		case written[r]:
			return r
		case r.Kind == cell.Prev, r.Kind == cell.R, r.Kind == cell.Factor && !backward:
		case r.Kind == cell.DNext, r.Kind == cell.Factor:
			keep = keepNext
		default:
			return r
		}
		if _, ok := now[r]; !ok {
			now[r] = cell.Ref{Kind: cell.Temp, Index: temps + len(now)}
			head = append(head, cell.Instr{Op: cell.Mul, Out: now[r], A: r, B: keep})
		}
		return now[r]
	}
	for _, in := range p {
		if in.Op.Operands() > 0 {
			in.A = read(in.A)
		}
		if in.Op.Operands() > 1 {
			in.B = read(in.B)
		}
		written[in.Out] = true
		out = append(out, in)
	}
	return slices.Concat(head, out)
}

// programs returns the programs of a step and of composing steps, with resets if there are any.
func programs(s *schedule.Sequence, step, compose cell.Program, backward bool) (cell.Program, cell.Program) {
	if s.Keep.Empty() {
		return step, compose
	}
	return withResets(step, backward), withResets(compose, backward)
}

// keepParams declares the column as a parameter; keepArguments returns its address.
func (s *operands) keepParams() string {
	if s.Keep.Empty() {
		return ""
	}
	return ", const float* keep_column, int ld_keep"
}

func (s *operands) keepArguments(t *launch.Target) []uint64 {
	if s.Keep.Empty() {
		return nil
	}
	return t.Arguments([]codegen.Group{{View: s.Keep}})
}

// keepText spells the reads of the column that a step needs for the needed values.
func (s *writer) keepText(b *strings.Builder, needed []bool) {
	for i, v := range s.flow.values {
		if !needed[i] || !v.leaf || v.ref.Kind != cell.Keep {
			continue
		}
		row := "t.first + i"
		if s.backward {
			row = "steps - 1 - (t.first + i)"
		}
		fmt.Fprintf(b, "          const float %v = i < t.steps ? keep_column[((long long)(%s + %d) * batch + t.n) * ld_keep] : 1;\n", v.ref, row, v.ref.Index)
	}
}
