package pointwise

import (
	"fmt"
	"slices"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A keep is a column of ones and zeros, one per sequence. A cell reads the vectors refs as 0 in
// rows where the column is 0: sequences that begin anew. See schedule.Cell.
type keep struct {
	name string
	view schedule.View
	refs []cell.Ref
}

// group returns the name of the column's kernel argument.
func (k keep) group() string { return "g_" + k.name }

// A StepCell is the cell of one step, or its gradient.
type StepCell interface {
	Vector(cell.Ref) schedule.View
	KeepOf(cell.Ref) schedule.View
}

// Step runs the program of op, a cell or its gradient, with its resets.
func Step(t *launch.Target, name string, p cell.Program, op StepCell, state schedule.View) launch.Command {
	var keeps []keep
	reads, _ := p.Vectors()
	for _, r := range reads {
		v := op.KeepOf(r)
		if v.Empty() {
			continue
		}
		i := slices.IndexFunc(keeps, func(k keep) bool { return k.view == v })
		if i < 0 {
			i = len(keeps)
			keeps = append(keeps, keep{name: fmt.Sprintf("keep%d", i), view: v})
		}
		keeps[i].refs = append(keeps[i].refs, r)
	}
	if len(keeps) > 0 {
		name += "_resets"
	}
	return keepingCell(t, name, p, op.Vector, state, keeps)
}

// keepGroups returns the kernel arguments of the columns.
func keepGroups(t *launch.Target, keeps []keep) []codegen.Group {
	var groups []codegen.Group
	for _, k := range keeps {
		groups = append(groups, codegen.Group{Name: k.group(), Element: t.Element(k.view), View: k.view})
	}
	return groups
}

// keepWords returns words that distinguish the kernel's text from others: see launch.Target.Source.
func keepWords(keeps []keep) []any {
	var words []any
	for _, k := range keeps {
		words = append(words, " ", k.name, fmt.Sprint(k.refs))
	}
	return words
}

// keptText spells the value of a vector, or 0 where its column is 0.
func keptText(keeps []keep, r cell.Ref, value string) string {
	for _, k := range keeps {
		if slices.Contains(k.refs, r) {
			return fmt.Sprintf("%s ? %s : 0", k.name, value)
		}
	}
	return value
}
