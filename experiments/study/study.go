// Package study says what an experiment is: what to measure for it, and how to compare it with the
// paper's numbers or with a yardstick.
//
// An experiment plans points and techniques, which other packages measure. It reports on records,
// whoever measured them. So every table and figure can be drawn again from records alone.
package study

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"rnnbench/model"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// A Size says how much of an experiment is measured.
type Size int

// The sizes. Quick has the axes and figures of Full with smaller networks,
// about a minute on two processors.
const (
	Full Size = iota
	Quick
)

// An Experiment is one table or figure of a paper.
type Experiment struct {
	ID     string
	Title  string
	Source string // authors, year and number of the table or figure

	// Unlike says how the measurement differs from the paper's besides the machine; "": it does not,
	// or there is no paper.
	Unlike string

	// Apart says that its paper is none of the four that the program reproduces: its claims are counted apart.
	Apart bool

	// Parts lists what is swept. Trainings lists what is trained afterwards. Either may be nil. Both
	// are nil if the experiment only counts or computes.
	Parts     func(Size, Target) []Part
	Trainings func(Size, Target) []Training

	// Earlier lists what an earlier program swept in place of Parts, of which there are records. It is
	// not measured any more. nil: nothing.
	Earlier func(Size, Target) []Part

	// Vendor says that it compares with the library of a GPU's maker, so it needs such a GPU.
	Vendor bool

	// Energy says that energy is counted, whether the user asks for it or not.
	Energy bool

	// Rivals is the kind of device on which it compares with rivals, of which it needs one; "": it
	// does not.
	Rivals string

	// Needs names the rivals that it needs.
	Needs []string

	// TakesRivals says that rivals are measured as well, if the user names some.
	TakesRivals bool

	// Host says that it measures the threads of a processor, so it needs one.
	Host bool

	// Report compares records of the parts with the paper.
	Report func(recs []record.Record, on Target) (*Report, error)

	// Model, if not nil, adds to a report what the analytical model says of the machine that the
	// records are from.
	Model func(rep *Report, recs []record.Record, here *model.Machine)
}

// On reports on records of device d. It leaves out the model if d's memories were not measured.
func (e Experiment) On(d record.Device, recs []record.Record) (*Report, error) {
	on := targetOf(d, recs)
	on.Reduced = e.reduced(recs, on)
	rep, err := e.Report(e.inOrder(recs, on), on)
	if err != nil {
		return nil, err
	}
	rep.Reduced = on.Reduced
	rep.doubt(recs)
	if s := QualityOf(recs).String(); s != "" {
		rep.Findings = append(rep.Findings, s)
	}
	if s := on.launches(quantity.Latest(recs)); s != "" && len(recs) > 0 {
		rep.Findings = append(rep.Findings, s)
	}
	if e.Model != nil {
		if err := e.predict(rep, d, recs); err != nil {
			return nil, err
		}
	}
	if rep.Reduced {
		MarkReduced(rep, rep.Exact.Tables, rep.Exact.Figures)
	}
	return rep, nil
}

// predict adds what the model says of d, if its memories were measured.
func (e Experiment) predict(rep *Report, d record.Device, recs []record.Record) error {
	if len(d.Machine) == 0 {
		return nil
	}
	here := &model.Machine{}
	if err := json.Unmarshal(d.Machine, here); err != nil {
		return fmt.Errorf("experiments: cannot read the machine measurements of the run: %w", err)
	}
	if err := here.Check(); err != nil {
		return err
	}
	e.Model(rep, recs, here)
	return nil
}

// doubt adds to findings which answers are wrong and which records failed. It adds to findings and
// figures what was not checked, or only in part.
func (r *Report) doubt(recs []record.Record) {
	latest := quantity.Latest(recs)
	for _, s := range []string{wrongAnswers(latest), impossibleTimes(latest), failures(latest)} {
		if s != "" {
			r.Findings = append(r.Findings, s)
		}
	}
	doubts := quantity.Doubts(latest)
	r.Findings = append(r.Findings, doubts...)
	if s := QualityOf(recs).throttling(); s != "" { // findings have it with the rest of the quality
		doubts = append(doubts, s)
	}
	for _, x := range r.Figures {
		plots.Note(x.Figure, doubts...)
	}
}

