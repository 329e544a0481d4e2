package experiments_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
)

// TestPlans lays out every point of every experiment with every technique that it names. No
// technique declines a planned point, and no two techniques of a part have the same label.
func TestPlans(t *testing.T) {
	for _, e := range experiments.All() {
		for _, size := range []study.Size{study.Quick, study.Full} {
			for _, part := range append(partsOf(e, size, cpu), partsOf(e, size, gpu)...) {
				var labels []string
				for _, s := range part.Specs {
					if slices.Contains(labels, s.Label) {
						t.Errorf("%s: two techniques are called %q", e.ID, s.Label)
					}
					labels = append(labels, s.Label)
				}
				for _, p := range part.Points {
					problem, err := tuner.Problem(p)
					if err != nil {
						t.Errorf("%s: %v: %v", e.ID, p, err)
						continue
					}
					for _, s := range part.Specs {
						problem := problem
						if size == study.Full || testing.Short() { // laying out thousands of steps takes its time
							most := max(4, s.Knobs["inputbatch"])
							problem.Steps, problem.History = min(problem.Steps, most), min(problem.History, most)
						}
						tech := impl.Lookup(s.Name)
						if s.Name == auto.Name {
							continue
						}
						if tech == nil && slices.ContainsFunc(rivals, func(r study.Rival) bool { return r.Name == s.Name }) {
							continue
						}
						_, own := s.Knobs.Split(tech.Knobs(problem)) // the rest are the device's
						if _, _, err := rnn.Layout(tech, problem, own); err != nil {
							t.Errorf("%s: %v: %s: %v", e.ID, p, s.Label, err)
						}
					}
				}
			}
		}
	}
}

// The targets that experiments are tested on.
var (
	cpu    = study.Target{Name: "synthetic", Rivals: rivals}
	gpu    = study.Target{Name: "synthetic", GPU: true, Copy: 1e12, Rivals: rivals}
	rivals = []study.Rival{{Name: "pytorch", Knobs: []knob.Knob{{Name: "graph", Values: []int{0, 1}}}}, {Name: "mine"}, {Name: "rnnbench-torch"}, {Name: "fla", Knobs: []knob.Knob{{Name: "recurrent", Values: []int{0, 1}}}}}
)

// partsOf lists what an experiment sweeps, then what it trains.
func partsOf(e study.Experiment, size study.Size, on study.Target) []study.Part {
	var all []study.Part
	if e.Parts != nil {
		all = append(all, e.Parts(size, on)...)
	}
	if e.Trainings != nil {
		for _, t := range e.Trainings(size, on) {
			all = append(all, t.Part)
		}
	}
	return all
}

// learnt returns records of a network that learns, made from r: its loss falls, faster for each
// later technique.
func learnt(r record.Record, t record.TrainingPlan, technique int) []record.Record {
	n := t.Iterations
	if n == 0 {
		n = 1000
	}
	var recs []record.Record
	for i := 1; i <= 10; i++ {
		k := n * i / 10
		loss := 1 + 3*math.Exp(-float64(i)*0.3*(1+0.1*float64(technique)))
		one := r
		one.Seq, one.Training = i, &record.Training{
			Iterations: k, Wall: float64(k) * r.Stats.Median, Frames: int64(k) * int64(r.Point.Batch) * int64(r.Point.Steps),
			Loss: loss, MeanLoss: loss, MeanOf: 1, Optimizer: t.Optimizer, Data: t.Data, Repeat: t.Repeat,
		}
		if t.Beside {
			s := r.Stats.Median
			one.Training.Beside = &record.Beside{Pairs: 9, Ratio: 1.04, Iteration: s, Pass: s / 1.04, LeastIteration: 0.9 * s, LeastPass: 0.9 * s / 1.03}
		}
		if t.Reference {
			of := &record.Comparison{}
			for range k {
				of.Curve = append(of.Curve, loss)
				of.Loss, of.Width = append(of.Loss, loss+0.01), append(of.Width, 0.1)
			}
			one.Training.Comparison = of
		}
		if t.Batches > 0 {
			one.Training.HeldOut = &record.Score{Loss: 1.1 * loss, Top1: 1 / loss / 2, Top5: 1 / loss, Top20: 1 / loss}
			if r.Point.Transcript > 0 {
				wrong := loss / 4
				one.Training.HeldOut.LabelErrors = &wrong
			}
		}
		recs = append(recs, one)
	}
	return recs
}

