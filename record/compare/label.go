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
