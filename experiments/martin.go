package experiments

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"rnnbench/model"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// A martinRow is a length with what the paper measured.
type martinRow struct {
	steps int
	paper []float64
}

// martinLengths are those of Martin and Cundy (2017), Figure 1, with the throughput of
// an LS-LSTM in 1000 events a second at batch 1, 2, 4, … An event is a step of a
// sequence.
//
// A GPU of today has the memory for longer ones.
func martinLengths(on Target) []martinRow {
	rows := []martinRow{
		{256, []float64{13.1, 28.1, 47.9, 66.7, 87.3, 101, 111, 116, 117}},
		{512, []float64{24.1, 48.3, 69.8, 82, 105, 114, 117, 118, 118}},
		{1024, []float64{39, 65.3, 87.6, 100, 112, 115, 117, 116}},
		{2048, []float64{57, 90, 106, 117, 120, 121, 121}},
		{4096, []float64{78.9, 107, 118, 123, 125, 123}},
		{8192, []float64{104, 120, 125, 126, 126}},
		{16384, []float64{119, 126, 129, 127}},
		{32768, []float64{126, 129, 129}},
		{65536, []float64{129, 130}},
	}
	if on.GPU {
		rows = append(rows, martinRow{steps: 262144}, martinRow{steps: 1048576})
	}
	return rows
}

// batches are the minibatches at which l is measured: those of the paper, and on
// a GPU all of them, whether they fit or not.
func (l martinRow) batches(on Target) int {
	if on.GPU {
		return len(martinLSTM())
	}
	return len(l.paper)
}

// martinLSTM is that of an LSTM, which does not depend on the length.
func martinLSTM() []float64 {
	return []float64{0.74, 1.41, 2.64, 5.6, 10.7, 21.5, 39.7, 69.1, 99.8}
}

// martinPoint is the network of Figure 1: an embedding of 40 and a polarity in,
// two maps of 34² positions out.
func martinPoint(cell string, steps, batch int) results.Point {
	return results.Point{Cell: cell, Pass: "train", Input: 41, Hidden: 256, Layers: 2, Output: 2 * 34 * 34, Steps: steps, Batch: batch, Precision: "fp32"}
}

// Labels of Figure 1.
const (
	lsScan   = "LS-LSTM, scan"
	lsSerial = "LS-LSTM, step by step"
	lstmBest = "LSTM"
)

// stepByStep is the best serial form: all but the recurrence is as batched as
// can be.
func stepByStep(label string) grid.Spec {
	return spec(label, "cudnnstyle", knob.Params{"inputbatch": 0, "overlap": 0, "streams": 1})
}

var martinFig1 = Experiment{
	ID: "martin-fig1", Title: "Training throughput of LS-LSTM and LSTM over length and minibatch",
	Source: "Martin & Cundy 2017, Figure 1",
	Parts: func(s Size, on Target) []Part {
		var scan, serial, lstm []results.Point
		for _, row := range martinLengths(on) {
			for i := range row.batches(on) {
				batch := 1 << i
				if s == Quick && (!slices.Contains([]int{256, 512, 2048}, row.steps) || i%2 != 0 || row.steps*batch > 2048) {
					continue
				}
				scan = append(scan, martinPoint("ls-lstm", row.steps, batch))
				if batch == 1 && row.steps <= 4096 {
					serial = append(serial, martinPoint("ls-lstm", row.steps, batch))
				}
			}
		}
		for i := range martinLSTM() {
			if s == Full || i%2 == 0 && 256<<i <= 2048 {
				lstm = append(lstm, martinPoint("lstm", 256, 1<<i))
			}
		}
		serials := on.beside([]grid.Spec{stepByStep(lstmBest)}, lstmForms()...)
		// What all lengths are set beside comes first, should time run out.
		parts := append([]Part{{lstm, serials}, {serial, []grid.Spec{stepByStep(lsSerial)}}}, scanParts(scan, on)...)
		for _, p := range martinOthers(s, on) {
			q := p
			q.Cell, q.Steps = "lstm", min(q.Steps, 256)
			parts = append(append(parts, scanParts([]results.Point{p}, on)...), Part{[]results.Point{q}, serials})
		}
		return parts
	},
	Report: reportMartin,
}

// scanRows is how many rows of products a scan on a GPU works on at a time: so
// many that launches take no time beside them.
const scanRows = 1 << 16