// Concerns reports whether the experiment's report can use any of recs, measured on device d: those
// of a technique and a point that it measures. own says that they are from a run of the experiment.
// Then other sizes count too, since plans change, and an experiment that is computed alone needs no
// record.
func (e Experiment) Concerns(d record.Device, recs []record.Record, own bool) bool {
	type kind struct {
		label string
		point record.Point
	}
	of := func(label string, p record.Point) kind {
		if own {
			p = record.Point{Cell: p.Cell, Pass: p.Pass}
		}
		return kind{label, p}
	}
	kinds := map[kind]bool{}
	for _, size := range []Size{Full, Quick} {
		for _, part := range e.parts(size, targetOf(d, recs)) {
			for _, p := range part.Points {
				for _, s := range part.Specs {
					kinds[of(s.Label, p)] = true
				}
			}
		}
	}
	if len(kinds) == 0 || len(recs) == 0 {
		return own
	}
	return slices.ContainsFunc(recs, func(r record.Record) bool { return kinds[of(r.Impl.Label, r.Point)] })
}

// inOrder returns recs in the order of the parts, whatever order they were measured in. It is that
// of the quick size if it has all of recs, else that of the full size and then the quick one.
// Records of no part come last.
func (e Experiment) inOrder(recs []record.Record, on Target) []record.Record {
	type key struct {
		record.Point
		label string
	}
	place := map[key]int{}
	of := func(r record.Record) int { return place[key{r.Point, r.Impl.Label}] }
	add := func(size Size) {
		for _, part := range e.parts(size, on) {
			for _, p := range part.Points {
				for _, s := range part.Specs {
					if k := (key{p, s.Label}); place[k] == 0 {
						place[k] = len(place) + 1
					}
				}
			}
		}
	}
	if add(Quick); slices.ContainsFunc(recs, func(r record.Record) bool { return of(r) == 0 }) {
		clear(place)
		add(Full)
		add(Quick)
	}
	at := func(r record.Record) int {
		if n := of(r); n > 0 {
			return n
		}
		return len(place) + 1
	}
	recs = slices.Clone(recs)
	slices.SortStableFunc(recs, func(a, b record.Record) int { return at(a) - at(b) })
	return recs
}

// A Target is what an experiment runs on.
type Target struct {
	Name string  // for subtitles
	GPU  bool    // operations start in microseconds, replay as a graph, and have a vendor's library beside them
	Copy float64 // bytes read and written per second, as measured; 0: unknown

	// Seconds that each takes alone, as measured; 0: unknown.
	Barrier float64 // of all blocks of a kernel
	Launch  float64 // by the host, one after the other
	InGraph float64 // launch in a graph

	// Bytes per second between a GPU's memory and pinned memory of the host, as measured; 0: unknown.
	ToHost, FromHost float64

	Halves float64 // FLOP/s of large fp16 products, as measured; 0: unknown

	Workers int // threads or multiprocessors in use; 0: unknown

	Rivals []Rival // that run there

	Seed uint64 // for random draws

	Reduced bool // the sizes are smaller than the paper's
}

// TargetOf returns d as a target.
func TargetOf(d record.Device) Target {
	on := Target{Name: d.Name, GPU: record.OnGPU(d.Key), Rivals: rivalsOf(d.Facts)}
	on.Barrier, on.Launch, on.InGraph = quantity.Seconds(d.Facts["barrier"]), quantity.Seconds(d.Facts["launches"]), quantity.Seconds(d.Facts["in a graph"])
	on.ToHost, on.FromHost = quantity.BytesPerSecond(d.Facts["copies to the host"]), quantity.BytesPerSecond(d.Facts["copies from the host"])
	on.Halves = d.ProductRates()["fp16"]
	on.Workers, _ = strconv.Atoi(d.Facts["workers"]) // 0 where there is none
	on.Copy = d.CopyRate()
	return on
}

