package search

import (
	"context"
	"slices"
	"testing"
)

// A diary is a bench that notes in which order arms are measured.
type diary struct {
	*noisy
	order []int
}

func (d *diary) Measure(ctx context.Context, arm int, limit float64) (float64, error) {
	d.order = append(d.order, arm)
	return d.noisy.Measure(ctx, arm, limit)
}

// TestPredictedFirst: the first round starts with the arms of the least predicted time, so that the
// limit is low from the start. Arms without a prediction come last.
func TestPredictedFirst(t *testing.T) {
	d := &diary{noisy: newNoisy([]float64{4, 3, 2, 1}, 1, 0)}
	search(t, d, []Arm{{Predicted: 4}, {}, {Predicted: 2}, {Predicted: 1}}, options())
	if got := d.order[:4]; !slices.Equal(got, []int{3, 2, 0, 1}) {
		t.Errorf("arms are measured in the order %v", got)
	}
}

// TestHintedFirst: arms that won elsewhere start after the incumbent and before all others.
func TestHintedFirst(t *testing.T) {
	d := &diary{noisy: newNoisy([]float64{4, 3, 2, 1}, 1, 0)}
	o := options()
	o.Incumbent = 2
	search(t, d, []Arm{{Predicted: 4, Hinted: true}, {Predicted: 1}, {Predicted: 8}, {Predicted: 2}}, o)
	if got := d.order[:4]; !slices.Equal(got, []int{2, 0, 1, 3}) {
		t.Errorf("arms are measured in the order %v", got)
	}
}

// TestDroppedLeaveTheirShare: if most candidates were dropped in advance, the others run more rounds.
func TestDroppedLeaveTheirShare(t *testing.T) {
	samples := func(dropped int) int {
		truth := make([]float64, 40)
		for i := range truth {
			truth[i] = 1 + float64(i)/100
		}
		o := options()
		o.Dropped = dropped
		return search(t, newNoisy(truth, 1, 0.01), make([]Arm, len(truth)), o).Evaluations
	}
	if few, many := samples(0), samples(1000); many < few*3/2 || many > 40*options().Rounds {
		t.Errorf("%d samples, and %d where 1000 candidates were dropped", few, many)
	}
}
