package tuner

import (
	"slices"
	"testing"

	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// TestSift: settings of equal predicted time do not take all places of slightly slower ones. Every
// technique runs its default and its best setting.
func TestSift(t *testing.T) {
	var list []*contender
	add := func(n int, name string, seconds float64, turned knob.Params) {
		for range n {
			list = append(list, &contender{key: name, spec: grid.Spec{Name: name}, seconds: seconds, error: 0.1, turned: turned, dropped: seconds > 0})
		}
	}
	one, two := knob.Params{"a": 1}, knob.Params{"a": 1, "b": 1}
	add(1, "x", 1.1, nil)
	add(30, "x", 1, two)
	add(30, "x", 1, one)
	add(5, "x", 1.2, one)
	add(5, "x", 1.5, one) // beyond the bound
	add(1, "y", 9, nil)
	add(5, "y", 8, one)
	add(2, "y", 0, one) // unknown
	running := func(most int) (counts []int) {
		for _, c := range list {
			c.dropped = c.seconds > 0
		}
		o := &outlook{tune: &Tune{}, most: most, best: 1}
		o.sift(list)
		for _, of := range []struct {
			name    string
			seconds float64
			turned  int
		}{{"x", 1.1, 0}, {"x", 1, 1}, {"x", 1, 2}, {"x", 1.2, 1}, {"x", 1.5, 1}, {"y", 9, 0}, {"y", 8, 1}, {"y", 0, 1}} {
			n := 0
			for _, c := range list {
				if !c.dropped && c.spec.Name == of.name && c.seconds == of.seconds && len(c.turned) == of.turned {
					n++
				}
			}
			counts = append(counts, n)
		}
		return counts
	}
	for _, c := range []struct {
		most int
		want []int
	}{
		{10, []int{1, 4, 0, 3, 0, 1, 1, 2}},
		{40, []int{1, 30, 4, 3, 0, 1, 1, 2}},
		{0, []int{1, 30, 30, 5, 0, 1, 1, 2}},
	} {
		if got := running(c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d places: %v run, want %v", c.most, got, c.want)
		}
	}
}

func TestNth(t *testing.T) {
	if got := tiesBefore([]float64{1, 1.0005, 1.0009, 1.002, 3, 3, 2, 2}); !slices.Equal(got, []int{0, 1, 2, 0, 0, 1, 0, 1}) {
		t.Error(got)
	}
}
