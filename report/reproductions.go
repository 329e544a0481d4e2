package report

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"

	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/report/page"
)

//go:embed reproductions.html
var reproductionsText string

// A Reproduction is an experiment with the run that measured it, or the reason why there is no run.
type Reproduction struct {
	Experiment study.Experiment
	Report     *study.Report // nil: there is none
	Set        record.Set
	Link       string // from the page to the run's folder
	Missing    string // why there is no report, or what the report lacks
}

// Verdicts is the table of the papers' claims beside the measurements: a row for each claim, and one
// for each experiment without a claim.
func Verdicts(list []Reproduction) *table.Table {
	t := &table.Table{Columns: []table.Column{
		{Name: "Experiment", Key: "experiment"}, {Name: "The paper found", Key: "paper"}, {Name: "Measured here", Key: "here"}, {Name: "Verdict", Key: "verdict"},
	}}
	var claims, others []study.Claim // of the four papers, and of others
	for _, x := range list {
		name := table.Text(x.Experiment.ID)
		row := func(paper, here, verdict string) {
			t.Rows = append(t.Rows, []table.Cell{name, table.Text(paper), table.Text(here), table.Text(verdict)})
			name = table.Cell{Value: x.Experiment.ID} // readers see the name once, programs in each row
		}
		if x.Report == nil || len(x.Report.Claims) == 0 {
			missing := x.Missing
			if missing == "" {
				missing = "nothing was measured"
			}
			row("", "", "not measured: "+missing)
			continue
		}
		if x.Experiment.Apart {
			others = append(others, x.Report.Claims...)
		} else {
			claims = append(claims, x.Report.Claims...)
		}
		for _, c := range x.Report.Claims {
			row(c.Paper, c.Here, c.Verdict())
		}
		if x.Missing != "" {
			row("", "", "partly measured: "+x.Missing)
		}
	}
	if words := study.CountClaims(claims); words != "" {
		t.Notes = []string{"papers' claims, each counted once: " + words}
	}
	if words := study.CountClaims(others); words != "" {
		t.Notes = append(t.Notes, "claims of other papers: "+words)
	}
	var noisy []string
	for _, x := range list {
		if s := quantity.StandingOf(quantity.Latest(x.Set.Records)); x.Report != nil && s.Noisy > 0 {
			noisy = append(noisy, fmt.Sprintf("%s %d of %d", x.Experiment.ID, s.Noisy, s.Timed))
		}
	}
	if noisy != nil {
		t.Notes = append(t.Notes, "noisy records: "+strings.Join(noisy, ", "))
	}
	return t
}

// noise says how many of the timed records are noisy; "": none is.
func noise(recs []record.Record) string {
	s := quantity.StandingOf(quantity.Latest(recs))
	if s.Noisy == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %s noisy", s.Noisy, quantity.Plural(s.Timed, "record"))
	if s.Winners > 0 {
		text += fmt.Sprintf("; %d of %s clear", s.Clear, quantity.Plural(s.Winners, "winner"))
	}
	return text
}

// A Chapter is an experiment on a page: claims, tables and figures.
type Chapter struct {
	paper
	Claims []study.Claim
	Link   string
	Place  string // what Link leads to
	Note   string
	Noise  string // how many of the records are noisy; "": none
}

// WriteReproductions writes one page of experiments: the table of verdicts, all tables and figures,
// the machines, and links to the runs. Only the links lead to other files.
func WriteReproductions(w io.Writer, title string, list []Reproduction) error {
	if len(list) == 0 {
		return errors.New("report: no experiments to report on")
	}
	data := struct {
		Title, Policy string
		Style         template.CSS
		Script        template.JS
		Verdicts      *page.Sheet
		Chapters      []Chapter
		Machines      *page.Sheet
		Commands      []Command
	}{Title: title, Policy: page.Alone(), Style: page.Style(), Script: page.Script(), Verdicts: page.NewSheet(Verdicts(list), nil)}
	var sets []record.Set
	for _, x := range list {
		c, err := NewChapter(x, nil)
		if err != nil {
			return fmt.Errorf("report: %s: %w", x.Experiment.ID, err)
		}
		if x.Report != nil {
			sets = append(sets, x.Set)
		}
		data.Chapters = append(data.Chapters, c)
	}
	data.Machines, data.Commands = page.NewSheet(Facts(distinct(sets)), nil), oneLine(Commands(sets))
	t, err := page.Parse(map[string]string{"reproductions": reproductionsText})
	if err == nil {
		err = page.Write(w, t, "reproductions", data)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// NewChapter makes the chapter of x. Numbers lead to where link says that their record is; nil: nowhere.
func NewChapter(x Reproduction, link func(*record.Record) string) (Chapter, error) {
	c := Chapter{paper: paper{ID: x.Experiment.ID, Title: x.Experiment.Title, Source: x.Experiment.Source}, Note: x.Missing}
	if x.Link != "" {
		c.Link, c.Place = x.Link+"/", "run folder"
	}
	if x.Report == nil {
		return c, nil
	}
	c.Title, c.Claims, c.Findings, c.Noise = x.Experiment.Heading(x.Report), x.Report.Claims, x.Report.Findings, noise(x.Set.Records)
	for _, t := range x.Report.Tables {
		c.Tables = append(c.Tables, page.NewSheet(t, link))
	}
	for _, f := range x.Report.Figures {
		svg, err := plots.Inline(f.Figure, link)
		if err != nil {
			return c, err
		}
		c.Figures = append(c.Figures, template.HTML(svg))
	}
	for _, f := range x.Report.Files {
		if strings.HasSuffix(f.Name, ".svg") { // as an image, a drawing keeps its styles to itself
			img := fmt.Sprintf(`<img alt="%s" src="data:image/svg+xml;base64,%s"/>`, template.HTMLEscapeString(quantity.OneLine(f.Name)), base64.StdEncoding.EncodeToString(f.Content))
			c.Figures = append(c.Figures, template.HTML(img))
		}
	}
	return c, nil
}

// distinct keeps the first run of each machine, since experiments mostly ran on the same one.
func distinct(sets []record.Set) (list []record.Set) {
	seen := map[string]bool{}
	for _, s := range sets {
		key := s.Manifest.Environment.Host.Name + "\n" + s.Manifest.Environment.CPU.Model
		for _, d := range s.Manifest.Devices {
			key += "\n" + d.Key
		}
		if !seen[key] {
			seen[key] = true
			list = append(list, s)
		}
	}
	return list
}

// oneLine drops repeated commands.
func oneLine(list []Command) (out []Command) {
	seen := map[string]bool{}
	for _, c := range list {
		if !seen[c.Line] {
			seen[c.Line] = true
			out = append(out, c)
		}
	}
	return out
}
