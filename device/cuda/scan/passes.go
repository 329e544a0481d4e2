package scan

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
)

// What a block does with a tile: first all that needs no state, and later its steps from a state.

// early spells the computation of all that needs no state, and the composition of the steps.
func (s *writer) early(b *strings.Builder) {
	loads, keep := s.arrivals()
	d := body{wait: draw, read: map[string]string{}, write: map[string]string{}, outputs: s.written(false), there: func(v int) bool { return s.late[v] }}
	d.stages, _ = s.stages(false)
	for r, at := range loads {
		d.read[r.String()] = s.place(at, "at", whoText(s))
	}
	switch {
	case s.members > 0:
		d.wait, d.young = inputsText(s), "[0]"
	case s.units > 0:
		d.wait = drawEngine
	}
	if s.sole() {
		d.wait = waitPart
	}
	if s.hold == 0 {
		d.keep = s.kept()
	}
	for v, at := range keep {
		if !s.flow.values[v].leaf {
			d.write[s.flow.name(v)] = s.place(at, "at", whoText(s))
		}
	}
	d.targets = append(slices.Clone(s.kept()), s.goals(false)...)
	var composed []int
	for _, k := range s.cell.Recurrence.Carried {
		composed = append(composed, s.compose[cell.Ref{Kind: s.before(), Index: k}], s.compose[cell.Ref{Kind: cell.Factor, Index: k}])
	}
	for v, is := range s.flow.behind(composed, func(int) bool { return false }) {
		if is && !s.late[v] {
			d.targets = append(d.targets, v)
		}
	}
	var text strings.Builder
	text.WriteString(s.flow.text(indent, d.targets, s.busy(), d.there))
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%sconst float %v%d = row.of[%d * V + v].add, %v%d = row.of[%d * V + v].factor;\n", indent, s.before(), i, k, cell.Factor, i, k)
	}
	text.WriteString(s.flow.text(indent, composed, s.busy(), func(v int) bool { return !s.late[v] }))
	for k := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%srow.of[%d * V + v].add = %s, row.of[%d * V + v].factor = %s;\n", indent, k, s.flow.name(composed[2*k]), k, s.flow.name(composed[2*k+1]))
	}
	d.text = text.String()
	s.loop(b, d)
}

// draw draws the block's next tile once this tile's inputs have come. So blocks that begin first do
// not take tiles that other blocks could begin with.
const draw = "      wait_async<0>();\n      if (threadIdx.x == 0) ticket = g.draw(g.all());\n"

// drawEngine is the same if the copy engine copies tiles.
const drawEngine = "      while (!bar_try(full, turn)) pause();\n      if (threadIdx.x == 0) ticket = g.draw(g.all());\n"

// take moves a tile that kept its place in shared memory to registers.
func (s *writer) take(b *strings.Builder) {
	_, keep, _ := s.areas()
	d := body{read: map[string]string{}, keep: s.kept(), young: "[0]", targets: s.kept(), there: func(v int) bool { return slices.Contains(s.kept(), v) }}
	for v, at := range keep {
		d.read[s.flow.name(v)] = s.place(at, "at", whoText(s))
	}
	s.loop(b, d)
}

// steps spells the steps from the state that was found, and the writing of the last state.
func (s *writer) steps(b *strings.Builder) {
	d := body{kept: s.kept(), outputs: s.written(true), targets: s.goals(true), there: func(v int) bool {
		return slices.Contains(s.kept(), v) || s.flow.values[v].leaf && s.carried(s.flow.values[v].ref)
	}}
	d.stages, _ = s.stages(true)
	if s.members > 0 {
		d.wait, d.old = waitText(s), "[BEHIND - HOLD]"
	}
	d.wait += untakenText(s)
	only := ""
	if s.over > 0 {
		only = " && g.x() < UNITS"
	}
	var text, after strings.Builder
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%sconst float %v%d = state[%d * V + v];\n", indent, s.before(), i, k)
	}
	text.WriteString(s.flow.text(indent, d.targets, s.busy(), d.there))
	for k, i := range s.cell.Recurrence.Carried {
		fmt.Fprintf(&text, "%sstate[%d * V + v] = %s;\n", indent, k, s.flow.name(s.results[cell.Ref{Kind: s.after(), Index: i}]))
		if s.backward {
			g := argument(cell.Ref{Kind: cell.DNext, Index: i})
			fmt.Fprintf(&after, "          if (i < t.steps && t.first + i == steps - 1%s) store<V>(%s + (long long)t.n * ld_%s + t.u, state + %d * V);\n", only, g, g, k)
		}
	}
	d.text, d.after = text.String(), after.String()
	s.loop(b, d)
}

// whoText spells the number of the thread whose data a thread reads: with idle threads, at most the
// last one that is not idle.
func whoText(s *writer) string {
	if walked(&s.geometry) {
		return "g.who()"
	}
	return "threadIdx.x"
}
