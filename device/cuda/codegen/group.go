package codegen

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Group is a matrix argument of a generated kernel: one or more vectors side by side.
type Group struct {
	Name    string
	Element driver.Element
	View    schedule.View // of all its vectors
	Written bool
}

// Params declares groups as parameters: for each, a pointer and the elements from row to row.
func Params(groups []Group) string {
	var b strings.Builder
	for _, g := range groups {
		qualifier := "const "
		if g.Written {
			qualifier = ""
		}
		fmt.Fprintf(&b, ", %s%v* %s, int ld_%s", qualifier, g.Element, g.Name, g.Name)
	}
	return b.String()
}

// GroupName names the argument that holds a vector. Each state has a group of its own; the vectors
// of any other role share one.
func GroupName(r cell.Ref) string {
	switch r.Kind {
	case cell.Prev, cell.Next, cell.DNext, cell.DPrev:
		return fmt.Sprintf("g_%v", r)
	}
	return fmt.Sprintf("g_%v", r.Kind)
}

// Offset returns the place of a vector within a row of its group, counted in vectors.
func Offset(r cell.Ref) int {
	switch r.Kind {
	case cell.Prev, cell.Next, cell.DNext, cell.DPrev:
		return 0
	}
	return r.Index
}

// ElementOf says how a vector is stored.
func ElementOf(groups []Group, r cell.Ref) driver.Element {
	return groups[slices.IndexFunc(groups, func(g Group) bool { return g.Name == GroupName(r) })].Element
}

// WeightParams declares the weights of so many gates as parameters.
func WeightParams(gates int) string {
	return List(make([]int, gates), func(g, _ int) string { return fmt.Sprintf(", const W* weights%d", g) })
}

// Members spells the initial values of a Cell's members.
func Members(groups []Group, gates int) string {
	return List(groups, func(_ int, g Group) string { return fmt.Sprintf(", %s, ld_%s", g.Name, g.Name) }) +
		List(make([]int, gates), func(g, _ int) string { return fmt.Sprintf(", weights%d", g) })
}

// Whole returns the view of vector r over all steps. Prev and Next of a state are the same matrix,
// whose first row belongs to step 0.
func Whole(s *schedule.Sequence, g *schedule.SequenceGrad, r cell.Ref) schedule.View {
	switch r.Kind {
	case cell.X:
		return s.X
	case cell.BX:
		return s.BX
	case cell.BR:
		return s.BR
	case cell.Peep:
		return s.Peep
	case cell.Saved:
		return s.Saved
	case cell.Prev, cell.Next:
		return s.State[r.Index]
	case cell.DOut:
		return g.DOut
	case cell.DX:
		return g.DX
	case cell.DR:
		return g.DR
	case cell.DPeep:
		return g.DPeep
	case cell.DNext, cell.DPrev:
		return g.Carry[r.Index]
	}
	panic(fmt.Sprintf("cuda: a sequence has no %v", r))
}
