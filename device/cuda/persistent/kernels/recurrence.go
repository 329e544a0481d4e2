package kernels

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Recurrence is a cell's program divided in two, for kernels in which a thread has one gate's
// product. With its gate alone, a thread adds the product, input and biases, and applies the
// function of that sum. The rest needs all gates. In the rest, R g stands for the result of gate g.
type Recurrence struct {
	op    *schedule.Sequence
	gates []gate // those with a recurrent product
	rest  cell.Program
	saved int // number of values kept for a backward pass
}

// A gate is the part of a program that needs only one gate's product.
type gate struct {
	terms []cell.Ref // terms added to the product
	early bool       // op is applied to the sum
	op    cell.Op
}

func (g gate) owns(kind cell.Kind) bool {
	return slices.ContainsFunc(g.terms, func(r cell.Ref) bool { return r.Kind == kind })
}

// NewRecurrence divides p, a step of op.
func NewRecurrence(op *schedule.Sequence, p cell.Program) Recurrence {
	r := Recurrence{op: op, rest: slices.Clone(p)}
	for g := range op.Cell.Recurrent {
		r.gates = append(r.gates, r.cut(g))
	}
	r.rest = live(r.rest)
	if op.Train {
		r.saved = op.Cell.Saved
	}
	return r
}

// cut moves the part that gate g can do alone from the rest to the gate.
func (r *Recurrence) cut(g int) gate {
	product := cell.Ref{Kind: cell.R, Index: g}
	sums := map[cell.Ref][]cell.Ref{} // terms of each sum that belongs to one gate
	for _, k := range []cell.Kind{cell.X, cell.R, cell.BX, cell.BR} {
		ref := cell.Ref{Kind: k, Index: g}
		sums[ref] = []cell.Ref{ref}
	}
	var out gate
	top := -1
	for i, in := range r.rest {
		a, b := sums[in.A], sums[in.B]
		delete(sums, in.Out)
		if in.Op != cell.Add || a == nil || b == nil {
			continue
		}
		sums[in.Out] = slices.Concat(a, b)
		if slices.Contains(sums[in.Out], product) {
			top, out.terms = i, sums[in.Out]
		}
	}
	out.terms = slices.DeleteFunc(slices.Clone(out.terms), func(t cell.Ref) bool { return t == product })
	if top < 0 {
		return out
	}
	sum := r.rest[top].Out
	var uses []int
	for i := top + 1; i < len(r.rest); i++ {
		if slices.Contains(r.rest[i].Args(), sum) {
			uses = append(uses, i)
		}
		if r.rest[i].Out == sum {
			break
		}
	}
	at := top
	if len(uses) == 1 && sum.Kind == cell.Temp {
		switch op := r.rest[uses[0]].Op; op {
		case cell.Sigmoid, cell.Tanh, cell.ReLU:
			at, out.early, out.op = uses[0], true, op
		}
	}
	r.rest[at] = cell.Instr{Op: cell.Copy, Out: r.rest[at].Out, A: product}
	return out
}

// live returns p without instructions whose results nothing reads.
func live(p cell.Program) cell.Program {
	needed := map[cell.Ref]bool{}
	var out cell.Program
	for _, in := range slices.Backward(p) {
		if in.Out.Kind == cell.Temp && !needed[in.Out] {
			continue
		}
		delete(needed, in.Out)
		for _, a := range in.Args() {
			needed[a] = true
		}
		out = append(out, in)
	}
	slices.Reverse(out)
	return out
}

// reads lists the vectors of these kinds that the rest reads.
func (r *Recurrence) reads(kinds ...cell.Kind) []cell.Ref {
	reads, _ := r.rest.Vectors()
	return slices.DeleteFunc(reads, func(ref cell.Ref) bool { return !slices.Contains(kinds, ref.Kind) })
}

// Inputs returns the number of a unit's inputs per step: one per gate, those that the rest reads,
// and resets if any.
func (r *Recurrence) Inputs() int {
	return len(r.gates) + len(r.Free()) + ints.FromBool(r.resets())
}