// synthetic makes records of an experiment's quick points, each technique a
// tenth faster than the one before.
func synthetic(e study.Experiment, on study.Target) []record.Record {
	var recs []record.Record
	var parts []study.Part
	if e.Parts != nil {
		parts = e.Parts(study.Quick, on)
	}
	recs = append(recs, recordsOf(parts)...)
	if e.Trainings != nil {
		for _, t := range e.Trainings(study.Quick, on) {
			part := recordsOf([]study.Part{t.Part})
			for i, r := range part {
				recs = append(recs, learnt(r, t.Plan, i%len(t.Specs))...)
			}
		}
	}
	return recs
}

// recordsOf are records of all points of parts.
func recordsOf(parts []study.Part) []record.Record {
	var recs []record.Record
	for _, part := range parts {
		for _, p := range part.Points {
			problem, err := tuner.Problem(p)
			if err != nil {
				panic(err)
			}
			for i, s := range part.Specs {
				sec := float64(problem.FLOPs()) / 1e11 / (1 + 0.1*float64(i))
				lo, hi := 0.99*sec, 1.01*sec
				joules, watts := 300*sec, 300.0
				recs = append(recs, record.Record{
					Schema: record.Schema, Point: p, Device: "cpu-synthetic-2t", Status: record.OK,
					Impl:   record.Impl{Name: s.Name, Label: s.Label, Knobs: s.Knobs, Streams: 1},
					Work:   record.Work{Model: "products", Flops: problem.FLOPs(), Bytes: problem.FLOPs(), Memory: 1 << 20 * int64(p.Batch+p.Layers)},
					Stats:  &record.Stats{N: 10, Min: lo, Q1: lo, Median: sec, Q3: hi, Max: hi, Mean: sec, Lo: &lo, Hi: &hi, Level: 0.95, Stop: "target_ci"},
					Energy: &record.Energy{Joules: &joules, Watts: &watts, Windows: []float64{300 * lo, joules, 300 * hi}, Source: "synthetic"},
				})
			}
		}
	}
	return recs
}

// TestReports has every experiment report on synthetic records, and on fewer and fewer of them.
// Missing records must not break a report.
func TestReports(t *testing.T) {
	for _, on := range []study.Target{cpu, gpu} {
		reports(t, on)
	}
}

func reports(t *testing.T, on study.Target) {
	for _, e := range experiments.All() {
		if why, _ := e.Declines(on); why != "" {
			continue
		}
		recs := synthetic(e, on)
		rep, err := e.Report(recs, on)
		if err != nil {
			t.Errorf("%s: %v", e.ID, err)
			continue
		}
		if len(rep.Tables) == 0 || len(rep.Figures)+len(rep.Files) == 0 || len(rep.Findings) == 0 {
			t.Errorf("%s: %d tables, %d figures, %d findings: %q", e.ID, len(rep.Tables), len(rep.Figures), len(rep.Findings), rep.Findings)
		}
		numbers(t, e.ID, rep)
		for _, tab := range rep.Tables {
			var b bytes.Buffer
			if err := tab.Write(&b, "markdown", table.Options{}); err != nil || len(tab.Rows) == 0 || strings.Contains(b.String(), "NaN") {
				t.Errorf("%s: %v\n%s", e.ID, err, b.String())
			}
		}
		for _, f := range rep.Figures {
			var b bytes.Buffer
			if err := plots.Write(&b, f.Figure, "svg"); err != nil {
				t.Errorf("%s: %s: %v", e.ID, f.Name, err)
			}
		}
		for _, keep := range []int{len(recs) - 1, len(recs) / 2, 1, 0} {
			if keep < 0 || keep > len(recs) {
				continue // an experiment without records
			}
			rep, err := e.Report(recs[:keep], on)
			if err == nil && rep == nil {
				t.Errorf("%s: no report and no error on %d records", e.ID, keep)
			}
			numbers(t, e.ID, rep)
			said(t, e.ID, rep)
		}
		labels := map[string]bool{}
		for _, r := range recs {
			labels[r.Impl.Label] = true
		}
		for label := range labels {
			if rep, err := e.Report(without(recs, label), on); err == nil {
				said(t, e.ID, rep)
			}
		}
		for i := range recs { // nothing succeeded
			recs[i].Status, recs[i].Stats = record.Failed, nil
			if t := recs[i].Training; t != nil {
				recs[i].Training = &record.Training{Optimizer: t.Optimizer, Data: t.Data}
			}
		}
		if rep, err := e.Report(recs, on); err == nil && rep == nil {
			t.Errorf("%s: no report and no error on failures", e.ID)
		}
	}
}

