package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"

	"rnnbench/internal/synthetic"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// TestMarks: each series has its own mark, so that no two differ by colour alone. A technique has
// the same mark in every figure.
func TestMarks(t *testing.T) {
	all := []Series{{Label: "variant"}, {Label: "persistent"}, {Label: "cudnn"}, {Label: "cudnn static", Like: "cudnn"}}
	for i := range 14 {
		all = append(all, Series{Label: fmt.Sprint("cudnnstyle:block=", i), Like: "cudnnstyle"})
	}
	seen := map[shape]string{}
	got := looks(all)
	for label, l := range got {
		if other, ok := seen[l.shape()]; ok {
			t.Errorf("%s has the mark of %s", label, other)
		}
		seen[l.shape()] = label
	}
	if want, _ := techniqueLook("persistent"); got["persistent"].shape() != want.shape() {
		t.Errorf("persistent has the mark %v", got["persistent"].shape())
	}
}

// TestLooksAreTheSame: series get the same looks each time, even if a vendor's library has more
// variants than marks.
func TestLooksAreTheSame(t *testing.T) {
	var all []Series
	for _, l := range []string{"naive", "cudnn", "cudnn persistent", "cudnn static", "cudnn static small", "cudnn padded", "cudnn static padded"} {
		all = append(all, Series{Label: l})
	}
	want := looks(all)
	for range 20 {
		for label, l := range looks(all) {
			if l.shape() != want[label].shape() {
				t.Fatalf("%s has the mark %v, and before %v", label, l.shape(), want[label].shape())
			}
		}
	}
}

// TestIntervalsStandAside: intervals at one place are shifted if they would overlap, and only then.
func TestIntervalsStandAside(t *testing.T) {
	one := func(y float64) Series {
		return Series{Label: fmt.Sprint(y), Points: []Point{{X: 1, Y: y, Lo: y - 10, Hi: y + 10}, {X: 2, Y: y}}}
	}
	at := func(v float64) vg.Length { return vg.Length(100 * v) }
	p := &panelPlotter{Panel: Panel{Series: []Series{one(20), one(25), one(90)}}}
	shift := p.dodge(at, func(v float64) vg.Length { return vg.Length(v) })
	if shift[0] == shift[1] || math.Abs(float64(shift[1]-shift[0])) < 4 || shift[2] != 0 {
		t.Errorf("shifts %v", shift)
	}
	p.Series = []Series{one(20), one(60)}
	if shift = p.dodge(at, func(v float64) vg.Length { return vg.Length(v) }); shift[0] != 0 || shift[1] != 0 {
		t.Errorf("apart, and yet shifted by %v", shift)
	}
}

// TestMostEntries: no legend has more than mostEntries series; with more, each panel has its own.
func TestMostEntries(t *testing.T) {
	for _, n := range []int{3, 8, 9, 20} {
		ch := &Chart{X: Axis{Title: "x"}, Y: Axis{Title: "y"}, Panels: []Panel{{}}}
		for i := range n {
			ch.Panels[0].Series = append(ch.Panels[0].Series, Series{Label: fmt.Sprintf("t%d:k=%d", i%3, i), Points: []Point{{X: 1, Y: float64(i + 1)}, {X: 2, Y: 1}}})
		}
		split := ch.split()
		total := 0
		for _, p := range split.Panels {
			total += len(p.Series)
			if len(p.Series) > mostEntries {
				t.Errorf("%d series: a panel has %d", n, len(p.Series))
			}
		}
		if total != n || (len(split.Panels) > 1) != (n > mostEntries) || split.ownLegends() != (n > mostEntries) {
			t.Errorf("%d series: %d in %d panels, legends of their own: %t", n, total, len(split.Panels), split.ownLegends())
		}
		text := string(svg(t, ch))
		for _, s := range ch.Panels[0].Series {
			if !strings.Contains(text, ">"+s.Label+"<") {
				t.Errorf("%d series: no legend names %s", n, s.Label)
			}
		}
		if f := ch.frame(); len(f.legend) > mostEntries {
			t.Errorf("%d series: a legend of %d", n, len(f.legend))
		}
	}
}

// TestRoofs: each precision has its own roof, as the device measured it.
func TestRoofs(t *testing.T) {
	var recs []record.Record
	for _, precision := range []string{"fp32", "bf16", "fp16"} {
		for _, r := range synthetic.Ladder(512, 64) {
			r.Point.Precision, r.Device = precision, "cuda-synthetic"
			recs = append(recs, r)
		}
	}
	d := record.Device{Facts: map[string]string{"bf16 products": "792 TFLOP/s", "fp32 products": "1.00 GFLOP/s", "workers": "132", "odd products": "many"}}
	ch, err := Roofline(recs, Spec{Copy: 1e10, Roofs: RoofsOf(d)})
	if err != nil {
		t.Fatal(err)
	}
	peak := quantity.Peak([]*record.Record{&recs[0]})
	for _, p := range ch.Panels {
		want := map[string]float64{"fp32": peak, "bf16": 792e12, "fp16": peak}[p.Title]
		ridge := want / 1e10
		xs, _, _ := p.values()
		if slices.Max(xs) < ridge {
			continue // the roof is far to the right of the marks
		}
		if !slices.ContainsFunc(p.Guides, func(g Guide) bool { return g.Y0 == want && g.Y1 == want }) {
			t.Errorf("%s: roofs %+v, want %g", p.Title, p.Guides, want)
		}
	}
	if len(ch.Panels) != 3 || !slices.ContainsFunc(ch.Notes, func(s string) bool { return strings.HasPrefix(s, "No peak was measured for fp16") }) {
		t.Errorf("%d panels, notes %q", len(ch.Panels), ch.Notes)
	}
}

