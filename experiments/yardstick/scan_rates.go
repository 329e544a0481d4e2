package yardstick

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// A scanPass is a scan and the copy beside it; see the knob alone of technique scan.
type scanPass struct {
	pass, scan, copied string // pass of the point, labels
	alone, copy        int
}

var scanPasses = []scanPass{
	{"forward", "inference", "copy for inference", 1, 3},
	{"train", "kept for training", "copy for kept", 1, 3},
	{"train", "backward", "copy for backward", 2, 4},
}

// specs are the scan and its copy, on a GPU replayed as graphs.
func (s scanPass) specs(on study.Target) []grid.Spec {
	var all []grid.Spec
	for label, alone := range map[string]int{s.scan: s.alone, s.copied: s.copy} {
		one := study.Spec(label, "scan", knob.Params{"inputbatch": 0, "alone": alone})
		if on.GPU {
			one = study.Graphed(label, one)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b grid.Spec) int { return a.Knobs["alone"] - b.Knobs["alone"] })
	return all
}

// scanCells returns the linear recurrences that are built in, except those that scan exactly like another.
func scanCells() []string {
	var names []string
	for _, c := range cell.BuiltIn() {
		linear := c.Recurrent == 0 && (c.Recurrence != nil || c.Scanned != nil) || c.Surrogate != nil
		if linear && c.Window == 1 {
			names = append(names, c.Name)
		}
	}
	return names
}

// scanSeed is the seed of the random shapes.
const scanSeed = 31

// scanDrawn is the number of shapes that the quick size draws on a GPU, for all cells together. With
// their checks they take some minutes. The full size draws shapes for each cell, which takes much
// longer.
const scanDrawn = 40

// scanShapes returns, for the cell of that index, shapes with about as many values a vector. aligned
// ones have powers of two of channels and one sequence. odd ones are drawn at random: odd channels,
// sequences and steps.
func scanShapes(index int, s study.Size, on study.Target) (aligned, odd []record.Point) {
	values, least, channels, drawn := 1<<22, 0.5, []int{8, 64, 512, 4096}, 7
	switch cells := len(scanCells()); {
	case s == study.Quick && on.GPU: // at least 64 MB of each, which is beyond its caches
		values, least, drawn = 1<<23, 0.7, (scanDrawn+cells-1-index)/cells
		if channels = nil; index == 0 {
			channels = []int{8, 256}
		}
	case s == study.Quick:
		values, channels, drawn = 1<<18, []int{8, 256}, 1
	case on.GPU:
		values = 1 << 24
	}
	shape := func(hidden, batch, steps int) record.Point {
		return record.Point{Input: 1, Hidden: hidden, Batch: batch, Steps: steps, Layers: 1, Precision: "fp32"}
	}
	for _, h := range channels {
		aligned = append(aligned, shape(h, 1, values/h))
	}
	rng := rand.New(rand.NewPCG(scanSeed, uint64(index)))
	below := func(most float64) int { return int(math.Exp(rng.Float64()*math.Log(most)))/2*2 + 1 }
	for range drawn {
		h, b := below(2048), below(64)
		odd = append(odd, shape(h, b, max(3, int(float64(values)*(least+(1.5-least)*rng.Float64()))/(h*b)/2*2+1)))
	}
	return aligned, odd
}

// ScanRates is the experiment scan-rates.
var ScanRates = study.Experiment{
	ID: "scan-rates", Title: "The scans of linear recurrences beside a copy of as many bytes",
	Source: "rnnbench's own yardstick for the scans of Martin & Cundy 2017, section 2",
	Parts: func(s study.Size, on study.Target) []study.Part {
		specs := map[string][]grid.Spec{}
		for _, way := range scanPasses {
			specs[way.pass] = append(specs[way.pass], way.specs(on)...)
		}
		var parts []study.Part
		for _, pass := range []string{"forward", "train"} {
			var all []record.Point
			for i, name := range scanCells() {
				if s == study.Quick && !on.GPU && !slices.Contains([]string{"gilr", "sru", "rg-lru"}, name) {
					continue
				}
				aligned, odd := scanShapes(i, s, on)
				for _, p := range slices.Concat(aligned, odd) {
					p.Cell, p.Pass = name, pass
					all = append(all, p)
				}
			}
			parts = append(parts, study.Part{Points: all, Specs: specs[pass]})
		}
		return parts
	},
	Report: reportScanRates,
}

// A scanRate is one scan beside its copy.
type scanRate struct {
	way   scanPass
	scan  *record.Record
	share float64 // of the copy's rate
}