// Free lists the inputs that the rest reads.
func (r *Recurrence) Free() []cell.Ref { return r.reads(cell.X) }

// Owns reports whether input g belongs to the sum of gate g alone.
func (r *Recurrence) Owns(g int) bool { return g < len(r.gates) && r.gates[g].owns(cell.X) }

// slots returns the number of gates, rounded up to a power of two.
func (r *Recurrence) slots() int { return ints.PowerOfTwo(len(r.gates)) }

// choose spells an expression that depends on gate g; last is the most frequent value.
func (r *Recurrence) choose(value func(g int, gate gate) string, last string) string {
	var b strings.Builder
	for g, gate := range r.gates {
		if v := value(g, gate); v != last {
			fmt.Fprintf(&b, "g == %d ? %s : ", g, v)
		}
	}
	return b.String() + last
}

// early spells the functions of the gates.
func (r *Recurrence) early() string {
	kinds := map[cell.Op]bool{}
	raw := false
	for _, g := range r.gates {
		kinds[g.op] = g.early || kinds[g.op]
		raw = raw || !g.early
	}
	if kinds[cell.ReLU] {
		return r.choose(func(_ int, g gate) string {
			if !g.early {
				return "z"
			}
			return codegen.Expression(g.op, "z", "", 0)
		}, map[bool]string{true: "relu(z)", false: "z"}[!raw && !kinds[cell.Sigmoid] && !kinds[cell.Tanh]])
	}
	value := "z"
	switch {
	case kinds[cell.Sigmoid] && kinds[cell.Tanh]:
		value = "squash(z, " + r.choose(func(_ int, g gate) string { return fmt.Sprint(g.early && g.op == cell.Tanh) }, "false") + ")"
	case kinds[cell.Sigmoid]:
		value = "sigmoid(z)"
	case kinds[cell.Tanh]:
		value = "tanhf(z)"
	}
	if raw && value != "z" {
		return "(" + r.choose(func(_ int, g gate) string { return fmt.Sprint(g.early) }, "false") + ") ? " + value + " : z"
	}
	return value
}

// text spells the struct Cell of recurrence.cu, derived from the struct functions.
func (r *Recurrence) text(groups []codegen.Group, weights driver.Element, functions string) string {
	c := r.op.Cell
	free, constants := r.Free(), r.reads(cell.BX, cell.BR, cell.Peep)
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("typedef %v W;\nstruct Cell : %s {", weights, functions)
	for _, f := range strings.Split(codegen.Params(groups), ", ")[1:] {
		p("  %s;", f)
	}
	for g := range r.gates {
		p("  const W* weights%d;", g)
	}
	p("  enum { hidden = %d, GATES = %d, SLOTS = %d, STATES = %d, THROUGH = %d, FREE = %d, CONSTANTS = %d, SAVED = %d };",
		r.op.Hidden(), len(r.gates), r.slots(), len(c.States)+r.more(), c.Through, len(free)+ints.FromBool(r.resets()), len(constants), r.saved)
	p("  __device__ const W* weights(int g) const { return %s; }",
		r.choose(func(g int, _ gate) string { return fmt.Sprintf("weights%d", g) }, "weights0"))
	p("  __device__ static bool owns(int g) { return %s; }",
		r.choose(func(_ int, g gate) string { return fmt.Sprint(g.owns(cell.X)) }, "false"))
	x := codegen.GroupName(cell.Ref{Kind: cell.X})
	p("  typedef %v Input;", codegen.ElementOf(groups, cell.Ref{Kind: cell.X}))
	p("  __device__ static long long at(int g) { return (long long)g * hidden; }")
	p("  __device__ const Input* input(int g, int n, int u) const { return %s + (long long)n * ld_%s + at(g) + u; }", x, x)
	p("  __device__ long long stride(int batch) const { return (long long)batch * ld_%s; }", x)
	r.flags(p)
	p("  __device__ static int free(int i) { return %s; }", codegen.List(free, func(i int, f cell.Ref) string { return fmt.Sprintf("i == %d ? %d : ", i, f.Index) })+r.lastInput())
	p("  __device__ float bias(int g, int u) const { return %s; }", r.choose(func(_ int, g gate) string {
		sum := "0"
		for _, t := range g.terms {
			if t.Kind != cell.X {
				sum += " + widen(" + codegen.Place(t, "0") + ")"
			}
		}
		return sum
	}, "0"))
	p("  __device__ void constants(int u, float* k) const {%s }",
		codegen.List(constants, func(i int, k cell.Ref) string { return fmt.Sprintf(" k[%d] = widen(%s);", i, codegen.Place(k, "0")) }))
	p("  __device__ void before(int n, int u, float* state) const {")
	for s := range c.States {
		p("    state[%d] = widen(%s);", s, codegen.Place(cell.Ref{Kind: cell.Prev, Index: s}, "n"))
	}
	r.begin(p)
	p("  }\n  __device__ static float early(int g, float z) { return %s; }", r.early())
	p("  __device__ static void rest(const float* gate, const float* input, const float* k, float* state, float* saved) {")
	var known []cell.Ref
	take := func(refs []cell.Ref, from func(i int, ref cell.Ref) string) {
		for i, ref := range refs {
			p("    const float %v = %s;", ref, from(i, ref))
		}
		known = append(known, refs...)
	}
	take(r.reads(cell.R), func(_ int, ref cell.Ref) string { return fmt.Sprintf("gate[%d]", ref.Index) })
	take(free, func(i int, _ cell.Ref) string { return fmt.Sprintf("input[%d]", i) })
	take(constants, func(i int, _ cell.Ref) string { return fmt.Sprintf("k[%d]", i) })
	take(r.reads(cell.Prev), func(_ int, ref cell.Ref) string { return r.prior(ref.Index) })
	b.WriteString(codegen.Statements(r.rest, "    ", known))
	_, writes := r.rest.Vectors()
	for _, w := range writes {
		p("    %s = %v;", r.keeper(w), w)
	}
	r.end(p, len(free))
	r.results(p, groups, writes)
	p("  }\n};")
	return b.String()
}