// said checks that no finding is about no points at all.
func said(t *testing.T, id string, rep *study.Report) {
	t.Helper()
	for _, empty := range []string{" of 0 points", ": .", ": ,", "NaN×"} {
		if s := about(rep, empty); s != "" {
			t.Errorf("%s: %q", id, s)
		}
	}
}

// numbers checks that a column of numbers holds no words in data, such as a dash for a missing
// value.
func numbers(t *testing.T, id string, rep *study.Report) {
	t.Helper()
	if rep == nil {
		return
	}
	for _, tab := range rep.Tables {
		for i, c := range tab.Columns {
			for _, row := range tab.Rows {
				if v, word := row[i].Value.(string); word && c.Key != "" && (c.Right || strings.HasPrefix(v, "–")) {
					t.Errorf("%s: %s is %q", id, c.Key, v)
				}
			}
		}
	}
}

// TestQuickOrder: the table of a quick reproduction has its rows in the order of the quick plan,
// even those that the full plan has as well.
func TestQuickOrder(t *testing.T) {
	e, err := experiments.Lookup("martin-kernel")
	if err != nil {
		t.Fatal(err)
	}
	recs := synthetic(e, cpu)
	slices.Reverse(recs)
	rep, err := e.On(record.Device{Key: "cpu-synthetic-2t"}, recs)
	if err != nil {
		t.Fatal(err)
	}
	points := e.Parts(study.Quick, cpu)[0].Points
	if len(rep.Tables[0].Rows) != len(points) {
		t.Fatalf("%d rows of %d points", len(rep.Tables[0].Rows), len(points))
	}
	for i, row := range rep.Tables[0].Rows {
		if p := points[i]; row[0].Text != fmt.Sprint(p.Hidden) || row[1].Text != fmt.Sprint(p.Steps) {
			t.Errorf("row %d is of n=%s, T=%s, want %d, %d", i, row[0].Text, row[1].Text, p.Hidden, p.Steps)
		}
	}
}

// TestMartinKernelCopy compares scans with a copy of as many bytes, if the rate of copies is known.
func TestMartinKernelCopy(t *testing.T) {
	e, err := experiments.Lookup("martin-kernel")
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []study.Target{cpu, gpu} {
		recs := synthetic(e, on)
		rep, err := e.Report(recs, on)
		if err != nil {
			t.Fatal(err)
		}
		tab := rep.Tables[0]
		at := slices.IndexFunc(tab.Columns, func(c table.Column) bool { return c.Key == "copy_s" })
		for i, row := range tab.Rows {
			if on.Copy == 0 {
				if row[at].Text != "–" || row[at+1].Text != "–" {
					t.Errorf("%d: a copy at an unknown rate: %v", i, row[at:])
				}
				continue
			}
			ways := len(recs) / len(tab.Rows) // those of a point follow each other; scan is the last
			scan := recs[ways*(i+1)-1]
			want := float64(scan.Work.Bytes) / on.Copy
			if row[at].Value != want || math.Abs(row[at+1].Value.(float64)-100*want/scan.Seconds()) > 1e-9 {
				t.Errorf("%d: %v, want %v", i, row[at:], want)
			}
		}
	}
}

// TestPartOfHwang: a report says nothing of the best speed if a budget left out the numbers of
// sequences that reach it.
func TestPartOfHwang(t *testing.T) {
	e, err := experiments.Lookup("hwang-fig3")
	if err != nil {
		t.Fatal(err)
	}
	all := synthetic(e, cpu)
	for _, most := range []int{1, 8, 1024} {
		recs := slices.DeleteFunc(slices.Clone(all), func(r record.Record) bool { return r.Point.Batch > most })
		rep, err := e.Report(recs, cpu)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(strings.Join(rep.Findings, "\n"), "of the best speed")
		if said != (most >= 64) {
			t.Errorf("to %d sequences: %q", most, rep.Findings)
		}
	}
}

