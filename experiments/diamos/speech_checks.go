package diamos

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments/pick"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// likeOthers is the steps over which v checked what other techniques of its point were checked over, too: those of
// the shorter run, if there was one besides that of all steps.
func likeOthers(v *record.Verify) int {
	if v.Shorter > 0 {
		return v.Shorter
	}
	return v.Steps
}

// sameSteps says at how many networks all techniques were checked over the same steps; "": no check is recorded.
func sameSteps(k kind, recs []record.Record) string {
	var steps []int // of each network at which they are the same
	others := 0
	for _, p := range pick.Points(recs) {
		var of []int
		for i := range recs {
			if r := &recs[i]; r.Point == p && r.Status == record.OK && r.Verify != nil {
				of = append(of, likeOthers(r.Verify))
			}
		}
		switch {
		case len(of) < 2:
		case slices.Min(of) == slices.Max(of):
			steps = append(steps, of[0])
		default:
			others++
		}
	}
	switch all := len(steps) + others; {
	case all == 0:
		return ""
	case others > 0:
		return fmt.Sprintf("Techniques were checked over the same steps at %d of %s, and over different ones at %d.", len(steps), quantity.Plural(all, k.thing), others)
	}
	if len(steps) == 1 {
		return fmt.Sprintf("At the one %s, all techniques were checked over the same steps: %d.", k.thing, steps[0])
	}
	return fmt.Sprintf("At each of %s, all techniques were checked over the same steps: %s.", quantity.Plural(len(steps), k.thing), spanOf(steps, ""))
}

// spanOf spells the least and the most of list. none stands for zeros.
func spanOf(list []int, none string) string {
	switch least, most := slices.Min(list), slices.Max(list); {
	case most == 0:
		return none
	case least < most:
		return fmt.Sprintf("%d to %d", least, most)
	default:
		return fmt.Sprint(most)
	}
}

// stepsChecked says over how many steps the states and the gradients of each technique were checked; "" if none
// was.
func stepsChecked(recs []record.Record) string {
	type depth struct{ states, gradients []int }
	of := map[string]*depth{}
	every, also, normed := true, 0, false
	for i := range recs {
		x := &recs[i]
		if x.Status != record.OK || x.Verify == nil {
			continue
		}
		d := of[x.Impl.Label]
		if d == nil {
			d = &depth{}
			of[x.Impl.Label] = d
		}
		v := x.Verify
		states := v.Steps
		if v.Method == record.VerifyShorter {
			states = v.States
		}
		d.states, d.gradients = append(d.states, states), append(d.gradients, v.Steps)
		every, normed = every && states == x.Point.Steps, normed || whole(x.Point)
		if v.Shorter > 0 {
			also++
		}
	}
	none := "not recorded"
	if normed {
		none = "none"
	}
	var states, gradients []string
	for _, label := range pick.Labels(recs) {
		if d := of[label]; d != nil {
			states, gradients = append(states, spanOf(d.states, none)+" by "+label), append(gradients, spanOf(d.gradients, none)+" by "+label)
		}
	}
	if states == nil {
		return ""
	}
	s := "Steps of the timed run at which states were checked: " + strings.Join(states, "; ")
	if every {
		s = "The states of every technique were checked at every step of the timed run"
	}
	s += ". Steps over which gradients were checked: " + strings.Join(gradients, "; ") + "."
	if also > 0 {
		s += fmt.Sprintf(" In %s with more steps, gradients were checked over the fewer steps too, as those of the others.", quantity.Plural(also, "record"))
	}
	return s + " A check over few steps may miss what a check over all would find."
}
