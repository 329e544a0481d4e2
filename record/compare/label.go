package compare

import (
	"fmt"

	"rnnbench/record"
)

// KeepApart gives all runs of a side one label, different from those of other sides. side[i] is the
// number of the side of sets[i].
func KeepApart(sets []record.Set, side []int) {
	labels := map[int]string{}
	taken := map[string]bool{}
	for i := range sets {
		label, seen := labels[side[i]]
		if !seen {
			label = sets[i].Label
			for n := 2; taken[label]; n++ {
				label = fmt.Sprintf("%s #%d", sets[i].Label, n)
			}
			labels[side[i]], taken[label] = label, true
		}
		sets[i].Label = label
	}
}

// OnBothSides returns a run that is on two sides; "": there is none.
func OnBothSides(sets []record.Set, side []int) string {
	of := map[string]int{}
	for i, s := range sets {
		first, seen := of[s.Manifest.Run]
		if seen && first != side[i] && s.Dir != "" {
			return s.Manifest.Run
		}
		of[s.Manifest.Run] = side[i]
	}
	return ""
}