// scanParts are the parts of LS-LSTM by scan, on a GPU one per minibatch.
func scanParts(points []results.Point, on Target) []Part {
	if !on.GPU {
		return []Part{{points, []grid.Spec{spec(lsScan, "scan", nil)}}}
	}
	var parts []Part
	for batch, group := range by(points, func(p results.Point) int { return p.Batch }) {
		parts = append(parts, Part{group, []grid.Spec{spec(lsScan, "scan", knob.Params{"inputbatch": max(1, scanRows/batch), "graph": 1})}})
	}
	return parts
}

// by yields points in groups, in the order of their keys.
func by(points []results.Point, key func(results.Point) int) iter.Seq2[int, []results.Point] {
	groups := map[int][]results.Point{}
	for _, p := range points {
		groups[key(p)] = append(groups[key(p)], p)
	}
	return func(yield func(int, []results.Point) bool) {
		for _, k := range slices.Sorted(maps.Keys(groups)) {
			if !yield(k, groups[k]) {
				return
			}
		}
	}
}

// martinOthers are measured besides where there is a GPU: deeper stacks, and
// inference.
func martinOthers(s Size, on Target) []results.Point {
	if !on.GPU {
		return nil
	}
	steps, layers := 16384, []int{4, 8, 12}
	if s == Quick {
		steps, layers = 1024, []int{4}
	}
	var all []results.Point
	for _, n := range layers {
		p := martinPoint("ls-lstm", steps, 1)
		p.Layers = n
		all = append(all, p)
	}
	p := martinPoint("ls-lstm", steps, 1)
	p.Pass = "forward"
	return append(all, p)
}

// ofFigure1 reports whether a point is of the paper's figure.
func ofFigure1(p results.Point) bool { return p.Layers == 2 && p.Pass == "train" }

// lstmForms are the LSTMs that a GPU has besides: as a framework runs one, as a
// graph, with weights on chip, and the vendor's.
func lstmForms() []grid.Spec {
	forms := []grid.Spec{spec("LSTM, naive", "naive", nil), graphed("LSTM, graph", stepByStep("")), spec("LSTM, persistent", "persistent", nil)}
	for _, v := range vendors() {
		forms = append(forms, spec("cudnn LSTM"+strings.TrimPrefix(v.Label, "cudnn"), v.Name, v.Knobs))
	}
	return forms
}

// events is a record's throughput in 1000 events a second.
func events(r *results.Record) float64 {
	return float64(r.Point.Steps*r.Point.Batch) / r.Seconds() / 1000
}

func reportMartin(all []results.Record, on Target) (*Report, error) {
	recs := slices.DeleteFunc(slices.Clone(all), func(r results.Record) bool { return !ofFigure1(r.Point) })
	var batches []int
	for _, p := range points(recs) {
		if !slices.Contains(batches, p.Batch) {
			batches = append(batches, p.Batch)
		}
	}
	slices.Sort(batches)
	t := &table.Table{
		Title:   "Training throughput, 1000 events/s: here, and in the paper in brackets",
		Columns: []table.Column{{Name: "Network", Key: "network"}, {Name: "T", Key: "steps", Right: true}},
	}
	for _, b := range batches {
		t.Columns = append(t.Columns, table.Column{Name: fmt.Sprintf("B=%d", b), Key: fmt.Sprintf("batch_%d", b), Right: true})
	}
	lstm := map[int]float64{} // by batch
	row := func(label string, steps int, paper []float64) {
		cells := []table.Cell{table.Text(label), table.Int(steps)}
		some := false
		for _, b := range batches {
			here := func(p results.Point) bool { return p.Steps == steps && p.Batch == b }
			i, printed := int(math.Log2(float64(b))), ""
			if i < len(paper) {
				printed = fmt.Sprintf(" (%g)", paper[i])
			}
			r := find(recs, label, here)
			switch {
			case r != nil:
				some = true
				if label == lstmBest {
					lstm[b] = events(r)
				}
				cells = append(cells, table.Number(events(r), fmt.Sprintf("%.1f%s", events(r), printed)))
			case outOfMemory(recs, label, here):
				some = true
				cells = append(cells, table.Cell{Text: "memory" + printed})
			default:
				cells = append(cells, table.Cell{Text: "–" + printed})
			}
		}
		if some {
			t.Rows = append(t.Rows, cells)
		}
	}
	row(lstmBest, 256, martinLSTM())
	for _, s := range lstmForms() {
		row(s.Label, 256, nil)
	}
	for _, l := range martinLengths(on) {
		row(lsScan, l.steps, l.paper)
	}
	for _, l := range martinLengths(on) {
		row(lsSerial, l.steps, nil)
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("experiments: no records of LS-LSTM or LSTM")
	}
	rep := &Report{Tables: []*table.Table{t}}
	if others := reportOthers(all); len(others.Rows) > 0 {
		rep.Tables = append(rep.Tables, others)
	}
	rep.Findings = martinFindings(recs, lstm, on)
	fig, err := plots.Lines(recs, plots.Spec{X: "batch", Y: "events", Series: "steps", Panel: "cell", Machine: on.Name, Title: "Martin & Cundy Figure 1: training throughput over minibatch, a line per length"})
	rep.add("martin-fig1", fig, err)
	return rep, nil
}

