package model_test

import (
	"math"
	"strings"
	"testing"

	"rnnbench/model"
)

// TestAllReduce: the time of a ring, worked out by hand.
func TestAllReduce(t *testing.T) {
	l := model.Link{Name: "link", B: 1e9, L: 1e-6}
	for _, c := range []struct {
		n    int
		want float64
	}{{1, 0}, {2, 1e-3 + 2e-6}, {4, 1.5e-3 + 6e-6}, {128, 254.0/128*1e-3 + 254e-6}} {
		if got := l.AllReduce(1e6, c.n); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d devices take %g s, want %g", c.n, got, c.want)
		}
		if got := l.AllGather(1e6, c.n); math.Abs(2*got-c.want) > 1e-12 {
			t.Errorf("%d devices gather in %g s, want half of %g", c.n, got, c.want)
		}
	}
}

// TestIterationOver: sums hide behind the backward pass, up to the lowest layer's.
func TestIterationOver(t *testing.T) {
	it := model.Iteration{Compute: 3, Backward: 2, Layers: 4, Bytes: 1e9}
	for _, c := range []struct {
		link          model.Link
		n             int
		seconds, wait float64
	}{
		{model.Link{B: 1e9}, 1, 3, 0},
		{model.Link{B: 4e9}, 2, 3.25, 0.25}, // a quarter of a second each, a layer takes half of one
		{model.Link{B: 1e9}, 2, 5.5, 2.5},   // a second each: four behind the first at 1.5
	} {
		if seconds, wait := it.Over(c.link, c.n); math.Abs(seconds-c.seconds)+math.Abs(wait-c.wait) > 1e-9 {
			t.Errorf("%+v, %d devices: %g s and %g s of waiting, want %g and %g", c.link, c.n, seconds, wait, c.seconds, c.wait)
		}
	}
}

// TestLinks: built-in machines name their links and sources, files read back, and invalid links are
// refused.
func TestLinks(t *testing.T) {
	for _, name := range []string{"titanx", "h100", "h200"} {
		m, err := model.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range map[int]int{2: 0, 8: 0, 9: 1, 128: 1} {
			if l, ok := m.Links.Across(n); !ok || l != m.Links[want] || l.Source == "" {
				t.Errorf("%s: %d devices are joined by %+v", name, n, l)
			}
		}
		text, err := m.Format()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := model.Parse(text); err != nil || len(back.Links) != 2 || back.Links[1] != m.Links[1] {
			t.Errorf("%s does not read back: %v", name, err)
		}
	}
	if m, err := model.Load("k40"); err != nil || len(m.Links) != 0 {
		t.Errorf("the K40 has links that nobody stated: %v, %v", m, err)
	} else if _, ok := m.Links.Across(2); ok {
		t.Error("a machine without links is joined to another")
	}
	const head = "name = 'm'\nflops = 1\n[[level]]\nname = 'l'\np = 1\nb = 1\nm = 1\n[[link]]\n"
	for text, want := range map[string]string{
		"b = 1":                            "no name",
		"name = 'x'":                       "b must be positive",
		"name = 'x'\nb = 1\nl = -1":        "l at least 0",
		"name = 'x'\nb = 1\ndevices = 1":   "devices is 1",
		"name = 'x'\nb = inf\ndevices = 2": "b must be positive",
	} {
		if _, err := model.Parse([]byte(head + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
