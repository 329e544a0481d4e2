// Package martin reproduces Martin and Cundy (2017), "Parallelizing Linear Recurrent Neural Nets
// Over Sequence Length".
package martin

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// A martinRow is a length with what the paper measured.
type martinRow struct {
	steps int
	paper []float64
}

// martinLengths returns the lengths of Martin and Cundy (2017), Figure 1. paper is the throughput of
// an LS-LSTM at batch 1, 2, 4, …, in 1000 events a second. An event is a step of a sequence.
//
// A GPU of today has the memory for longer ones.
func martinLengths(on study.Target) []martinRow {
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

// batches returns the number of minibatches at which l is measured: the paper's or, on a GPU, all of
// them, whether they fit or not.
func (l martinRow) batches(on study.Target) int {
	if on.GPU {
		return len(martinLSTM())
	}
	return len(l.paper)
}

// martinLSTM returns the paper's throughput of an LSTM, like martinRow.paper. It does not depend on
// the length.
func martinLSTM() []float64 {
	return []float64{0.74, 1.41, 2.64, 5.6, 10.7, 21.5, 39.7, 69.1, 99.8}
}

// Fig1 is the experiment martin-fig1.
var Fig1 = study.Experiment{
	ID: "martin-fig1", Title: "Training throughput of LS-LSTM and LSTM over length and minibatch",
	Source: "Martin & Cundy 2017, Figure 1",
	Unlike: "no embedding, one softmax, forward and backward alone",
	Parts: func(s study.Size, on study.Target) []study.Part {
		var scan, serial, lstm []record.Point
		for _, row := range martinLengths(on) {
			for i := range row.batches(on) {
				batch := 1 << i
				if s == study.Quick && (!slices.Contains([]int{256, 512, 2048}, row.steps) || i%2 != 0 || row.steps*batch > 2048) {
					continue
				}
				scan = append(scan, form.MartinPoint("ls-lstm", row.steps, batch))
				if batch == 1 && row.steps <= 4096 {
					serial = append(serial, form.MartinPoint("ls-lstm", row.steps, batch))
				}
			}
		}
		for i := range martinLSTM() {
			if s == study.Full || i%2 == 0 && 256<<i <= 2048 {
				lstm = append(lstm, form.MartinPoint("lstm", 256, 1<<i))
			}
		}
		serials := on.WithGPU([]grid.Spec{form.StepByStep(form.LSTMBest)}, form.LSTMForms()...)
		// The LSTM, with which all lengths are compared, comes first, should time run out.
		parts := append([]study.Part{{Points: lstm, Specs: serials}, {Points: serial, Specs: []grid.Spec{form.StepByStep(form.LSSerial)}}}, form.ScanParts(scan, on)...)
		parts = append(parts, sameLengths(s, on)...)
		var rivals []record.Point
		for _, p := range martinOthers(s, on) {
			q := p
			if q.Cell, q.Steps = "lstm", min(q.Steps, 256); !slices.Contains(rivals, q) {
				rivals = append(rivals, q)
			}
			parts = append(parts, form.ScanParts([]record.Point{p}, on)...)
		}
		if rivals != nil {
			parts = append(parts, study.Part{Points: rivals, Specs: serials})
		}
		return parts
	},
	Report: reportMartin,
}

// martinOthers returns what else is measured on a GPU: deeper stacks, and inference.
func martinOthers(s study.Size, on study.Target) []record.Point {
	if !on.GPU {
		return nil
	}
	steps, layers := 16384, []int{4, 8, 12}
	if s == study.Quick {
		steps, layers = 1024, []int{4}
	}
	var all []record.Point
	for _, n := range layers {
		p := form.MartinPoint("ls-lstm", steps, 1)
		p.Layers = n
		all = append(all, p)
	}
	inference := []int{256, 2048, 16384, paperLongest}
	if s == study.Quick {
		inference = []int{steps}
	}
	for _, n := range inference {
		p := form.MartinPoint("ls-lstm", n, 1)
		p.Pass = "forward"
		all = append(all, p)
	}
	return all
}

// launchedSteps is the longest sequence of which each step is launched: a graph of more
// takes minutes to capture.
const launchedSteps = 16384

// sameLengths returns parts with an LSTM of one sequence at the lengths of the LS-LSTM. The paper
// has the LSTM at 256 steps alone, since its rate does not depend on the length. A CPU takes seconds
// a run from 4096 steps on.
func sameLengths(s study.Size, on study.Target) (parts []study.Part) {
	if s == study.Quick {
		return nil
	}
	var launched, long []record.Point
	for _, row := range martinLengths(on) {
		switch p := form.MartinPoint("lstm", row.steps, 1); {
		case row.steps == 256 || row.paper == nil || !on.GPU && row.steps > 4096:
		case row.steps <= launchedSteps:
			launched = append(launched, p)
		default:
			long = append(long, p)
		}
	}
	if !on.GPU {
		return []study.Part{{Points: launched, Specs: []grid.Spec{form.StepByStep(form.LSTMBest), form.LSTMForms()[2]}}}
	}
	whole := slices.DeleteFunc(form.LSTMForms(), func(s grid.Spec) bool {
		return s.Label != form.LSTMPersistentGraph && s.Label != form.CuDNNLSTM && s.Label != form.CuDNNLSTM+" persistent"
	})
	return []study.Part{{Points: launched, Specs: append(form.SameForms()[:1], whole...)}, {Points: long, Specs: whole}}
}

// ofFigure1 reports whether a point is of the paper's figure, where an LSTM has 256
// steps.
func ofFigure1(p record.Point) bool {
	return p.Layers == 2 && p.Pass == "train" && (p.Cell != "lstm" || p.Steps == 256)
}

func reportMartin(all []record.Record, on study.Target) (*study.Report, error) {
	recs := slices.DeleteFunc(slices.Clone(all), func(r record.Record) bool { return !ofFigure1(r.Point) })
	var batches []int
	for _, p := range pick.Points(recs) {
		if !slices.Contains(batches, p.Batch) {
			batches = append(batches, p.Batch)
		}
	}
	slices.Sort(batches)
	t := &table.Table{
		Title:   "Training throughput in 1000 events/s, with the paper's in brackets",
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
			here := func(p record.Point) bool { return p.Steps == steps && p.Batch == b }
			i, printed := int(math.Log2(float64(b))), ""
			if i < len(paper) {
				printed = fmt.Sprintf(" (%g)", paper[i])
			}
			r := pick.Find(recs, label, here)
			switch {
			case r != nil:
				some = true
				if label == form.LSTMBest {
					lstm[b] = estimate.Events(r)
				}
				cells = append(cells, table.Number(estimate.Events(r), fmt.Sprintf("%.1f%s", estimate.Events(r), printed)).Of(r))
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
	row(form.LSTMBest, 256, martinLSTM())
	for _, s := range form.LSTMForms() {
		row(s.Label, 256, nil)
	}
	for _, l := range martinLengths(on) {
		row(form.LSScan, l.steps, l.paper)
	}
	for _, l := range martinLengths(on) {
		row(form.LSSerial, l.steps, nil)
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("experiments: no records of LS-LSTM or LSTM")
	}
	rep := &study.Report{Tables: []*table.Table{t}}
	if others := reportOthers(all); len(others.Rows) > 0 {
		rep.Tables = append(rep.Tables, others)
	}
	martinFindings(rep, recs, lstm, on, sameLength(all))
	martinFigures(rep, recs, on)
	return rep, nil
}

// reportOthers compares stacks of other depths and inference with the fastest LSTM, and with the one
// that runs step by step as a framework runs it.
func reportOthers(recs []record.Record) *table.Table {
	t := &table.Table{
		Title: "Deeper stacks and inference, one sequence, in 1000 events/s",
		Columns: []table.Column{
			{Name: "Layers", Key: "layers", Right: true}, {Name: "Pass", Key: "pass"}, {Name: "T", Key: "steps", Right: true}, {Name: form.LSScan, Key: "scan", Right: true},
			{Name: "Fastest LSTM", Key: "lstm"}, {Name: "", Key: "lstm_events", Right: true}, {Name: "×", Key: "speedup", Right: true}, {Name: "× naive", Key: "naive_speedup", Right: true},
		},
	}
	for _, p := range pick.Points(recs) {
		scan := pick.Find(recs, form.LSScan, func(q record.Point) bool { return q == p })
		if p.Cell != "ls-lstm" || ofFigure1(p) || scan == nil {
			continue
		}
		q := p
		q.Cell, q.Steps = "lstm", min(p.Steps, 256)
		var best, naive *record.Record
		for _, s := range append(form.LSTMForms(), form.StepByStep(form.LSTMBest)) {
			r := pick.Find(recs, s.Label, func(o record.Point) bool { return o == q })
			if r != nil && (best == nil || estimate.Events(r) > estimate.Events(best)) {
				best = r
			}
			if r != nil && s.Name == "naive" {
				naive = r
			}
		}
		row := []table.Cell{table.Int(p.Layers), table.Text(p.Pass), table.Int(p.Steps), show.Number(estimate.Events(scan), "%.1f").Of(scan)}
		over := func(r *record.Record) float64 {
			if r == nil {
				return math.NaN()
			}
			return estimate.Events(scan) / estimate.Events(r)
		}
		if best == nil {
			row = append(row, show.Missing(), show.Missing())
		} else {
			row = append(row, table.Text(best.Impl.Label), show.Number(estimate.Events(best), "%.1f").Of(best))
		}
		t.Rows = append(t.Rows, append(row, show.Ratio(over(best)), show.Ratio(over(naive))))
	}
	return t
}

// outOfMemory reports whether the newest record of a label at a point was
// declined for want of memory.
func outOfMemory(recs []record.Record, label string, at func(record.Point) bool) bool {
	for _, r := range slices.Backward(recs) {
		if r.Impl.Label == label && at(r.Point) {
			return r.ReasonCode != nil && *r.ReasonCode == record.ReasonMemory
		}
	}
	return false
}

// martinFigures draws the LS-LSTM by length beside the LSTM, and the LSTM's forms. The table has every
// form of NVIDIA's library, the figure the fastest.
func martinFigures(rep *study.Report, recs []record.Record, on study.Target) {
	var lengths []int // with a line: as many as can be told apart beside the LSTM's
	for _, l := range martinLengths(on) {
		if slices.ContainsFunc(recs, func(r record.Record) bool { return r.Impl.Label == form.LSScan && r.Point.Steps == l.steps }) {
			lengths = append(lengths, l.steps)
		}
	}
	const most = 7
	thinned := len(lengths) > most
	if thinned {
		n := 0
		lengths = slices.DeleteFunc(lengths, func(int) bool { n++; return n%2 == 0 })
	}
	var some, forms []record.Record
	for _, r := range recs {
		label := r.Impl.Label
		if label == form.LSTMBest || label == form.LSScan && slices.Contains(lengths, r.Point.Steps) {
			some = append(some, r)
		}
		if r.Point.Cell == "lstm" {
			forms = append(forms, r)
		}
	}
	fig, err := plots.Lines(some, plots.Spec{X: "batch", Y: "events", Series: "steps", Panel: "cell", Machine: on.Name, Title: "Martin & Cundy Figure 1: training throughput over minibatch, one line per length"})
	if err == nil && thinned {
		fig.Notes = append(fig.Notes, "Every other length is drawn; the table lists all.")
	}
	if err == nil {
		coincide(fig)
		paperRates(fig, lengths, on)
	}
	rep.Add("martin-fig1", fig, err)
	if len(pick.Labels(forms)) > 1 {
		fig, err := plots.Lines(form.FastestForms(forms), plots.Spec{X: "batch", Y: "events", Machine: on.Name, Title: "LSTM of 256 steps: training throughput by technique"})
		rep.Add("martin-fig1-lstm", fig, err)
	}
}