// TestLadderIsThePapers: the speed-ups that the paper prints are those of the times that it prints.
func TestLadderIsThePapers(t *testing.T) {
	e, err := experiments.Lookup("appleyard-table1")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := e.Report(synthetic(e, cpu), cpu)
	if err != nil {
		t.Fatal(err)
	}
	var first float64
	for i, row := range rep.Tables[0].Rows {
		us, up := row[1].Value.(float64), row[5].Value.(float64)
		if i == 0 {
			first = us
		}
		if d := first/us - up; d > 0.06 || d < -0.06 {
			t.Errorf("%s: %v µs is a speed-up of %.2f, printed %v", row[0].Text, us, first/us, up)
		}
	}
}

// report returns an experiment's report on recs.
func report(t *testing.T, id string, recs []record.Record, on study.Target) *study.Report {
	t.Helper()
	e, err := experiments.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := e.Report(recs, on)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// planned returns the synthetic records of an experiment.
func planned(t *testing.T, id string, on study.Target) []record.Record {
	t.Helper()
	e, err := experiments.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	return synthetic(e, on)
}

// without leaves out the records of a label.
func without(recs []record.Record, label string) []record.Record {
	return slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool { return r.Impl.Label == label })
}

// faster makes the records of a label so many times as fast.
func faster(recs []record.Record, label string, times float64) []record.Record {
	recs = slices.Clone(recs)
	for i, r := range recs {
		if r.Impl.Label != label {
			continue
		}
		s := *r.Stats
		lo, hi := *s.Lo/times, *s.Hi/times
		s.Median, s.Lo, s.Hi = s.Median/times, &lo, &hi
		recs[i].Stats = &s
	}
	return recs
}

// about returns the first finding that contains words; "" if none does.
func about(rep *study.Report, words string) string {
	if rep == nil {
		return ""
	}
	for _, s := range rep.Findings {
		if strings.Contains(s, words) {
			return s
		}
	}
	return ""
}

// TestLadderStep: a stage after a missing one has no step.
func TestLadderStep(t *testing.T) {
	for _, on := range []study.Target{cpu, gpu} {
		all := planned(t, "appleyard-table1", on)
		if s := about(report(t, "appleyard-table1", all, on), "stage 2 streamed"); s == "" {
			t.Error("the step of stage 2 is not the paper's, and nothing is said of it")
		}
		rep := report(t, "appleyard-table1", without(all, "1 grouped"), on)
		row := rep.Tables[0].Rows[2]
		if row[0].Text != "2 streamed" || row[7].Text != "1.43" || row[8].Text != "–" {
			t.Errorf("the step after a missing stage: %v", row)
		}
		if s := about(rep, "2 streamed"); s != "" {
			t.Errorf("a step from no stage: %s", s)
		}
		if about(rep, "stage 3 fused") == "" {
			t.Error("nothing is said of a stage whose stage before is there")
		}
	}
}

// TestLadderSteps: a stage that gains less or more than in the paper is named, with what the records have and no cause
// that they lack.
func TestLadderSteps(t *testing.T) {
	for _, on := range []study.Target{cpu, gpu} {
		all := planned(t, "appleyard-table1", on)
		for label, times := range map[string]float64{"1 grouped": 1, "2 streamed": 4, "3 fused": 1, "4 transposed": 2, "5 inputs ×2": 0.5, "6 overlapped": 1} {
			s := about(report(t, "appleyard-table1", faster(all, label, times), on), "stage "+label)
			if !strings.Contains(s, "× in the paper.") || strings.Contains(strings.ToLower(s), "probabl") {
				t.Errorf("GPU %t, %s ×%g: %q", on.GPU, label, times, s)
			}
		}
	}
}

// TestRivals: the report says that the paper's factor is over Nervana's library, and that the paper
// does not say which products its rates count.
func TestRivals(t *testing.T) {
	rep := report(t, "diamos-fig3", planned(t, "diamos-fig3", gpu), gpu)
	if s := about(rep, "28×"); !strings.Contains(s, "over products of Nervana's library") {
		t.Errorf("the library: %q", s)
	}
	if s := about(rep, "rates"); !strings.Contains(s, "probably count") {
		t.Errorf("the rates: %q", s)
	}
}