func (r scanRate) odd() bool { return r.scan.Point.Hidden%2 == 1 }

// scanRatesOf returns the scans that were measured with their copies.
func scanRatesOf(recs []record.Record) (all []scanRate) {
	for _, p := range pick.Points(recs) {
		for _, way := range scanPasses {
			at := func(q record.Point) bool { return q == p }
			scan, copied := pick.Find(recs, way.scan, at), pick.Find(recs, way.copied, at)
			if way.pass == p.Pass && scan != nil && copied != nil {
				all = append(all, scanRate{way, scan, copied.Seconds() / scan.Seconds()})
			}
		}
	}
	return all
}

func reportScanRates(recs []record.Record, on study.Target) (*study.Report, error) {
	rates := scanRatesOf(recs)
	if len(rates) == 0 {
		return nil, fmt.Errorf("experiments: no scan has a copy beside it")
	}
	rep := &study.Report{Tables: []*table.Table{ratesOfPasses(rates), sumOfRates(rates), tableOfRates(rates)}}
	rep.Findings = append(rep.Findings, fmt.Sprintf("Shares are times of a copy over times of a scan, measured in turns. The copy reads and writes as many bytes as the scan must: each vector once, and states once. Shapes with odd channels, sequences and steps are drawn at random, from seed %d.", scanSeed))
	for _, way := range scanPasses {
		if shares, worst := sharesOf(rates, way, true); len(shares) > 0 {
			p := worst.scan.Point
			rep.Findings = append(rep.Findings, fmt.Sprintf("%s, odd shapes: %.0f %% of a copy (geometric mean of %d). The lowest is %.0f %%: %s, %s, %s, %d steps.", way.scan, 100*estimate.Geomean(shares), len(shares), 100*worst.share, p.Cell, quantity.Plural(p.Hidden, "channel"), quantity.Plural(p.Batch, "sequence"), p.Steps))
		}
	}
	for kind, odd := range []bool{false, true} {
		var gated []float64
		for _, r := range rates {
			if r.scan.Point.Cell == "rg-lru" && r.odd() == odd {
				gated = append(gated, r.share)
			}
		}
		if len(gated) > 0 {
			rep.Yardstick(fmt.Sprintf("the recurrence of an RG-LRU, %s shapes: %.0f %% of a copy (geometric mean of %d)", kinds[kind], 100*estimate.Geomean(gated), len(gated)))
		}
	}
	for _, pass := range []string{"forward", "train"} {
		some := slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool {
			return r.Point.Pass != pass || r.Point.Hidden%2 == 1 && r.Point.Hidden > 1 || r.Point.Batch > 1
		})
		fig, err := plots.Lines(some, plots.Spec{X: "hidden", Y: "bandwidth", Panel: "cell", Machine: on.Name, Title: map[string]string{
			"forward": "Inference: bytes per second of a scan over channels, one sequence", "train": "Training: bytes per second of a scan over channels, one sequence"}[pass]})
		rep.Add("scan-rates-"+pass, fig, err)
	}
	if fig := oddFigure(rates, on); len(fig.Panels) > 0 {
		rep.Add("scan-rates-odd", fig, nil)
	}
	return rep, nil
}

