package martin

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"rnnbench/experiments/study"
	"rnnbench/plots"
)

// paperRates draws the paper's rates into its figure: a dotted line for each length that is drawn,
// at the minibatches that were measured.
func paperRates(ch *plots.Chart, lengths []int, on study.Target) {
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
		ch.Panels[0].Series = append(ch.Panels[0].Series, plots.Series{Label: "the paper's", Like: ch.Panels[0].Series[0].Label, Reference: true})
		ch.Notes = append(ch.Notes, "Dotted lines with hollow marks are the paper's, in the colours of the lengths.")
	}
}

// coincide adds a note on the minibatches from which on the LS-LSTM's lines cannot be told apart.
func coincide(ch *plots.Chart) {
	const alike = 1.05
	for _, p := range ch.Panels {
		if p.Title != "ls-lstm" {
			continue
		}
		lo, hi, lines := map[float64]float64{}, map[float64]float64{}, map[float64]int{}
		for _, s := range p.Series {
			for _, pt := range s.Points {
				if s.Reference || pt.Missing {
					continue
				}
				if lines[pt.X]++; lines[pt.X] == 1 {
					lo[pt.X], hi[pt.X] = pt.Y, pt.Y
				}
				lo[pt.X], hi[pt.X] = min(lo[pt.X], pt.Y), max(hi[pt.X], pt.Y)
			}
		}
		from, some := math.NaN(), false
		for _, x := range slices.Backward(slices.Sorted(maps.Keys(lines))) {
			if hi[x] > alike*lo[x] {
				break
			}
			from, some = x, some || lines[x] > 1
		}
		if some {
			ch.Notes = append(ch.Notes, fmt.Sprintf("From minibatch %.0f on, the LS-LSTM's lines of all lengths coincide: they are within 5 %% of each other.", from))
		}
	}
}