// TestOfWhatIsCompared: a share counts only the points that were compared.
func TestOfWhatIsCompared(t *testing.T) {
	all := planned(t, "martin-kernel", cpu)
	n := len(report(t, "martin-kernel", all, cpu).Tables[0].Rows)
	i := slices.IndexFunc(all, func(r record.Record) bool { return r.Impl.Label == "one worker" })
	rep := report(t, "martin-kernel", slices.Delete(slices.Clone(all), i, i+1), cpu)
	if s := about(rep, "Splitting time"); !strings.Contains(s, fmt.Sprintf("at %d of %d points", n-1, n-1)) {
		t.Errorf("without one of %d pairs: %q", n, s)
	}
	all = planned(t, "appleyard-fig1", cpu)
	stage6 := slices.DeleteFunc(slices.Clone(all), func(r record.Record) bool { return r.Point.Layers == 1 })
	for _, c := range []struct {
		recs  []record.Record
		words string
		said  bool
	}{
		{all, "geometric mean", true}, {all, "Batching inputs", true}, {all, "four layers over one", true},
		{without(all, "0 naive"), "geometric mean", false},
		{without(all, "5 inputs ×2"), "Batching inputs", false}, {without(all, "5 inputs ×2"), "geometric mean", true},
		{stage6, "four layers over one", false}, {stage6, "Batching inputs", true},
	} {
		if s := about(report(t, "appleyard-fig1", c.recs, cpu), c.words); (s != "") != c.said {
			t.Errorf("%s: said %q, want %t", c.words, s, c.said)
		}
	}
}

// TestReasonsOfGains: only a clear gain gets a reason.
func TestReasonsOfGains(t *testing.T) {
	training := func(times float64) (recs []record.Record) { // trainings that are so many times as fast
		for _, r := range planned(t, "appleyard-fig2", cpu) {
			if r.Point.Pass == "train" {
				r = faster([]record.Record{r}, r.Impl.Label, times)[0]
			}
			recs = append(recs, r)
		}
		return recs
	}
	for _, c := range []struct {
		id    string
		recs  []record.Record
		on    study.Target
		about string
		words string
		said  bool
	}{
		{"appleyard-fig2", training(1.3), cpu, "The backward pass", "it is the slower one", false},
		{"appleyard-fig2", training(0.8), cpu, "The backward pass", "it is the slower one", true},
		{"diamos-fig3", planned(t, "diamos-fig3", cpu), cpu, "At minibatch 4", "lose", false},
		{"diamos-fig3", planned(t, "diamos-fig3", gpu), gpu, "At minibatch 4", "lose", false},
		{"diamos-fig3", faster(planned(t, "diamos-fig3", cpu), "persistent", 3), cpu, "At minibatch 4", "lose", true},
		{"diamos-fig3", faster(planned(t, "diamos-fig3", gpu), "persistent", 3), gpu, "At minibatch 4", "Products lose time to", true},
		{"diamos-fig3", planned(t, "diamos-fig3", cpu), cpu, "At minibatch 4", "On a CPU", true},
		{"diamos-fig3", faster(planned(t, "diamos-fig3", cpu), "persistent", 40), cpu, "At minibatch 4", "On a CPU", false},
	} {
		if s := about(report(t, c.id, c.recs, c.on), c.about); s == "" || strings.Contains(s, c.words) != c.said {
			t.Errorf("%s: %q: %q is not %t", c.id, s, c.words, c.said)
		}
	}
}

// TestConcerns: a run of the experiment itself may have the sizes of an earlier plan. Other records
// must be at its points.
func TestConcerns(t *testing.T) {
	here := record.Device{Key: "cpu-synthetic-2t"}
	for _, id := range []string{"appleyard-table1", "diamos-memory"} {
		e, err := experiments.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		recs := synthetic(e, cpu)
		if !e.Concerns(here, recs, true) || e.Concerns(here, recs, false) != (recs != nil) {
			t.Errorf("%s does not know its own records", id)
		}
		if recs == nil {
			recs = make([]record.Record, 1)
		}
		for i := range recs {
			recs[i].Point.Hidden++
		}
		if e.Concerns(here, recs, false) || !e.Concerns(here, recs, true) {
			t.Errorf("%s takes records of other points, or not those of a run of its own", id)
		}
	}
}

// TestFigureNamesDiffer: no two figures of a report have the same file name.
func TestFigureNamesDiffer(t *testing.T) {
	e, err := experiments.Lookup("appleyard-table1")
	if err != nil {
		t.Fatal(err)
	}
	recs := synthetic(e, cpu)
	for _, r := range synthetic(e, cpu) {
		r.Point.Batch++ // and as many steps
		recs = append(recs, r)
	}
	rep, err := e.Report(recs, cpu)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range rep.Figures {
		names = append(names, f.Name)
	}
	if want := []string{"appleyard-table1-T20", "appleyard-table1-T20-2"}; !slices.Equal(names, want) {
		t.Errorf("figures %q, want %q", names, want)
	}
}

