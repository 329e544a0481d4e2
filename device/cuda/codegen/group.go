package codegen

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A Group is an argument of a generated kernel: a matrix of one or more vectors
// side by side.
type Group struct {
	Name    string
	Element driver.Element
	View    schedule.View // of all its vectors
	Written bool
}

// Params declares groups as parameters: a pointer and the distance of rows.
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

// GroupName is the argument that holds a vector: states have one each, other
// roles one for all.
func GroupName(r cell.Ref) string {
	switch r.Kind {
	case cell.Prev, cell.Next, cell.DNext, cell.DPrev:
		return fmt.Sprintf("g_%v", r)
	}
	return fmt.Sprintf("g_%v", r.Kind)
}

// Offset is where a vector begins within a row of its group.
func Offset(r cell.Ref) int {
	switch r.Kind {
	case cell.Prev, cell.Next, cell.DNext, cell.DPrev:
		return 0
	}
	return r.Index
}

// ElementOf is how a vector is stored.
func ElementOf(groups []Group, r cell.Ref) driver.Element {
	return groups[slices.IndexFunc(groups, func(g Group) bool { return g.Name == GroupName(r) })].Element
}

// WeightParams declares the weights of so many gates as parameters.
func WeightParams(gates int) string {
	return List(make([]int, gates), func(g, _ int) string { return fmt.Sprintf(", const W* weights%d", g) })
}

// Members are the values of a Cell's.
func Members(groups []Group, gates int) string {
	return List(groups, func(_ int, g Group) string { return fmt.Sprintf(", %s, ld_%s", g.Name, g.Name) }) +
		List(make([]int, gates), func(g, _ int) string { return fmt.Sprintf(", weights%d", g) })
}

// Whole views the vector that r names over all steps. Prev and Next of a state
// are one matrix, whose first row belongs to step 0.
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
