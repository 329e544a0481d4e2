package yardstick

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// RivalsScan is the experiment rivals-scan.
var RivalsScan = study.Experiment{
	ID: "rivals-scan", Title: "Scans of linear recurrences against rivals: bytes a second, and whole layers", Source: "rnnbench",
	Rivals: study.OnAny,
	Parts: func(s study.Size, on study.Target) []study.Part {
		forward, train := scansAlone(s, on, "forward"), scansAlone(s, on, "train")
		return []study.Part{forward, train, scanLayers(s, on)}
	},
	Report: reportRivalsScan,
}

// scanForms are the rivals whose scans can be timed alone, with the knobs that choose another scan.
// rivals/scans.py and rivals/jax_scan.py are these rivals.
var scanForms = map[string][]string{"accelerated-scan": {"backend"}, "fla": {"recurrent"}, "jax": {}, "torch-scan": {"time"}}

// The values of the knob alone of these rivals, for each of scanPasses: what is timed of the rival.
var (
	recurrences = []int{1, 1, 2} // gates and output too
	bareScans   = []int{3, 3, 4} // factors and terms are given
)

// formsOfScan returns a rival with the values of those of its knobs that choose another scan, and of also.
func formsOfScan(r study.Rival, also ...string) []grid.Spec {
	names, known := scanForms[r.Name]
	if known {
		names = append(slices.Clone(names), also...)
		r.Knobs = slices.DeleteFunc(slices.Clone(r.Knobs), func(k knob.Knob) bool { return !slices.Contains(names, k.Name) })
	}
	return r.Specs()
}

// aloneSpecs returns the forms of a rival with a part of the pass timed; nil: it cannot.
func aloneSpecs(r study.Rival, alone int) (specs []grid.Spec) {
	if _, ok := scanForms[r.Name]; !ok {
		return nil
	}
	for _, s := range formsOfScan(r) {
		k := knob.Params{"alone": alone}
		maps.Copy(k, s.Knobs)
		specs = append(specs, study.Spec(fmt.Sprintf("%s alone=%d", s.Label, alone), s.Name, k))
	}
	return specs
}

// likedShapes are sequences and channels that packages are measured with: the first two in the README of
// accelerated-scan, the others in fla's chunk_hgrn and in HGRN's model of 1.3 billion parameters.
var likedShapes = []struct {
	by              string
	batch, channels int
}{{"accelerated-scan", 8, 1536}, {"accelerated-scan", 1, 512}, {"fla", 16, 128}, {"fla", 4, 2048}}

// likedBy names the package that likes a point's shape; "": it was drawn.
func likedBy(p record.Point) string {
	for _, l := range likedShapes {
		if p.Batch == l.batch && p.Hidden == l.channels {
			return l.by
		}
	}
	return ""
}

// scansAlone returns scans without their products, at the shapes that packages like and at random ones.
func scansAlone(s study.Size, on study.Target, pass string) study.Part {
	values, cells, drawn := 1<<22, []string{"gilr", "rg-lru"}, 7
	switch {
	case s == study.Quick && on.GPU:
		values, cells, drawn = 1<<23, cells[:1], 2
	case s == study.Quick:
		values, cells, drawn = 1<<18, cells[:1], 1
	case on.GPU:
		values = 1 << 24
	}
	var part study.Part
	for i, cell := range cells {
		_, shapes := scanShapes(i, s, on)
		shapes = shapes[:min(drawn, len(shapes))]
		for _, l := range likedShapes {
			steps := 1 << (bits.Len(uint(values/(l.batch*l.channels))) - 1) // a power of two, which warp scans need
			shapes = append(shapes, record.Point{Input: 1, Hidden: l.channels, Batch: l.batch, Steps: steps, Layers: 1, Precision: "fp32"})
		}
		for _, p := range shapes {
			p.Cell, p.Pass = cell, pass
			part.Points = append(part.Points, p)
		}
	}
	for i, way := range scanPasses {
		if way.pass != pass {
			continue
		}
		part.Specs = append(part.Specs, way.specs(on)...)
		for _, r := range on.Rivals {
			part.Specs = append(part.Specs, aloneSpecs(r, recurrences[i])...)
			part.Specs = append(part.Specs, aloneSpecs(r, bareScans[i])...)
		}
	}
	part.Specs = firstOfLabels(part.Specs)
	return part
}

