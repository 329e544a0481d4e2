// Package report makes one HTML page of runs. The page says what is fastest at each point, by how much
// and how surely, and what the papers say. It also lists what failed and why, the machines, and the
// commands.
//
// The page is one file that loads nothing: figures are inline. A short script sorts tables and shows
// values under the pointer. Without the script the page is complete. The same records give the same
// bytes.
package report

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/report/page"
)

// Options says what a page shows.
type Options struct {
	Title    string // "": what was measured, and where
	Baseline string // technique that speed-ups are relative to; "": "naive"

	// Settings spells a record's technique in the syntax of --impl, without defaults; nil: the page
	// lists all settings.
	Settings func(*record.Record) string
}

// mostBytes bounds the size of all figures of a page. Tables always have every point.
const mostBytes = 7 << 19

//go:embed page.html
var pageText string

// content is the data of the template.
type content struct {
	Title, Policy string
	Style         template.CSS
	Script        template.JS
	Summary       []string
	Sections      []section
	Papers        []paper
	Lost          *page.Sheet // records without a result; nil: none
	Machines      *page.Sheet
	Nodes         []string // how much the machines of merged runs differ
	Advice        []record.Advice
	Commands      []Command
	All           *page.Sheet
	LeftOut       int // number of figures left out for size
}

// A section is about comparable records: of one cell, pass, precision and device.
type section struct {
	ID, Title string
	Fastest   *page.Sheet
	Figures   []template.HTML
	Missing   []string // figures that could not be drawn, and why
}

// A paper is an experiment, with the paper's tables beside the measurements.
type paper struct {
	ID, Title, Source string
	Findings          []string
	Tables            []*page.Sheet
	Figures           []template.HTML
	Missing           []string
}

// A Command is the command line that makes a run again.
type Command struct{ Run, When, Line string }

// Write writes the page of runs. recs are their records for figures and tables. If there are several
// runs, the labels in recs must tell the runs apart.
func Write(w io.Writer, sets []record.Set, recs []record.Record, o Options) error {
	if len(recs) == 0 && !slices.ContainsFunc(sets, func(s record.Set) bool { _, ok := ExperimentOf(s); return ok }) {
		return errors.New("report: no records to report on")
	}
	if o.Baseline == "" {
		o.Baseline = "naive"
	}
	b := &builder{sets: sets, recs: quantity.Latest(recs), o: o, room: mostBytes}
	p := content{
		Style: page.Style(), Script: page.Script(), Policy: page.Alone(), Title: o.Title,
		Machines: page.NewSheet(Facts(sets), nil), Nodes: nodes(sets), Advice: advice(sets), Commands: Commands(sets),
	}
	if p.Title == "" {
		p.Title = b.title()
	}
	var err error
	if p.Papers, err = b.papers(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if len(recs) > 0 {
		if p.Sections, err = b.sections(); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		all, err := table.Records(recs, o.Baseline)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		p.All = page.NewSheet(all, nil)
	}
	p.Summary, p.Lost, p.LeftOut = b.summary(), b.lost(), b.leftOut
	t, err := page.Parse(map[string]string{"page": pageText})
	if err == nil {
		err = page.Write(w, t, "page", p)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// A builder makes the parts of a page.
type builder struct {
	sets    []record.Set
	recs    []*record.Record
	o       Options
	room    int // bytes left for figures
	leftOut int // number of figures left out
}

// title says what was measured where.
func (b *builder) title() string {
	var cells, devices []string
	for _, r := range b.recs {
		if !slices.Contains(cells, r.Point.Cell) {
			cells = append(cells, r.Point.Cell)
		}
		if !slices.Contains(devices, r.Device) {
			devices = append(devices, r.Device)
		}
	}
	switch {
	case len(b.recs) == 0:
		return b.sets[0].Label
	case len(cells) > 4:
		cells = []string{fmt.Sprintf("%d cells", len(cells))}
	}
	return strings.Join(cells, ", ") + " on " + strings.Join(devices, ", ")
}

// figure appends f to to, or counts it as left out if there is no more room.
func (b *builder) figure(to []template.HTML, f plots.Figure) ([]template.HTML, error) {
	if b.room <= 0 {
		b.leftOut++
		return to, nil
	}
	svg, err := plots.Inline(f, nil)
	if err != nil {
		return to, err
	}
	b.room -= len(svg)
	return append(to, template.HTML(svg)), nil
}

// ExperimentOf finds the experiment of a run by the run's label or by the command that made it.
func ExperimentOf(s record.Set) (study.Experiment, bool) {
	ids := experiments.IDs()
	words := []string{s.Manifest.Label, s.Label}
	if argv := s.Manifest.Argv; len(argv) > 1 && argv[1] == "reproduce" {
		named := slices.DeleteFunc(slices.Clone(argv[2:]), func(a string) bool { return !slices.Contains(ids, a) })
		if len(named) == 1 {
			words = append(words, named[0])
		}
	}
	for _, w := range words {
		if slices.Contains(ids, w) {
			e, err := experiments.Lookup(w)
			return e, err == nil
		}
	}
	return study.Experiment{}, false
}

// papers returns the experiments among the runs.
func (b *builder) papers() ([]paper, error) {
	var list []paper
	for _, s := range b.sets {
		e, ok := ExperimentOf(s)
		if !ok {
			continue
		}
		var d record.Device
		if len(s.Manifest.Devices) > 0 {
			d = s.Manifest.Devices[0]
		}
		rep, err := e.On(d, s.Records)
		if err != nil {
			list = append(list, paper{ID: e.ID, Title: e.Title, Source: e.Source, Missing: []string{err.Error()}})
			continue
		}
		p := paper{ID: e.ID, Title: e.Heading(rep), Source: e.Source, Findings: rep.Findings}
		for _, t := range rep.Tables {
			p.Tables = append(p.Tables, page.NewSheet(t, nil))
		}
		for _, f := range rep.Figures {
			if p.Figures, err = b.figure(p.Figures, f.Figure); err != nil {
				return nil, err
			}
		}
		list = append(list, p)
	}
	return list, nil
}