// reportOthers sets stacks of other depths and inference beside the fastest LSTM
// and the one that runs step by step as a framework's does.
func reportOthers(recs []results.Record) *table.Table {
	t := &table.Table{
		Title: "Deeper stacks, and inference, one sequence: 1000 events/s",
		Columns: []table.Column{
			{Name: "Layers", Key: "layers", Right: true}, {Name: "Pass", Key: "pass"}, {Name: "T", Key: "steps", Right: true}, {Name: lsScan, Key: "scan", Right: true},
			{Name: "Fastest LSTM", Key: "lstm"}, {Name: "", Key: "lstm_events", Right: true}, {Name: "×", Key: "speedup", Right: true}, {Name: "× naive", Key: "naive_speedup", Right: true},
		},
	}
	for _, p := range points(recs) {
		scan := find(recs, lsScan, func(q results.Point) bool { return q == p })
		if ofFigure1(p) || scan == nil {
			continue
		}
		q := p
		q.Cell, q.Steps = "lstm", min(p.Steps, 256)
		var best, naive *results.Record
		for _, s := range append(lstmForms(), stepByStep(lstmBest)) {
			r := find(recs, s.Label, func(o results.Point) bool { return o == q })
			if r != nil && (best == nil || events(r) > events(best)) {
				best = r
			}
			if r != nil && s.Name == "naive" {
				naive = r
			}
		}
		row := []table.Cell{table.Int(p.Layers), table.Text(p.Pass), table.Int(p.Steps), number(events(scan), "%.1f")}
		over := func(r *results.Record) float64 {
			if r == nil {
				return math.NaN()
			}
			return events(scan) / events(r)
		}
		if best == nil {
			row = append(row, missing(), missing())
		} else {
			row = append(row, table.Text(best.Impl.Label), number(events(best), "%.1f"))
		}
		t.Rows = append(t.Rows, append(row, number(over(best), "%.2f"), number(over(naive), "%.2f")))
	}
	return t
}

// outOfMemory reports whether the newest record of a label at a point was
// declined for want of memory.
func outOfMemory(recs []results.Record, label string, at func(results.Point) bool) bool {
	for _, r := range slices.Backward(recs) {
		if r.Impl.Label == label && at(r.Point) {
			return r.ReasonCode != nil && *r.ReasonCode == results.ReasonMemory
		}
	}
	return false
}

