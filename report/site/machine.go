package site

import (
	"html/template"
	"slices"
	"strings"

	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/report"
	"rnnbench/report/page"
)

// A machinePage is the page of a machine.
type machinePage struct {
	head
	Facts       *page.Sheet
	Layers      *page.Sheet
	Experiments *page.Sheet
	Runs        *page.Sheet
	Histories   []history
}

// A history is what became of a plan that a machine measured more than once.
type history struct {
	Title   string
	Figures []template.HTML
	Steps   *page.Sheet
}

func (s *site) machinePages() error {
	for _, m := range s.machines {
		d := machinePage{head: under(m.title()), Layers: page.NewSheet(s.fastestOn(m), s.above), Runs: page.NewSheet(runsOf(m.runs, "../"), nil)}
		newest := m.runs[len(m.runs)-1].Set
		newest.Label = "Newest run"
		d.Facts = page.NewSheet(report.Facts([]record.Set{newest}), nil)
		if t := s.experimentsOn(m); len(t.Rows) > 0 {
			d.Experiments = page.NewSheet(t, nil)
		}
		var err error
		if d.Histories, err = s.plans(m); err != nil {
			return err
		}
		if err := s.put(m.page, "machine", d); err != nil {
			return err
		}
	}
	return nil
}

// fastestOn counts what is the fastest in the groups of layers on m.
func (c *catalogue) fastestOn(m *machine) *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Cell, pass, precision"}, {Name: "Layers", Right: true}, {Name: "Fastest"}}}
	for _, g := range c.groups {
		n := 0
		var recs []*record.Record
		for _, l := range g.layers {
			if slices.Contains(m.layers, l) {
				n++
			}
			if race := l.raceOn(m); race != nil {
				recs = append(recs, race...)
			}
		}
		if n > 0 {
			t.Rows = append(t.Rows, []table.Cell{{Text: g.title, Link: "../" + g.page}, table.Int(n), table.Text(strings.TrimPrefix(quantity.Fastest(recs), "fastest "))})
		}
	}
	return t
}

// experimentsOn lists the experiments on m, with what became of the papers' claims.
func (c *catalogue) experimentsOn(m *machine) *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Experiment"}, {Name: "Title"}, {Name: "Claims"}}}
	for _, e := range c.experiments {
		if x := e.on[m]; x != nil {
			t.Rows = append(t.Rows, []table.Cell{{Text: e.ID, Link: "../" + e.page + "#" + slug(m.key)}, table.Text(e.Title), table.Text(verdicts(x))})
		}
	}
	return t
}

// verdicts counts the verdicts on a paper's claims.
func verdicts(list ...*report.Reproduction) string {
	var claims []study.Claim
	for _, x := range list {
		if x.Report != nil {
			claims = append(claims, x.Report.Claims...)
		}
	}
	return study.CountClaims(claims)
}

// runsOf lists runs. root leads from the page to the index.
func runsOf(runs []*run, root string) *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Started"}, {Name: "Of"}, {Name: "Records", Right: true}, {Name: "Program"}, {Name: "Run"}}}
	for _, r := range runs {
		t.Rows = append(t.Rows, []table.Cell{{Text: r.Manifest.Started.UTC().Format("2006-01-02 15:04"), Link: root + r.page}, table.Text(r.title), table.Int(len(r.Records)),
			table.Text(r.Manifest.Environment.Tool.Commit()), table.Text(r.Manifest.Run)})
	}
	return t
}

// plans draws the history of each plan that m measured more than once.
func (c *catalogue) plans(m *machine) (list []history, err error) {
	var titles []string
	sets := map[string][]record.Set{}
	for _, r := range m.runs {
		if len(r.Records) == 0 || r.Records[0].Training != nil {
			continue
		}
		if sets[r.title] == nil {
			titles = append(titles, r.title)
		}
		sets[r.title] = append(sets[r.title], r.Set)
	}
	for _, title := range titles {
		if len(sets[title]) < 2 {
			continue
		}
		h := history{Title: title}
		var steps *table.Table
		if h.Figures, steps, err = followed(sets[title]); err != nil {
			return nil, err
		}
		if steps != nil {
			h.Steps = page.NewSheet(steps, c.above)
			h.Steps.Lead(steps, func(row []table.Cell) string { return c.source(row, "#runs") })
		}
		if h.Figures != nil {
			list = append(list, h)
		}
	}
	return list, nil
}