// firstOfLabels drops specs whose label came before.
func firstOfLabels(specs []grid.Spec) (out []grid.Spec) {
	for _, s := range specs {
		if !slices.ContainsFunc(out, func(o grid.Spec) bool { return o.Label == s.Label }) {
			out = append(out, s)
		}
	}
	return out
}

// scanLabel is the technique that whole layers are compared with.
const scanLabel = "scan"

// scanLayers returns layers with their products.
func scanLayers(s study.Size, on study.Target) study.Part {
	cells, hidden, batches, steps := []string{"gilr", "rg-lru", "sru"}, []int{512, 1024, 2048}, []int{1, 8, 32}, 2048
	switch {
	case s == study.Quick && on.GPU:
		cells, hidden, batches, steps = cells[:1], hidden[:2], batches[:2], 1024
	case s == study.Quick:
		cells, hidden, batches, steps = cells[:1], []int{64, 256}, batches[:2], 128
	case !on.GPU:
		hidden, steps = []int{128, 512}, 512
	}
	own := study.Spec(scanLabel, "scan", nil)
	precisions := []string{"fp32"}
	if on.GPU {
		own, precisions = study.Graphed(scanLabel, own), []string{"fp32", "bf16"}
	}
	part := study.Part{Specs: []grid.Spec{own}}
	for _, r := range on.Rivals {
		part.Specs = append(part.Specs, formsOfScan(r, "half")...)
	}
	for _, pass := range []string{"forward", "train"} {
		for _, precision := range precisions {
			for _, cell := range cells {
				part.Points = append(part.Points, study.Product(record.Point{Cell: cell, Pass: pass, Steps: steps, Layers: 1, Precision: precision}, hidden, batches)...)
			}
		}
	}
	return part
}

// A rivalScan is a scan of ours beside those of a rival. Each of the rival's may be nil.
type rivalScan struct {
	record.Point
	way                   scanPass
	own, copied           *record.Record
	recurrence, bare      *record.Record
	times                 estimate.Estimate // how many times as fast as the rival's recurrence ours is
	rate, theirs, bareFor float64           // bytes a second: ours, the rival's recurrence, its scan alone
}

// bareBytes is what a scan of given factors and terms must move: it reads two vectors and writes the
// states. Its gradient reads factors, states and gradients, and writes two vectors.
func bareBytes(p record.Point, way scanPass) float64 {
	vectors := 3.0
	if way.alone == 2 {
		vectors = 5
	}
	return 4 * vectors * float64(p.Batch) * float64(p.Hidden) * float64(p.Steps)
}

// rivalScans returns the scans that were measured beside those of r.
func rivalScans(recs []record.Record, r study.Rival) (all []rivalScan) {
	labels := func(alone int) (list []string) {
		for _, s := range aloneSpecs(r, alone) {
			list = append(list, s.Label)
		}
		return list
	}
	for i, way := range scanPasses {
		for _, p := range pick.Points(recs) {
			here := func(q record.Point) bool { return q == p }
			x := rivalScan{Point: p, way: way, own: pick.Find(recs, way.scan, here), copied: pick.Find(recs, way.copied, here),
				recurrence: pick.Fastest(recs, labels(recurrences[i]), here), bare: pick.Fastest(recs, labels(bareScans[i]), here)}
			if p.Pass != way.pass || x.own == nil || x.recurrence == nil && x.bare == nil {
				continue
			}
			bytes := float64(x.own.Work.Bytes)
			x.rate, x.theirs, x.bareFor, x.times = bytes/x.own.Seconds(), math.NaN(), math.NaN(), estimate.Exactly(math.NaN())
			if x.recurrence != nil {
				x.theirs, x.times = bytes/x.recurrence.Seconds(), estimate.TimesAsFast(x.recurrence, x.own)
			}
			if x.bare != nil {
				x.bareFor = bareBytes(p, way) / x.bare.Seconds()
			}
			all = append(all, x)
		}
	}
	return all
}