// TestPanelHasItsOwnRange: a panel whose data cover a small part of the axis shows only that part.
func TestPanelHasItsOwnRange(t *testing.T) {
	a := Axis{Scale: Log, Places: []float64{1, 2, 4, 64, 1024}}
	all := a.fit(a.Places, edge, edge)
	narrow := Panel{Series: []Series{{Points: []Point{{X: 1, Y: 1}, {X: 4, Y: 1}}}}}
	s, own := a.of(narrow, all)
	if s.max > 8 || !slices.Equal(own.Places, []float64{1, 2, 4}) {
		t.Errorf("the axis ends at %g, with places %v", s.max, own.Places)
	}
	wide := Panel{Series: []Series{{Points: []Point{{X: 2, Y: 1}, {X: 1024, Y: 1}}}}}
	if s, _ = a.of(wide, all); s != all {
		t.Errorf("most of the axis, and yet from %g to %g", s.min, s.max)
	}
}

// TestNoResultAtAll: a series without any value is not in the legend. The notes name it and say why
// it has no value.
func TestNoResultAtAll(t *testing.T) {
	recs := synthetic.Ladder(512, 64)
	one := recs[0]
	code, why := record.ReasonResource, "cuda: vendor: unsupported: cudnnGetRNNTempSpaceSizes returns CUDNN_STATUS_NOT_SUPPORTED"
	one.Impl.Name, one.Impl.Label, one.Status, one.ReasonCode, one.Reason, one.Stats, one.Rate = "cudnn", "cudnn static", record.Skipped, &code, &why, nil, nil
	ch, err := Lines(append(recs, one), Spec{X: "hidden"})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(ch.Notes, "\n")
	if slices.Contains(labels(ch.series()), "cudnn static") || !strings.Contains(notes, "they have no result: cudnn static") || !strings.Contains(notes, "1 not supported by the library") {
		t.Errorf("series %q, notes %q", labels(ch.series()), ch.Notes)
	}
}

// TestUnlisted: series that a note explains take no entry of a legend, and so divide no panel.
func TestUnlisted(t *testing.T) {
	ch := &Chart{X: Axis{Title: "x"}, Y: Axis{Title: "y"}, Panels: []Panel{{Title: "a"}, {Title: "b"}}}
	for i := range 2 * (mostEntries - 1) {
		label := fmt.Sprint("line ", i/2)
		s := Series{Label: label, Points: []Point{{X: 1, Y: float64(i + 1)}, {X: 2, Y: 1}}}
		if i%2 == 1 {
			s.Label, s.Like, s.Reference, s.Unlisted = "paper, "+label, label, true, true
		}
		ch.Panels[0].Series = append(ch.Panels[0].Series, s)
	}
	ch.Panels[1].Series = ch.Panels[0].Series[:2]
	if n := len(ch.split().Panels); n != 2 || ch.ownLegends() {
		t.Errorf("%d panels, legends of their own: %t", n, ch.ownLegends())
	}
	if n := len(ch.frame().legend); n != mostEntries-1 {
		t.Errorf("a legend of %d", n)
	}
	if text := string(svg(t, ch)); !strings.Contains(text, ">line 6<") || strings.Contains(text, ">paper, line 0<") {
		t.Error("the legend lists the wrong series")
	}
}

// TestFewSamplesAreHollow: a record without an interval has a hollow mark, and a word in a note. With
// an interval it has neither.
func TestFewSamplesAreHollow(t *testing.T) {
	lo, hi := 0.9, 1.1
	timed := func(hidden, n int, lo, hi *float64) record.Record {
		return record.Record{
			Point: record.Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Input: hidden, Layers: 1, Batch: 1, Steps: 1, Precision: "fp32"},
			Impl:  record.Impl{Name: "naive", Label: "naive"}, Device: "cpu-x-2t", Status: record.OK, Work: record.Work{Flops: 100, Bytes: 10},
			Samples: &record.Samples{Wall: make([]float64, n)}, Stats: &record.Stats{N: n, Median: 1, Min: 1, Max: 1, Lo: lo, Hi: hi},
			Rate: &record.Rate{Flops: 100}, Mode: record.Mode{Timer: "wall"},
		}
	}
	sure := []record.Record{timed(8, 10, &lo, &hi), timed(16, 10, &lo, &hi)}
	for _, c := range []struct {
		what string
		recs []record.Record
		few  int
		note string
	}{
		{"intervals", sure, 0, ""},
		{"one sample", append(sure, timed(32, 1, nil, nil)), 1, "too few samples, at some only one"},
		{"three samples", append(sure, timed(32, 3, nil, nil)), 1, "too few samples."},
	} {
		ch, err := Lines(c.recs, Spec{Y: "time"})
		if err != nil {
			t.Fatal(err)
		}
		few := 0
		for _, p := range ch.Panels[0].Series[0].Points {
			if p.Few {
				few++
			}
			if p.Few == p.interval() {
				t.Errorf("%s: a mark at %g is hollow: %v, and has an interval: %v", c.what, p.X, p.Few, p.interval())
			}
		}
		if notes := strings.Join(ch.Notes, " "); few != c.few || !strings.Contains(notes, c.note) || c.note == "" && strings.Contains(notes, "too few") {
			t.Errorf("%s: %d marks are hollow, want %d; notes: %s", c.what, few, c.few, notes)
		}
	}
}