func TestLookup(t *testing.T) {
	if _, err := experiments.Lookup("appleyard-tabel1"); err == nil || !strings.Contains(err.Error(), "did you mean appleyard-table1?") {
		t.Error(err)
	}
	if _, err := experiments.Lookup("nothing"); err == nil || !strings.Contains(err.Error(), `unknown experiment "nothing": choose among `) {
		t.Error(err)
	}
}

// TestPredicted compares the model with records that are as it predicts, and with one that is not.
func TestPredicted(t *testing.T) {
	m, err := model.Load("xeon")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiments.Lookup("diamos-fig6")
	if err != nil {
		t.Fatal(err)
	}
	newRecord := func(hidden, batch int, seconds float64) record.Record {
		p := record.Point{Cell: "rnn-tanh", Pass: "forward", Hidden: hidden, Input: 16, Batch: batch, Steps: 100, Layers: 1, Precision: "fp32"}
		lo, hi := 99*seconds, 101*seconds
		return record.Record{Point: p, Status: record.OK, Impl: record.Impl{Name: "persistent", Label: "persistent"},
			Samples: &record.Samples{Wall: []float64{100 * seconds, 300 * seconds}}, Stats: &record.Stats{Median: 100 * seconds, Lo: &lo, Hi: &hi}}
	}
	recs := []record.Record{newRecord(512, 1, 7.7e-6), newRecord(512, 4, 15e-6), newRecord(1024, 1, 150e-6)}
	for _, c := range []struct {
		machine  string
		tables   int
		figures  int
		findings []string
	}{
		{"", 1, 2, nil},
		{string(text), 2, 3, []string{"within 25 % of the measured step time of persistent layers at 2 of 3 points", "The others: the cause is not known (1)."}},
	} {
		rep, err := e.On(record.Device{Name: "Xeon", Machine: json.RawMessage(c.machine)}, recs)
		if err != nil {
			t.Fatal(err)
		}
		if len(rep.Tables) != c.tables || len(rep.Figures) != c.figures {
			t.Errorf("machine %.20q: %d tables and %d figures, want %d and %d", c.machine, len(rep.Tables), len(rep.Figures), c.tables, c.figures)
		}
		for _, want := range c.findings {
			if !strings.Contains(strings.Join(rep.Findings, "\n"), want) {
				t.Errorf("findings lack %q:\n%s", want, strings.Join(rep.Findings, "\n"))
			}
		}
	}
	if _, err := e.On(record.Device{Machine: json.RawMessage(`{"name":"x"}`)}, recs); err == nil {
		t.Error("a machine without levels is accepted")
	}
}

// TestFasterThanPredicted: the reason for a step that is faster than predicted names the model's
// limit.
func TestFasterThanPredicted(t *testing.T) {
	e, err := experiments.Lookup("diamos-fig6")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		machine, device string
		hidden, batch   int
		seconds         float64
		limit, want     string
	}{
		{"h200", "cuda-synthetic", 128, 1, 239e-9, "latency", "the whole step took less time than the machine file predicts for the exchange alone"},
		{"h200", "cuda-synthetic", 2048, 4, 0.9e-6, "exchange", "the whole step took less time than the machine file predicts for the exchange alone"},
		{"h200", "cuda-synthetic", 3072, 1, 2e-6, "weights", "the whole step took less time than reading the weights from L2 alone"},
		{"xeon", "cpu-synthetic-2t", 1024, 1, 30e-6, "weights", "the whole step took less time than reading the weights from L3 alone"},
		{"xeon", "cpu-synthetic-2t", 512, 4, 5e-6, "compute", "the whole step took less time than the products alone at the measured rate"},
	} {
		m, err := model.Load(c.machine)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		p := record.Point{Cell: "rnn-tanh", Pass: "forward", Hidden: c.hidden, Input: 16, Batch: c.batch, Steps: 1, Layers: 1, Precision: "fp32"}
		lo, hi := 0.99*c.seconds, 1.01*c.seconds
		rec := record.Record{Point: p, Device: c.device, Status: record.OK, Impl: record.Impl{Name: "persistent", Label: "persistent"},
			Samples: &record.Samples{Wall: []float64{c.seconds}}, Stats: &record.Stats{Median: c.seconds, Lo: &lo, Hi: &hi}}
		rep, err := e.On(record.Device{Key: c.device, Machine: json.RawMessage(text)}, []record.Record{rec})
		if err != nil {
			t.Fatal(err)
		}
		row := rep.Tables[1].Rows[0]
		if limit, why := row[len(row)-2].Text, row[len(row)-1].Text; limit != c.limit || why != c.want {
			t.Errorf("%s, H=%d, B=%d: limited by %s: %q, want %s: %q", c.machine, c.hidden, c.batch, limit, why, c.limit, c.want)
		}
	}
}

