package progress

import (
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/tuner"
)

// spend counts the expected time of what is finished. Techniques of a point finish together, so rounds count.
func (g *Progress) spend(e tuner.Event) {
	key, share := entryKey(e.Point, e.Label), 0.0
	switch {
	case e.Phase == tuner.Done:
		share = 1
	case e.Phase == tuner.Measuring && g.rounds > 0:
		share = min(1, float64(e.Round)/g.rounds)
	default:
		return
	}
	now := share * g.expected[key]
	g.spent += now - g.begun[key]
	if g.begun[key] = now; e.Phase == tuner.Done {
		delete(g.begun, key)
	}
}

// eta says in words how long the rest takes; "": unknown.
func (g *Progress) eta() string {
	left, ok := g.left()
	switch {
	case !ok:
		return ""
	case g.points == 0 && g.spent < 0.02*g.all:
		return "  about " + quantity.Duration(left)
	}
	return "  ETA " + quantity.Duration(left)
}

// left is the remaining time in seconds. It extrapolates from the estimates of finished records and rounds
// or, in a tune, from the number of finished points. It is false if unknown, as when the estimate is over and
// next to nothing is finished.
func (g *Progress) left() (float64, bool) {
	elapsed := time.Since(g.start).Seconds()
	switch {
	case g.points > 0:
		return elapsed / float64(max(1, g.at)) * float64(g.points-g.at), g.at > 0 && g.at < g.points
	case g.all <= 0:
		return 0, false
	case g.spent < 0.02*g.all:
		return g.all - elapsed, elapsed < g.all
	}
	return elapsed / g.spent * max(0, g.all-g.spent), true
}
