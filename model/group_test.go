package model_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"rnnbench/model"
	"rnnbench/rnn/cell"
)

// A layer is a recorded persistent layer with its kernel's geometry.
type layer struct {
	work  model.Work
	group model.Group
	us    float64 // of a step
}

func recorded(t *testing.T) (all []layer) {
	t.Helper()
	text, err := os.ReadFile("testdata/diamos-fig6-h200.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "cell") {
			continue
		}
		var name, variant, place string
		var hidden, batch int
		var l layer
		if _, err := fmt.Sscan(line, &name, &hidden, &batch, &l.us, &variant, &l.group.Blocks, &l.group.Groups, &l.group.Samples, &place); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		l.group.Spread, l.group.Tensor = place == "spread", variant != "simt"
		l.work = work(t, cell.Lookup(name), hidden, batch, 4)
		all = append(all, l)
	}
	return all
}

// TestInGroups predicts steps of persistent layers on an H200, given the geometry that ran. 32 or
// more of the 40 recorded points are within 25 %. Without the geometry, 16 are.
func TestInGroups(t *testing.T) {
	m := load(t, "h200")
	near, before := 0, 0
	var errors []float64
	for _, l := range recorded(t) {
		s, err := m.InGroups(l.work, l.group)
		if err != nil {
			t.Fatal(err)
		}
		off := math.Abs(l.us/(s.Time*1e6) - 1) // as reports say it
		errors = append(errors, off)
		if off <= 0.25 {
			near++
		} else {
			t.Logf("%+v %+v: %.3g µs, measured %.3g", l.work, l.group, s.Time*1e6, l.us)
		}
		bands, err := m.Best(l.work)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(l.us/(bands.Time*1e6)-1) <= 0.25 {
			before++
		}
	}
	slices.Sort(errors)
	median := errors[len(errors)/2]
	t.Logf("within 25 %% at %d of %d points, by the machine alone at %d; median error %.1f %%, largest %.0f %%", near, len(errors), before, 100*median, 100*errors[len(errors)-1])
	if len(errors) != 40 || near < 32 {
		t.Errorf("within 25 %% at %d of %d points", near, len(errors))
	}
	if stated := m.GPU.Error; math.Abs(median-stated) > 0.01 {
		t.Errorf("the median error is %.3f, and the machine's file says %v", median, stated)
	}
}

// TestFloorOfRecorded: no recorded layer is faster than its floor, and no floor is 0.
func TestFloorOfRecorded(t *testing.T) {
	m := load(t, "h200")
	for _, l := range recorded(t) {
		f, err := m.Floor(model.Run{
			FLOPs: 1000 * l.work.FLOPs(), Bytes: 4, Tensor: l.group.Tensor, Launches: 1,
			Chains: []model.Chain{{Steps: 1000, Work: l.work, Group: l.group}},
		})
		if err != nil {
			t.Fatal(err)
		}
		share := f.Seconds / (1000 * l.us * 1e-6)
		t.Logf("%+v %+v: %.2f of the floor, %s", l.work, l.group, share, f.Bound)
		if share > 1 || share <= 0 || f.Bound == "" {
			t.Errorf("%+v takes %.3g µs a step, and its floor is %.3g (%s)", l.work, l.us, f.Seconds*1e3, f.Bound)
		}
	}
}