// TestMemoryIsThePapers compares the paper's arithmetic with the numbers that it prints.
func TestMemoryIsThePapers(t *testing.T) {
	e, err := experiments.Lookup("diamos-memory")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := e.Report(nil, cpu)
	if err != nil {
		t.Fatal(err)
	}
	column := func(key string) int {
		return slices.IndexFunc(rep.Tables[0].Columns, func(c table.Column) bool { return c.Key == key })
	}
	n := 0
	for _, row := range rep.Tables[0].Rows {
		for _, pair := range [][2]string{{"printed_bytes", "activation_bytes"}, {"printed_weight_bytes", "weight_bytes"}} {
			printed, ok := row[column(pair[0])].Value.(float64)
			if !ok {
				continue
			}
			n++
			if got := row[column(pair[1])].Value.(float64); math.Abs(got/printed-1) > 0.05 {
				t.Errorf("%s: %s is %g and printed %g", row[3].Text, pair[1], got, printed)
			}
		}
	}
	if n != 4 {
		t.Errorf("%d numbers of the paper, want 4", n)
	}
	deepest := func(hidden, batch string) any {
		for _, row := range rep.Tables[0].Rows { // the paper's arithmetic comes first
			if row[0].Text == hidden && row[1].Text == batch {
				return row[column("layers")].Value
			}
		}
		return nil
	}
	if d := deepest("1760", "64"); d != 8 { // 12 / 1.35: the paper says about 9
		t.Errorf("%v layers of 1760 units at minibatch 64", d)
	}
	for _, row := range rep.Tables[0].Rows { // the paper's deep network has 1152 units
		if at := row[column("printed_layers")].Text; strings.Contains(at, "100") && row[0].Text != "1152" {
			t.Errorf("%q is said of %s units", at, row[0].Text)
		}
	}
	if s := about(rep, "the same"); s != "" {
		t.Errorf("shares that differ are called the same: %s", s)
	}
}

// TestRecorded compares the figures of recorded experiments with what their records give: no device
// is needed to draw them again.
func TestRecorded(t *testing.T) {
	dirs, err := filepath.Glob("../results/*/*/records.jsonl")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d recorded experiments, %v", len(dirs), err)
	}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		e, err := experiments.Lookup(filepath.Base(dir))
		if err != nil {
			continue // a run that is no experiment
		}
		m, recs, _, err := record.Read(dir)
		if err != nil {
			t.Error(err)
			continue
		}
		rep, err := e.On(m.Devices[0], recs)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		for _, f := range rep.Figures {
			if ch, ok := f.Figure.(*plots.Chart); ok && backwards(ch) {
				t.Errorf("%s: %s: a line goes back and forth", dir, f.Name)
			}
			var b bytes.Buffer
			if err := plots.Write(&b, f.Figure, "svg"); err != nil {
				t.Errorf("%s: %s: %v", dir, f.Name, err)
			}
			if old, err := os.ReadFile(filepath.Join(dir, f.Name+".svg")); err != nil || !bytes.Equal(old, b.Bytes()) {
				t.Errorf("%s: %s is not what the records give, make figures rewrites it (%v)", dir, f.Name, err)
			}
		}
	}
}

// backwards reports whether a line of ch does not go from left to right. Records are in the order of
// measuring, which is not that of an axis.
func backwards(ch *plots.Chart) bool {
	for _, p := range ch.Panels {
		for _, s := range p.Series {
			if !s.Scatter && !slices.IsSortedFunc(s.Points, func(a, b plots.Point) int { return cmp.Compare(a.X, b.X) }) {
				return true
			}
		}
	}
	return false
}
