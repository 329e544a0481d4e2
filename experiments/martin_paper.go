package experiments

import (
	"fmt"
	"slices"

	"rnnbench/plots"
)

// paperRates draws the paper's rates into its figure: a dotted line for each length that is drawn,
// at the minibatches that were measured.
func paperRates(ch *plots.Chart, lengths []int, on Target) {
	drawn := func(label string, rates []float64) plots.Series {
		s := plots.Series{Label: "paper, " + label, Like: label, Reference: true, Unlisted: true}
		for i, r := range rates {
			if x := float64(int(1) << i); slices.Contains(ch.X.Places, x) {
				s.Points = append(s.Points, plots.Point{X: x, Y: 1000 * r})
			}
		}
		return s
	}
	some := false
	for i := range ch.Panels {
		p := &ch.Panels[i]
		var of []martinRow
		switch p.Title {
		case "lstm":
			of = []martinRow{{256, martinLSTM()}}
		case "ls-lstm":
			of = martinLengths(on)
		}
		for _, row := range of {
			if p.Title == "ls-lstm" && !slices.Contains(lengths, row.steps) {
				continue
			}
			if s := drawn(fmt.Sprintf("T=%d", row.steps), row.paper); len(s.Points) > 0 {
				p.Series = append(p.Series, s)
				some = true
			}
		}
	}
	if some {
		ch.Notes = append(ch.Notes, "Dotted lines with hollow marks are the paper's.")
	}
}
