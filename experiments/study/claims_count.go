package study

import (
	"fmt"
	"strings"
)

// ways are the outcomes in the order of CountClaims, those that say most about a claim first.
var ways = []struct {
	Outcome
	words string
}{
	{Agrees, "agree"}, {Differs, "differ"}, {CannotTell, "cannot be told"},
	{ComputedAgrees, "agree by computation alone"}, {ComputedDiffers, "differ by computation alone"}, {ComputedOpen, "cannot be told by computation alone"},
	{Irreproducible, "cannot be reproduced"}, {Reduced, "at reduced size"}, {Unmeasured, "not measured"},
}

// CountClaims says how many of the papers' claims have each outcome, such as "3 agree, 1 differs". A
// claim counts once, however often it was measured, by what says most. It is "" without a claim.
func CountClaims(claims []Claim) string {
	outcomes := map[string]map[Outcome]bool{}
	for _, c := range claims {
		if c.Outcome == Yardstick {
			continue
		}
		if outcomes[c.Paper] == nil {
			outcomes[c.Paper] = map[Outcome]bool{}
		}
		outcomes[c.Paper][c.Outcome] = true
	}
	count, mixed := map[Outcome]int{}, 0
	for _, had := range outcomes {
		if had[Agrees] && had[Differs] {
			mixed++
			continue
		}
		for _, w := range ways {
			if had[w.Outcome] {
				count[w.Outcome]++
				break
			}
		}
	}
	var words []string
	for i, w := range ways {
		if n := count[w.Outcome]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, w.words))
		}
		if i == 1 && mixed > 0 {
			words = append(words, fmt.Sprintf("%d agree by one measurement and differ by another", mixed))
		}
	}
	return strings.Join(words, ", ")
}