func reportRivalsScan(recs []record.Record, on study.Target) (*study.Report, error) {
	rep := &study.Report{}
	alone := pick.Where(recs, func(p record.Point) bool { return p.Input == 1 && p.Hidden > 1 })
	whole := pick.Where(recs, func(p record.Point) bool { return p.Input != 1 })
	all := map[string][]rivalScan{}
	for _, r := range on.Rivals {
		if scans := rivalScans(alone, r); len(scans) > 0 {
			all[r.Name] = scans
			rep.Tables = append(rep.Tables, tableOfScans(scans, r))
			rateFindings(rep, scans, versioned(alone, r))
		}
	}
	if len(all) > 0 {
		rep.Tables = slices.Insert(rep.Tables, 0, sumOfScans(all, on))
		rep.Findings = slices.Insert(rep.Findings, 0, "Rates count the bytes that the recurrence must move: each vector of its products once, and states once. A rival's scan alone is given factors and terms, of which it must move as many bytes as it reads and writes; ours computes its gates as well.")
		for _, f := range []struct {
			name, title string
			y           func(rivalScan) float64
		}{
			{"rivals-scan-recurrence", "gates, scan and output", func(x rivalScan) float64 { return x.theirs }},
			{"rivals-scan-alone", "rivals' scans alone, of given factors and terms", func(x rivalScan) float64 { return x.bareFor }},
		} {
			rep.Add(f.name, scanFigure(all, on, f.title, f.y), nil)
		}
	}
	points := pick.Points(whole)
	for _, r := range on.Rivals {
		if pairs := duels(whole, points, []string{scanLabel}, r); len(pairs) > 0 {
			t, ratios := rivalTable(pairs, r)
			rep.Tables = append(rep.Tables, t)
			againstRival(rep, whole, on, []string{scanLabel}, r, ratios)
		}
	}
	if len(rep.Tables) == 0 {
		return nil, fmt.Errorf("experiments: no point has records of both rnnbench's scan and a rival's")
	}
	return rep, nil
}

// timesOf are the ratios of the scans in a way that have one.
func timesOf(scans []rivalScan, way scanPass) (times estimate.Duel) {
	for _, x := range scans {
		if x.way == way && x.times.Known() {
			times = append(times, x.times)
		}
	}
	return times
}

// rateFindings adds what is to be said of the scans of a rival.
func rateFindings(rep *study.Report, scans []rivalScan, rival string) {
	for _, way := range scanPasses {
		if times := timesOf(scans, way); len(times) > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("%s, gates included: rnnbench's scan is %s.", way.scan, times.Full(rival, "point")))
			rep.Yardstick(fmt.Sprintf("%s, gates included: %s", way.scan, times.Brief(rival)))
		}
	}
}

// rateCell shows the geometric mean of those rates that are known.
func rateCell(rates []float64) table.Cell {
	rates = slices.DeleteFunc(slices.Clone(rates), math.IsNaN)
	if len(rates) == 0 {
		return show.Missing()
	}
	v := estimate.Geomean(rates)
	return table.Number(v, quantity.SI(v, "B/s"))
}

// sumOfScans has a row for each rival and way.
func sumOfScans(all map[string][]rivalScan, on study.Target) *table.Table {
	t := &table.Table{Title: "Bytes a second of scans, geometric means", Columns: []table.Column{
		{Name: "Rival", Key: "rival"}, {Name: "Scan", Key: "scan"}, {Name: "Shapes", Key: "shapes"}, {Name: "Number", Key: "number", Right: true},
		{Name: "rnnbench", Key: "rnnbench_bytes_per_s", Right: true}, {Name: "rival", Key: "rival_bytes_per_s", Right: true}, {Name: "×", Key: "ratio", Right: true},
		{Name: "lowest ×", Key: "lowest", Right: true}, {Name: "its scan alone", Key: "alone_bytes_per_s", Right: true}}}
	for _, r := range on.Rivals {
		for _, way := range scanPasses {
			for _, liked := range []bool{true, false} {
				some := slices.DeleteFunc(slices.Clone(all[r.Name]), func(x rivalScan) bool { return x.way != way || (likedBy(x.Point) != "") != liked })
				if len(some) == 0 {
					continue
				}
				var own, theirs, bare, times []float64
				for _, x := range some {
					own, theirs, bare = append(own, x.rate), append(theirs, x.theirs), append(bare, x.bareFor)
					if x.times.Known() {
						times = append(times, x.times.At)
					}
				}
				mean, lowest := show.Missing(), show.Missing()
				if len(times) > 0 {
					mean, lowest = show.Ratio(estimate.Geomean(times)), show.Ratio(slices.Min(times))
				}
				shapes := "random"
				if liked {
					shapes = "of packages"
				}
				t.Rows = append(t.Rows, []table.Cell{table.Text(r.Name), table.Text(way.scan), table.Text(shapes), table.Int(len(some)), rateCell(own), rateCell(theirs), mean, lowest, rateCell(bare)})
			}
		}
	}
	return t
}

