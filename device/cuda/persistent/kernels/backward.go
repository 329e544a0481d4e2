package kernels

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Carried lists the values that a thread keeps from step to step: gradients of states, then those
// of peepholes.
func Carried(c *cell.Cell) []cell.Ref {
	var all []cell.Ref
	for s := range c.States {
		all = append(all, cell.Ref{Kind: cell.DNext, Index: s})
	}
	for k := range c.Peeps {
		all = append(all, cell.Ref{Kind: cell.DPeep, Index: k})
	}
	return all
}

// carriedGroups returns the arguments of a kernel that keeps carried values on chip.
func carriedGroups(t *launch.Target, op schedule.PersistentBackward) []codegen.Group {
	var p cell.Program // only its vectors count
	for _, r := range Carried(op.Cell) {
		p = append(p, cell.Instr{Op: cell.Copy, Out: r, A: r})
	}
	groups := t.Groups(append(p, op.Cell.Backward...), func(r cell.Ref) schedule.View { return codegen.Whole(&op.Sequence, &op.SequenceGrad, r) })
	groups = slices.DeleteFunc(groups, func(g codegen.Group) bool { return strings.HasPrefix(g.Name, "g_dprev") })
	return append(groups, keepGroup(t, &op.Sequence)...)
}

// backText spells the struct Cell of backward.cu, derived from the struct functions. ahead: it can
// prefetch a step's inputs to the L2 cache.
func backText(op schedule.PersistentBackward, groups []codegen.Group, weights driver.Element, functions string, ahead bool) string {
	c := op.Cell
	kept := Carried(c)
	reads, writes := c.Backward.Vectors()
	isKept := func(r cell.Ref) bool { return r.Kind == cell.DNext || r.Kind == cell.DPeep || r.Kind == cell.DPrev }
	reads, writes = slices.DeleteFunc(reads, isKept), slices.DeleteFunc(writes, isKept)
	early, rest, ready := cutBackward(c.Backward, isKept)
	more := ints.FromBool(!op.Keep.Empty()) // one more value that is ready: the flag of the step after
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("typedef %v W;\nstruct Cell : %s {", weights, functions)
	for _, f := range strings.Split(codegen.Params(groups), ", ")[1:] {
		p("  %s;", f)
	}
	p("  const W* weights;")
	p("  enum { hidden = %d, GATES = %d, STATES = %d, THROUGH = %d, INPUTS = %d, READY = %d, RESULTS = %d };", op.Hidden(), c.Recurrent, len(kept), c.Through, max(1, len(reads)+2*more), max(1, len(ready)+more), max(1, len(writes)))
	p("  __device__ void before(int n, int u, float* state) const {")
	for i, r := range kept {
		p("    state[%d] = widen(%s);", i, codegen.Place(r, "n"))
	}
	p("  }\n  __device__ void after(int n, int u, const float* state) const {")
	for i, r := range kept {
		p("    narrow(%s, state[%d]);", codegen.Place(r, "n"), i)
	}
	p("  }\n  __device__ void input(int t, int batch, int n, int u, float* x) const {")
	inputsBack(p, reads, more > 0)
	if ahead {
		p("  }\n  __device__ void ahead(int t, int batch, int n, int u) const {")
		for _, r := range reads {
			p("    prefetch(&%s);", codegen.Place(r, rowBack(r)))
		}
	}
	p("  }\n  __device__ void store(int t, int batch, int n, int u, const float* kept) const {")
	for i, w := range writes {
		p("    narrow(%s, kept[%d]);", codegen.Place(w, rowBack(w)), i)
	}
	p("  }\n  __device__ static void early(const float* x, float* ready) {")
	keptBack(p, reads, more > 0)
	b.WriteString(codegen.Statements(early, "    ", reads))
	for i, r := range ready {
		p("    ready[%d] = %v;", i, r)
	}
	if more > 0 {
		p("    ready[%d] = x[%d];", len(ready), len(reads)+1)
	}
	p("  }\n  __device__ static void rest(const float* ready, float* state, float* sent, float* kept) {")
	for i, r := range ready {
		p("    const float %v = ready[%d];", r, i)
	}
	for i, r := range kept {
		if more > 0 && r.Kind == cell.DNext {
			p("    float %v = ready[%d] != 0 ? state[%d] : 0;", r, len(ready), i)
			continue
		}
		p("    float %v = state[%d];", r, i)
	}
	b.WriteString(codegen.Statements(rest, "    ", slices.Concat(ready, kept)))
	resultsBack(p, c, writes, kept)
	p("  }\n};")
	return b.String()
}

// resultsBack spells what a step has computed: results, values to send, and states.
func resultsBack(p func(format string, args ...any), c *cell.Cell, writes, kept []cell.Ref) {
	for i, w := range writes {
		p("    kept[%d] = %v;", i, w)
	}
	kind := cell.DX
	if c.SplitGrad {
		kind = cell.DR
	}
	for g := range c.Recurrent {
		p("    sent[%d] = %v;", g, cell.Ref{Kind: kind, Index: g})
	}
	for i, r := range kept {
		switch before := (cell.Ref{Kind: cell.DPrev, Index: r.Index}); {
		case r.Kind == cell.DPeep:
			p("    state[%d] = %v;", i, r)
		case c.DirectPrev(r.Index):
			p("    state[%d] = %v;", i, before)
		case r.Index == c.Through: // the product follows
			p("    state[%d] = 0;", i)
		}
	}
}

// cutBackward divides a cell's gradient in two. early depends only on the forward pass; rest reads
// the values ready of it.
func cutBackward(p cell.Program, kept func(cell.Ref) bool) (early, rest cell.Program, ready []cell.Ref) {
	late := map[cell.Ref]bool{}
	waits := func(r cell.Ref) bool { return late[r] || kept(r) }
	for _, in := range once(p) {
		if in.Out.Kind == cell.Temp && !slices.ContainsFunc(in.Args(), waits) {
			early = append(early, in)
			continue
		}
		late[in.Out] = true
		rest = append(rest, in)
		for _, a := range in.Args() {
			if !waits(a) && !slices.Contains(ready, a) {
				ready = append(ready, a)
			}
		}
	}
	return early, rest, ready
}

// once renames temporary vectors so that each is written once.
func once(p cell.Program) cell.Program {
	names := map[cell.Ref]cell.Ref{}
	name := func(r cell.Ref) cell.Ref {
		if n, ok := names[r]; ok {
			return n
		}
		return r
	}
	var out cell.Program
	for i, in := range p {
		in.A, in.B = name(in.A), name(in.B)
		if in.Out.Kind == cell.Temp {
			names[in.Out] = cell.Ref{Kind: cell.Temp, Index: i}
			in.Out = names[in.Out]
		}
		out = append(out, in)
	}
	return out
}

// rowBack spells the row of a vector at step t, sequence n, in a backward pass.
func rowBack(r cell.Ref) string {
	switch r.Kind {
	case cell.Peep:
		return "0"
	case cell.DNext, cell.DPrev, cell.DPeep:
		return "n"
	case cell.Next:
		return "(t + 1) * batch + n"
	}
	return "t * batch + n"
}
