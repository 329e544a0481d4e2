package site

import (
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/report"
	"rnnbench/report/page"
)

// An experimentPage is the page of an experiment.
type experimentPage struct {
	head
	Source   string
	Machines *page.Sheet
	Chapters []report.Chapter // one for each machine
	Runs     *page.Sheet
}

func (s *site) experimentPages() error {
	for _, e := range s.experiments {
		d := experimentPage{head: under(e.ID + ": " + e.Title), Source: e.Source, Runs: page.NewSheet(runsOf(e.runs, "../"), nil)}
		t := &table.Table{Columns: []table.Column{{Name: "Machine"}, {Name: "Date"}, {Name: "Claims"}}}
		for _, m := range s.machines {
			x := e.on[m]
			if x == nil {
				continue
			}
			t.Rows = append(t.Rows, []table.Cell{{Text: m.title(), Link: "#" + slug(m.key)}, table.Text(x.Set.Manifest.Started.UTC().Format("2006-01-02")), table.Text(verdicts(x))})
			c, err := report.NewChapter(*x, s.above)
			if err != nil {
				return err
			}
			c.ID, c.Title, c.Source = slug(m.key), m.title(), "Measured "+x.Set.Manifest.Started.UTC().Format("2006-01-02")
			if x.Report != nil && x.Report.Reduced {
				c.Source += ", at reduced size"
			}
			c.Link, c.Place = "../"+e.runOf(x.Set).page, "all records of the run"
			for i, sheet := range c.Tables {
				s.linkLayers(sheet)
				sheet.Lead(x.Report.Tables[i], func(row []table.Cell) string { return s.source(row, c.Link) })
			}
			d.Chapters = append(d.Chapters, c)
		}
		d.Machines = page.NewSheet(t, nil)
		if err := s.put(e.page, "experiment", d); err != nil {
			return err
		}
	}
	return nil
}

// linkLayers lets texts that name a layer lead to its page.
func (c *catalogue) linkLayers(sheet *page.Sheet) {
	for _, row := range sheet.Rows {
		for i := range row {
			if at := c.titled[row[i].Text]; at != "" && row[i].Link == "" {
				row[i].Link = "../" + at
			}
		}
	}
}

// source is where the records are of which a row of a table was computed, such as a ratio: the page
// of their layer, if the row names one or has records of one alone, or else that of the run.
func (c *catalogue) source(row []table.Cell, run string) string {
	at := ""
	for _, cell := range row {
		of := c.titled[cell.Text]
		if cell.From != nil {
			of = c.pageOf[cell.From.Point.Timed().Place()]
		}
		switch {
		case of == "" || of == at:
		case at != "":
			return run
		default:
			at = of
		}
	}
	if at == "" {
		return run
	}
	return "../" + at
}

// runOf is the run of a set of records.
func (e *experiment) runOf(set record.Set) *run {
	for _, r := range e.runs {
		if r.Manifest.Run == set.Manifest.Run && r.Manifest.Started.Equal(set.Manifest.Started) {
			return r
		}
	}
	return nil
}