func martinFindings(recs []results.Record, lstm map[int]float64, on Target) []string {
	var out []string
	var first, last *results.Record
	lo, hi, at := math.Inf(1), 0.0, ""
	for i := range recs {
		r := &recs[i]
		if r.Impl.Label != lsScan || r.Status != results.OK {
			continue
		}
		if v := lstm[r.Point.Batch]; v > 0 {
			ratio := events(r) / v
			if lo = min(lo, ratio); ratio > hi {
				hi, at = ratio, fmt.Sprintf("T=%d, B=%d", r.Point.Steps, r.Point.Batch)
			}
		}
		if r.Point.Batch == 1 {
			if first == nil || r.Point.Steps < first.Point.Steps {
				first = r
			}
			if last == nil || r.Point.Steps > last.Point.Steps {
				last = r
			}
		}
	}
	if hi > 0 {
		out = append(out, fmt.Sprintf("LS-LSTM by scan over the LSTM at the same minibatch: ×%.2f to ×%.2f (%s). The paper: ×1.17 to ×175. %s", lo, hi, at, on.say(
			"The paper's LSTM at batch 1 waits for thousands of small operations a second to start on a GPU; here its 1 MiB of recurrent weights is read from caches at each step, and the output layer, which is the same for both, takes over a third of the operations.",
			"This LSTM has all but its recurrence batched over all steps; the paper's is a framework's, step by step.")))
	}
	if first != nil && last != first {
		out = append(out, fmt.Sprintf("One sequence at a time: %.1f thousand events a second of length %d, %.1f of length %d, ×%.2f. The paper: 13.1 at 256, 129 at 65536: a GPU of thousands of threads needs as many steps to be busy%s", events(first), first.Point.Steps, events(last), last.Point.Steps, events(last)/events(first), on.say(", two cores a few hundred.", ".")))
	}
	out = append(out, martinForms(recs)...)
	var gains []string
	for _, l := range martinLengths(on) {
		one := func(p results.Point) bool { return p.Steps == l.steps && p.Batch == 1 }
		if a, b := find(recs, lsSerial, one), find(recs, lsScan, one); a != nil && b != nil {
			gains = append(gains, fmt.Sprintf("×%.2f at T=%d", a.Seconds()/b.Seconds(), l.steps))
		}
	}
	if gains != nil {
		out = append(out, "The same LS-LSTM by scan over step by step, one sequence: "+strings.Join(gains, ", ")+".")
	}
	return out
}

// martinForms sets the best scan of one sequence beside every LSTM of one.
func martinForms(recs []results.Record) (out []string) {
	one := func(p results.Point) bool { return p.Batch == 1 }
	var best *results.Record
	for i := range recs {
		if r := &recs[i]; r.Impl.Label == lsScan && r.Status == results.OK && one(r.Point) && (best == nil || events(r) > events(best)) {
			best = r
		}
	}
	var parts []string
	for _, s := range lstmForms() {
		if r := find(recs, s.Label, one); best != nil && r != nil {
			parts = append(parts, fmt.Sprintf("×%.1f over %s", events(best)/events(r), s.Label))
		}
	}
	if parts != nil {
		out = append(out, fmt.Sprintf("One sequence, LS-LSTM of length %d: %s.", best.Point.Steps, strings.Join(parts, ", ")))
	}
	return out
}

// martinWays are the ways to run the recurrence of a layer.
func martinWays(on Target) []grid.Spec {
	if on.GPU {
		return []grid.Spec{stepByStep("step by step"), graphed("step by step, graph", stepByStep("")), spec("scan", "scan", knob.Params{"inputbatch": 0, "graph": 1})}
	}
	return []grid.Spec{
		stepByStep("step by step"),
		spec("one worker", "scan", knob.Params{"scanworkers": 1}),
		spec("channels split", "scan", knob.Params{"scansplit": 1}),
		spec("time split", "scan", knob.Params{"scansplit": allWorkers}),
	}
}

const allWorkers = 1024 // as many as there are