// tableOfScans has a row for each scan beside one rival's.
func tableOfScans(scans []rivalScan, r study.Rival) *table.Table {
	t := &table.Table{Title: "Bytes a second: rnnbench's scan and the fastest of " + r.Name, Notes: knobNotes[r.Name], Columns: []table.Column{
		{Name: "Cell", Key: "cell"}, {Name: "Scan", Key: "scan"}, {Name: "Shape of", Key: "shape_of"}, {Name: "Channels", Key: "hidden", Right: true},
		{Name: "Sequences", Key: "batch", Right: true}, {Name: "Steps", Key: "steps", Right: true}, {Name: "rnnbench", Key: "rnnbench_bytes_per_s", Right: true},
		{Name: "copy", Key: "copy_bytes_per_s", Right: true}, {Name: r.Name, Key: "rival_bytes_per_s", Right: true}, {Name: "×", Key: "ratio", Right: true},
		{Name: "its scan alone", Key: "alone_bytes_per_s", Right: true}, {Name: "form", Key: "form"}}}
	sorted := slices.SortedStableFunc(slices.Values(scans), func(a, b rivalScan) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), -cmp.Compare(likedBy(a.Point), likedBy(b.Point)), cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Batch, b.Batch))
	})
	for _, x := range sorted {
		copied, times, form := math.NaN(), show.Missing(), x.bare
		if x.copied != nil {
			copied = float64(x.own.Work.Bytes) / x.copied.Seconds()
		}
		if x.recurrence != nil {
			form = x.recurrence
			times = show.Ratio(x.times.At)
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(x.Cell), table.Text(x.way.scan), table.Text(cmp.Or(likedBy(x.Point), "random")), table.Int(x.Hidden), table.Int(x.Batch), table.Int(x.Steps),
			rateCell([]float64{x.rate}), rateCell([]float64{copied}), rateCell([]float64{x.theirs}), times, rateCell([]float64{x.bareFor}), table.Text(formOf(form))})
	}
	return t
}

// formOf is the label of a rival's form without what is timed of it.
func formOf(r *record.Record) string {
	label, _, _ := strings.Cut(r.Impl.Label, " alone=")
	return label
}

// scanFigure draws bytes a second over channels, a panel for each way: ours, a copy's and each rival's.
func scanFigure(all map[string][]rivalScan, on study.Target, what string, y func(rivalScan) float64) *plots.Chart {
	ch := &plots.Chart{Title: "Bytes a second of scans: " + what, Subtitle: on.Name,
		Notes: []string{"One mark per shape. Sequences and steps differ as well; all shapes have about as many values."},
		X:     plots.Axis{Title: "Channels", Scale: plots.Log, Format: quantity.Size},
		Y:     plots.Axis{Title: "Bytes a second", Scale: plots.Log, Format: func(v float64) string { return quantity.SI(v, "B/s") }}}
	for _, way := range scanPasses {
		panel := plots.Panel{Title: way.scan}
		add := func(label string, scans []rivalScan, y func(rivalScan) float64) {
			s := plots.Series{Label: label, Scatter: true}
			for _, x := range scans {
				at := plots.Point{X: float64(x.Hidden), Y: y(x)}
				same := func(p plots.Point) bool { return p.X == at.X && p.Y == at.Y }
				if x.way == way && !math.IsNaN(at.Y) && !slices.ContainsFunc(s.Points, same) {
					s.Points = append(s.Points, at)
				}
			}
			panel.Series = append(panel.Series, s)
		}
		var every []rivalScan
		for _, r := range on.Rivals {
			every = append(every, all[r.Name]...)
		}
		add("rnnbench", every, func(x rivalScan) float64 { return x.rate })
		add("copy", every, func(x rivalScan) float64 {
			if x.copied == nil {
				return math.NaN()
			}
			return float64(x.own.Work.Bytes) / x.copied.Seconds()
		})
		for _, r := range on.Rivals {
			if len(all[r.Name]) > 0 {
				add(r.Name, all[r.Name], y)
			}
		}
		if slices.ContainsFunc(panel.Series, func(s plots.Series) bool { return len(s.Points) > 0 }) {
			ch.Panels = append(ch.Panels, panel)
		}
	}
	return ch
}