// launches says how long launches took when the run began and before each group of its records, since that depends on
// the host and the hour; empty if unknown.
func (t Target) launches(recs []*record.Record) string {
	if t.Launch == 0 {
		return ""
	}
	s := fmt.Sprintf("When the run began, a launch took %s", quantity.SI(t.Launch, "s"))
	if t.InGraph > 0 {
		s += fmt.Sprintf(", and %s in a graph", quantity.SI(t.InGraph, "s"))
	}
	s += "."
	if more := quantity.Launches(recs); more != "" {
		s += " " + more
	}
	return s
}

// targetOf returns d as the target of records, with their seed.
func targetOf(d record.Device, recs []record.Record) Target {
	on := TargetOf(d)
	if len(recs) > 0 {
		on.Seed = recs[0].Mode.Seed
	}
	return on
}

// Say returns gpu on a GPU and cpu elsewhere.
func (t Target) Say(cpu, gpu string) string {
	if t.GPU {
		return gpu
	}
	return cpu
}

// WithGPU returns specs and, on a GPU, the others as well.
func (t Target) WithGPU(specs []grid.Spec, gpu ...grid.Spec) []grid.Spec {
	if !t.GPU {
		return specs
	}
	return append(slices.Clip(specs), gpu...)
}

// Graphed returns s replayed as a graph.
func Graphed(label string, s grid.Spec) grid.Spec {
	k := knob.Params{"graph": 1}
	maps.Copy(k, s.Knobs)
	return Spec(label, s.Name, k)
}

// A Part is a grid: every technique at every point.
type Part struct {
	Points []record.Point
	Specs  []grid.Spec
}

// A Training is a grid that is trained: each technique at each point learns the same task by the
// same optimiser. Input, Output and OneHot of a point must be those of the task.
type Training struct {
	Part
	Plan record.TrainingPlan
}

// parts lists what is swept and what is trained, and what was so earlier.
func (e Experiment) parts(s Size, on Target) []Part {
	var all []Part
	for _, list := range []func(Size, Target) []Part{e.Parts, e.Earlier} {
		if list != nil {
			all = append(all, list(s, on)...)
		}
	}
	if e.Trainings != nil {
		for _, t := range e.Trainings(s, on) {
			all = append(all, t.Part)
		}
	}
	return all
}

// A Report is what an experiment shows.
type Report struct {
	Reduced  bool     // the sizes are smaller than the paper's
	Claims   []Claim  // what the paper found, and what was measured of it
	Findings []string // sentences: what agrees with the paper, what does not and why
	Tables   []*table.Table
	Figures  []Named
	Files    []File

	// How many of the first tables and figures are not marked as reduced: they have the paper's
	// sizes whatever was measured, or say their own.
	Exact struct{ Tables, Figures int }
}

// A File is a drawing that is no chart, under its file's name.
type File struct {
	Name    string
	Content []byte
}

// A Named figure has the name of its file, without ending.
type Named struct {
	Name   string
	Figure plots.Figure
}

// Spec is a technique with a label for tables and legends.
func Spec(label, name string, k knob.Params) grid.Spec {
	return grid.Spec{Name: name, Label: label, Knobs: k}
}

// Product returns every combination of hidden sizes and batches at point p, with inputs as wide as
// the layers.
func Product(p record.Point, hidden, batch []int) []record.Point {
	var out []record.Point
	for _, h := range hidden {
		for _, b := range batch {
			q := p
			q.Hidden, q.Input, q.Batch = h, h, b
			out = append(out, q)
		}
	}
	return out
}

// Add appends a figure. If there was nothing to draw, a finding says so instead. A name that another
// figure has gets a number.
func (r *Report) Add(name string, f plots.Figure, err error) {
	if err != nil {
		r.Findings = append(r.Findings, fmt.Sprintf("Figure %s is missing: %v.", name, err))
		return
	}
	own := name
	for n := 2; slices.ContainsFunc(r.Figures, func(x Named) bool { return x.Name == own }); n++ {
		own = fmt.Sprintf("%s-%d", name, n)
	}
	r.Figures = append(r.Figures, Named{own, f})
}