// oddFigure draws the share of a copy that odd shapes reach over their channels, a panel for each pass.
func oddFigure(rates []scanRate, on study.Target) *plots.Chart {
	ch := &plots.Chart{Title: "Scans of odd shapes: share of a copy's rate", Subtitle: on.Name,
		Notes: []string{fmt.Sprintf("One mark per shape, drawn at random from seed %d. Sequences and steps differ as well.", scanSeed)},
		X:     plots.Axis{Title: "Channels", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Share of a copy's rate", Format: show.Share}}
	for _, way := range scanPasses {
		panel := plots.Panel{Title: way.scan, Guides: []plots.Guide{{Y0: scanGoal, Y1: scanGoal}}}
		for _, name := range scanCells() {
			s := plots.Series{Label: name, Scatter: true}
			for _, r := range rates {
				if r.way == way && r.odd() && r.scan.Point.Cell == name {
					s.Points = append(s.Points, plots.Point{X: float64(r.scan.Point.Hidden), Y: r.share})
				}
			}
			panel.Series = append(panel.Series, s)
		}
		if slices.ContainsFunc(panel.Series, func(s plots.Series) bool { return len(s.Points) > 0 }) {
			ch.Panels = append(ch.Panels, panel)
		}
	}
	return ch
}

// kinds are the kinds of shapes: with an even number of channels, and with an odd one.
var kinds = []string{"aligned", "odd"}

// sharesOf returns the shares of a pass, of odd shapes or of the others, and the scan with the
// lowest.
func sharesOf(rates []scanRate, way scanPass, odd bool) (shares []float64, worst scanRate) {
	worst.share = math.Inf(1)
	for _, r := range rates {
		if r.way != way || r.odd() != odd {
			continue
		}
		if shares = append(shares, r.share); r.share < worst.share {
			worst = r
		}
	}
	return shares, worst
}

// scanGoal is the share of a copy that each scan is to reach.
const scanGoal = 0.8

// ratesOfPasses has a row for each pass and kind of shape.
func ratesOfPasses(rates []scanRate) *table.Table {
	t := &table.Table{
		Title: "Share of a copy's rate by pass",
		Columns: []table.Column{{Name: "Scan", Key: "scan"}, {Name: "Shapes", Key: "shapes"}, {Name: "Number", Key: "number", Right: true},
			{Name: "geometric mean", Key: "mean", Right: true}, {Name: "lowest", Key: "lowest", Right: true}, {Name: fmt.Sprintf("below %.0f %%", 100*scanGoal), Key: "below", Right: true}},
	}
	for _, way := range scanPasses {
		for kind, odd := range []bool{false, true} {
			shares, worst := sharesOf(rates, way, odd)
			if len(shares) == 0 {
				continue
			}
			below := 0
			for _, share := range shares {
				if share < scanGoal {
					below++
				}
			}
			t.Rows = append(t.Rows, []table.Cell{table.Text(way.scan), table.Text(kinds[kind]), table.Int(len(shares)),
				show.Number(100*estimate.Geomean(shares), "%.0f %%"), show.Number(100*worst.share, "%.0f %%"), table.Int(below)})
		}
	}
	return t
}

// sumOfRates has a row for each cell and pass.
func sumOfRates(rates []scanRate) *table.Table {
	t := &table.Table{
		Title: "Share of a copy's rate, geometric mean and lowest",
		Columns: []table.Column{{Name: "Cell", Key: "cell"}, {Name: "Scan", Key: "scan"},
			{Name: "aligned", Key: "aligned", Right: true}, {Name: "lowest", Key: "aligned_lowest", Right: true},
			{Name: "odd", Key: "odd", Right: true}, {Name: "lowest", Key: "odd_lowest", Right: true}},
	}
	for _, name := range scanCells() {
		for _, way := range scanPasses {
			shares := map[bool][]float64{}
			for _, r := range rates {
				if r.way == way && r.scan.Point.Cell == name {
					shares[r.odd()] = append(shares[r.odd()], 100*r.share)
				}
			}
			if len(shares) == 0 {
				continue
			}
			row := []table.Cell{table.Text(name), table.Text(way.scan)}
			for _, odd := range []bool{false, true} {
				if len(shares[odd]) == 0 {
					row = append(row, show.Missing(), show.Missing())
					continue
				}
				row = append(row, show.Number(estimate.Geomean(shares[odd]), "%.0f %%"), show.Number(slices.Min(shares[odd]), "%.0f %%"))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// tableOfRates has a row for each scan.
func tableOfRates(rates []scanRate) *table.Table {
	t := &table.Table{
		Title: "Scans beside a copy of as many bytes",
		Columns: []table.Column{{Name: "Cell", Key: "cell"}, {Name: "Scan", Key: "scan"}, {Name: "Channels", Key: "hidden", Right: true},
			{Name: "Sequences", Key: "batch", Right: true}, {Name: "Steps", Key: "steps", Right: true}, {Name: "Bytes", Key: "bytes", Right: true},
			{Name: "Time", Key: "seconds", Right: true}, {Name: "Rate", Key: "bytes_per_s", Right: true}, {Name: "of a copy", Key: "share", Right: true}},
	}
	for _, r := range rates {
		p, sec, bytes := r.scan.Point, r.scan.Seconds(), float64(r.scan.Work.Bytes)
		t.Rows = append(t.Rows, []table.Cell{table.Text(p.Cell), table.Text(r.way.scan), table.Int(p.Hidden), table.Int(p.Batch), table.Int(p.Steps),
			table.Number(bytes, quantity.Bytes(bytes)), table.Number(sec, quantity.SI(sec, "s")).Of(r.scan), table.Number(bytes/sec, quantity.SI(bytes/sec, "B/s")).Of(r.scan),
			show.Number(100*r.share, "%.0f %%")})
	}
	return t
}
