package auto

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/record"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// energy marks the grounds of choices by entries tuned for energy.
const energy = "energy "

// Tell summarises what auto chose at several points. It returns notes, and warnings that tuning would
// remove.
func Tell(specs []grid.Spec) (notes, warnings []string) {
	count := map[string]int{}
	by := map[string]map[string]int{} // points by ground and technique
	example := map[string]string{}
	stale := ""
	var strange []string // messages about entries that cannot be used
	for _, s := range specs {
		c := s.Choice
		if c == nil {
			continue
		}
		why := slices.DeleteFunc(strings.Split(c.Why, "; "), func(part string) bool {
			if !strings.Contains(part, unfollowed) {
				return false
			}
			if !slices.Contains(strange, part) {
				strange = append(strange, part)
			}
			return true
		})
		match := c.Match
		if c.Objective == record.OfEnergy && (match == wisdom.Exact || match == wisdom.Nearest) {
			match = energy + match
		}
		count[match]++
		if by[c.Match] == nil {
			by[c.Match], example[c.Match] = map[string]int{}, strings.Join(why, "; ")
		}
		by[c.Match][s.Name]++
		if _, old, ok := strings.Cut(c.Why, staleMark); ok {
			stale, _, _ = strings.Cut(old, "; ")
		}
	}
	for _, kind := range []struct{ match, text string }{
		{wisdom.Exact, "auto: tuned entries for %s"}, {wisdom.Nearest, "auto: nearest tuned entries for %s"},
		{energy + wisdom.Exact, "auto: entries tuned for energy for %s"}, {energy + wisdom.Nearest, "auto: nearest entries tuned for energy for %s"},
		{Raced, "auto: short races at %s"},
	} {
		if n := count[kind.match]; n > 0 {
			notes = append(notes, fmt.Sprintf(kind.text, points(n)))
		}
	}
	if count[Predicted] > 0 {
		notes = append(notes, fmt.Sprintf("auto uses %s: %s", techniques(by[Predicted]), example[Predicted]))
	}
	const remedy = "; rnnbench tune finds the fastest technique there"
	if count[Default] > 0 {
		warnings = append(warnings, fmt.Sprintf("auto uses %s: %s%s", techniques(by[Default]), example[Default], remedy))
	}
	if len(strange) > 0 {
		more := ""
		if n := len(strange) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		warnings = append(warnings, strange[0]+more+remedy)
	}
	if stale != "" {
		warnings = append(warnings, fmt.Sprintf("some tuned entries are from other versions (%s); rnnbench tune updates them", stale))
	}
	return notes, warnings
}

// techniques says at how many points each technique was chosen.
func techniques(count map[string]int) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		all = append(all, name+" at "+points(count[name]))
	}
	return strings.Join(all, ", ")
}

func points(n int) string {
	if n == 1 {
		return "1 point"
	}
	return fmt.Sprintf("%d points", n)
}