// results spells where each result of the rest goes. p prints a line.
func (r *Recurrence) results(p func(format string, args ...any), groups []codegen.Group, writes []cell.Ref) {
	p("  }\n  enum { RESULTS = %d };", len(writes))
	spell := func(value func(w cell.Ref) string) string {
		last := len(writes) - 1
		return codegen.List(writes[:last], func(i int, w cell.Ref) string { return fmt.Sprintf("i == %d ? %s : ", i, value(w)) }) + value(writes[last])
	}
	p("  __device__ static float result(int i, const float* state, const float* saved) { return %s; }", spell(func(w cell.Ref) string {
		return r.keeper(w)
	}))
	row := func(w cell.Ref) string {
		if w.Kind == cell.Saved {
			return "n"
		}
		return "batch + n"
	}
	at := func(w cell.Ref) string { return "(char*)&" + codegen.Place(w, row(w)) }
	p("  __device__ char* place(int i, int batch, int n, int u) const { return %s; }", spell(at))
	p("  __device__ long long apart(int i, int batch) const { return (long long)batch * (%s); }", spell(func(w cell.Ref) string {
		return fmt.Sprintf("ld_%s * %d", codegen.GroupName(w), codegen.ElementOf(groups, w).Bytes())
	}))
	p("  __device__ static void put(int i, char* to, float v) {")
	for _, e := range []driver.Element{driver.Single, driver.Brain, driver.Half} {
		if slices.ContainsFunc(writes, func(w cell.Ref) bool { return codegen.ElementOf(groups, w) == e }) {
			p("    if (%s) narrow(*(%v*)to, v);", spell(func(w cell.Ref) string { return fmt.Sprint(codegen.ElementOf(groups, w) == e) }), e)
		}
	}
}

// keeper spells the variable that holds a result.
func (r *Recurrence) keeper(w cell.Ref) string {
	switch {
	case w.Kind == cell.Saved:
		return fmt.Sprintf("saved[%d]", w.Index)
	case r.resets() && w.Index == r.op.Cell.Through:
		return r.shown()
	}
	return fmt.Sprintf("state[%d]", w.Index)
}
