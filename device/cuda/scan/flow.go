package scan

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/codegen"
	"rnnbench/rnn/cell"
)

// A flow is a graph of one or more programs. What several of them compute is one value. Values are
// ordered so that each follows its operands.
type flow struct {
	values []value
	known  map[value]int
}

// A value is a vector that programs read (a leaf), or an operation on earlier values.
type value struct {
	leaf bool
	ref  cell.Ref // the leaf's vector
	op   cell.Op
	args [2]int

	number float32 // of Const
}

func newFlow() *flow { return &flow{known: map[value]int{}} }

func (f *flow) value(v value) int {
	if i, ok := f.known[v]; ok {
		return i
	}
	f.values = append(f.values, v)
	f.known[v] = len(f.values) - 1
	return len(f.values) - 1
}

// add adds the operations of p and returns the final value of each vector.
func (f *flow) add(p cell.Program) map[cell.Ref]int {
	now := map[cell.Ref]int{}
	for _, in := range p {
		v := value{op: in.Op, number: in.Value}
		for k, a := range in.Args() {
			i, ok := now[a]
			if !ok {
				i = f.value(value{leaf: true, ref: a})
			}
			v.args[k] = i
		}
		if in.Op == cell.Copy {
			now[in.Out] = v.args[0]
			continue
		}
		now[in.Out] = f.value(v)
	}
	return now
}

// operands returns the values that v is computed from.
func (f *flow) operands(v int) []int {
	if f.values[v].leaf {
		return nil
	}
	return f.values[v].args[:f.values[v].op.Operands()]
}

// after reports, per value, whether it depends on a leaf for which the function returns true.
func (f *flow) after(leaf func(cell.Ref) bool) []bool {
	out := make([]bool, len(f.values))
	for i, v := range f.values {
		out[i] = v.leaf && leaf(v.ref) || slices.ContainsFunc(f.operands(i), func(a int) bool { return out[a] })
	}
	return out
}

// behind reports, per value, whether it is needed to compute the targets, given values that are
// there already.
func (f *flow) behind(targets []int, there func(int) bool) []bool {
	need := make([]bool, len(f.values))
	for _, t := range targets {
		need[t] = true
	}
	for i := len(f.values) - 1; i >= 0; i-- {
		if need[i] && !there(i) {
			for _, a := range f.operands(i) {
				need[a] = true
			}
		}
	}
	return need
}

// frontier lists the early values from which late ones can be computed, as few as possible. A value
// is not listed if it can be computed again from listed and constant ones without an activation.
// Early targets count as needed by late ones.
func (f *flow) frontier(targets []int, late []bool, constant func(cell.Ref) bool) []int {
	listed := make([]bool, len(f.values))
	for _, t := range targets {
		listed[t] = !late[t]
	}
	for i, needed := range f.behind(targets, func(i int) bool { return !late[i] }) {
		if !needed || !late[i] {
			continue
		}
		for _, a := range f.operands(i) {
			listed[a] = listed[a] || !late[a]
		}
	}
	free := func(a int) bool { return listed[a] || f.values[a].leaf && constant(f.values[a].ref) }
	var out []int
	for i := len(f.values) - 1; i >= 0; i-- {
		if !listed[i] {
			continue
		}
		again := !f.values[i].leaf && !slow(f.values[i].op) && !slices.ContainsFunc(f.operands(i), func(a int) bool { return !free(a) })
		if again || f.values[i].leaf && constant(f.values[i].ref) {
			continue
		}
		out = append(out, i)
	}
	slices.Reverse(out)
	return out
}

func slow(op cell.Op) bool { return op == cell.Sigmoid || op == cell.Tanh }

// name returns the variable of a value in a kernel.
func (f *flow) name(v int) string {
	if f.values[v].leaf {
		return f.values[v].ref.String()
	}
	return fmt.Sprintf("v%d", v)
}

// text spells the computation of the targets from values that are in variables already. paired:
// independent activations are computed in pairs.
func (f *flow) text(indent string, targets []int, paired bool, there func(int) bool) string {
	var b strings.Builder
	var left []int
	for i, needed := range f.behind(targets, there) {
		if needed && !there(i) && !f.values[i].leaf {
			left = append(left, i)
		}
	}
	for len(left) > 0 {
		var gates, rest []int
		for _, i := range left {
			missing := func(a int) bool { return slices.Contains(gates, a) || slices.Contains(rest, a) }
			switch {
			case slices.ContainsFunc(f.operands(i), missing):
				rest = append(rest, i)
			case paired && slow(f.values[i].op):
				gates = append(gates, i)
			default:
				f.compute(&b, indent, i)
			}
		}
		for pair := range slices.Chunk(gates, 2) {
			if len(pair) == 1 {
				f.compute(&b, indent, pair[0])
				continue
			}
			f.activate(&b, indent, pair[0], pair[1])
		}
		left = rest
	}
	return b.String()
}

// compute spells the computation of a value.
func (f *flow) compute(b *strings.Builder, indent string, v int) {
	var args [2]string
	for k, a := range f.operands(v) {
		args[k] = f.name(a)
	}
	op := f.values[v].op
	spelled := codegen.Expression(op, args[0], args[1], f.values[v].number)
	if slow(op) {
		spelled = fmt.Sprintf("quick_%v(%s)", op, args[0])
	}
	fmt.Fprintf(b, "%sconst float %s = %s;\n", indent, f.name(v), spelled)
}

// activate spells the computation of two activations.
func (f *flow) activate(b *strings.Builder, indent string, v, w int) {
	a, c := f.values[v], f.values[w]
	fmt.Fprintf(b, "%sfloat %s = %s, %s = %s;\n", indent, f.name(v), f.name(a.args[0]), f.name(w), f.name(c.args[0]))
	fmt.Fprintf(b, "%squick_pair<%v, %v>(%s, %s);\n", indent, a.op == cell.Tanh, c.op == cell.Tanh, f.name(v), f.name(w))
}