var martinKernel = Experiment{
	ID: "martin-kernel", Title: "The recurrence of a layer, serial and parallel, over length and channels",
	Source: "Martin & Cundy 2017, sections 2.1 and 2.3",
	Parts: func(s Size, on Target) []Part {
		hidden, steps := []int{16, 64, 256, 1024}, []int{256, 1024, 4096, 16384, 65536}
		if s == Quick {
			hidden, steps = []int{16, 256}, []int{64, 512, 4096}
		}
		var all []results.Point
		for _, h := range hidden {
			for _, n := range steps {
				all = append(all, results.Point{Cell: "gilr", Pass: "forward", Input: 1, Hidden: h, Layers: 1, Steps: n, Batch: 1, Precision: "fp32"})
			}
		}
		return []Part{{all, martinWays(on)}}
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		t := &table.Table{
			Title:   "Forward pass of a GILR layer with one input, a sequence",
			Columns: []table.Column{{Name: "n", Key: "hidden", Right: true}, {Name: "T", Key: "steps", Right: true}},
		}
		ways := martinWays(on)
		for _, w := range ways {
			t.Columns = append(t.Columns, table.Column{Name: w.Label, Key: strings.ReplaceAll(w.Label, " ", "_") + "_s", Right: true})
		}
		last := ways[len(ways)-1].Label
		t.Columns = append(t.Columns, table.Column{Name: on.say("one worker", "step by step") + " / " + last, Key: "speedup", Right: true},
			table.Column{Name: "by 2.1", Key: "model_speedup", Right: true},
			table.Column{Name: "copy", Key: "copy_s", Right: true}, table.Column{Name: "copy / " + last, Key: "of_copy", Right: true})
		serial := map[bool]int{false: 1, true: 0}[on.GPU] // the way that the last one is set beside
		var wins, longest int
		var gains, all []float64
		for _, p := range points(recs) {
			row := []table.Cell{table.Int(p.Hidden), table.Int(p.Steps)}
			longest = max(longest, p.Steps)
			var rec []*results.Record
			for _, w := range ways {
				r := find(recs, w.Label, func(q results.Point) bool { return q == p })
				if rec = append(rec, r); r == nil {
					row = append(row, missing())
					continue
				}
				row = append(row, table.Number(r.Seconds(), quantity.SI(r.Seconds(), "s")))
			}
			up, predicted, copied, of := math.NaN(), math.NaN(), missing(), math.NaN()
			if b := rec[len(rec)-1]; b != nil && on.Copy > 0 {
				sec := float64(b.Work.Bytes) / on.Copy
				copied, of = table.Number(sec, quantity.SI(sec, "s")), 100*sec/b.Seconds()
			}
			if a, b := rec[serial], rec[len(rec)-1]; a != nil && b != nil {
				up, predicted = a.Seconds()/b.Seconds(), martinModel(p, on, workers(b.Device))
				all = append(all, up)
				if up > 1 {
					wins++
				}
			}
			if !on.GPU && rec[0] != nil && rec[2] != nil {
				gains = append(gains, rec[0].Seconds()/rec[2].Seconds())
			}
			t.Rows = append(t.Rows, append(row, number(up, "%.2f"), number(predicted, "%.2f"), copied, number(of, "%.1f %%")))
		}
		if len(t.Rows) == 0 {
			return nil, fmt.Errorf("experiments: no records of the recurrence")
		}
		rep := &Report{Tables: []*table.Table{t}}
		if on.Copy > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("Copy: what reading and writing as many bytes of memory takes as the operations do, the product with one input included, at the %s measured. It is the limit where they do not fit into caches.", quantity.SI(on.Copy, "B/s")))
		}
		if on.GPU {
			if len(all) > 0 {
				rep.Findings = append(rep.Findings, fmt.Sprintf("A scan over one operation per step: ×%.1f (geometric mean), up to ×%.0f. By section 2.1 a scan does 6n(T/p + lg p) operations for 2nT, which %d threads share; step by step each step is a launch, which the model does not count.", geomean(all), slices.Max(all), gpuThreads))
			}
		} else {
			if len(all) > 0 {
				rep.Findings = append(rep.Findings, fmt.Sprintf("Splitting time is faster than one worker at %d of %d points. By section 2.1, C = 6n(T/p + lg p) against 2nT, it is so from %d processors on at %d steps: the model counts operations of the recurrence alone; gates, which both passes compute, and memory are not in it.", wins, len(all), model.ScanCrossover(longest), longest))
			}
			rep.Findings = append(rep.Findings, "The times include the gates and the product with one input, which all workers share in every column. What the recurrence alone does against the machine's copy rate, BenchmarkScan of device/cpu measures.")
		}
		if len(gains) > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("A scan with channels split over one operation per step: ×%.1f (geometric mean).", geomean(gains)))
		}
		fig, err := plots.Lines(recs, plots.Spec{X: "steps", Y: "events", Panel: "hidden", Machine: on.Name, Title: "A GILR layer over length: events per second, one sequence"})
		rep.add("martin-kernel", fig, err)
		return rep, nil
	},
}

// gpuThreads is about how many threads a GPU of today runs at once.
const gpuThreads = 1 << 17

// martinModel is the speed-up of a parallel scan by section 2.1. A GPU's threads
// are first shared by the channels, serially as well as in parallel.
func martinModel(p results.Point, on Target, workers int) float64 {
	if on.GPU {
		workers = max(1, min(p.Steps, gpuThreads/p.Hidden))
	}
	return model.SerialScan(1, p.Steps) / model.ParallelScan(1, p.Steps, workers)
}

// workers is the number that a device's key ends with; 1 if it does not.
func workers(device string) int {
	var n int
	if _, err := fmt.Sscanf(device[strings.LastIndex(device, "-")+1:], "%dt", &n); err != nil || n < 1 {
		return 1
	}
	return n
}
