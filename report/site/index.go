package site

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/table"
	"rnnbench/report"
	"rnnbench/report/page"
)

//go:embed search.js
var search string

// An indexPage is the page that all others are reached from.
type indexPage struct {
	head
	Summary     string
	Machines    *page.Sheet
	Experiments *page.Sheet
	Techniques  *page.Sheet
	Layers      *page.Sheet
}

func (s *site) index() error {
	records, first, last := 0, "", ""
	for _, r := range s.runs {
		records += len(r.Records)
		day := r.Manifest.Started.UTC().Format("2006-01-02")
		if first == "" || day < first {
			first = day
		}
		last = max(last, day)
	}
	d := indexPage{head: head{Title: s.o.Title}, Machines: page.NewSheet(s.machineList(), nil), Techniques: page.NewSheet(s.techniqueList(), nil), Layers: page.NewSheet(s.layerList(), nil)}
	d.Summary = fmt.Sprintf("%s of %s on %s, in %s from %s to %s.", count(records, "record"), count(len(s.layers), "layer"), count(len(s.machines), "machine"), count(len(s.runs), "run"), first, last)
	if len(s.experiments) > 0 {
		d.Experiments = page.NewSheet(s.experimentList(), nil)
	}
	return s.put("index.html", "index", d)
}

func (c *catalogue) machineList() *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Machine"}, {Name: "Runs", Right: true}, {Name: "Layers", Right: true}, {Name: "Last measured"}}}
	for _, m := range c.machines {
		last := m.runs[len(m.runs)-1].Manifest.Started
		t.Rows = append(t.Rows, []table.Cell{{Text: m.title(), Link: m.page}, table.Int(len(m.runs)), table.Int(len(m.layers)), table.Text(last.UTC().Format("2006-01-02"))})
	}
	return t
}

func (c *catalogue) experimentList() *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Experiment"}, {Name: "Title"}, {Name: "Machines", Right: true}, {Name: "Claims"}}}
	for _, e := range c.experiments {
		var all []*report.Reproduction
		for _, m := range c.machines {
			if x := e.on[m]; x != nil {
				all = append(all, x)
			}
		}
		t.Rows = append(t.Rows, []table.Cell{{Text: e.ID, Link: e.page}, table.Text(e.Title), table.Int(len(all)), table.Text(verdicts(all...))})
	}
	return t
}

func (s *site) techniqueList() *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Technique"}, {Name: "Records", Right: true}, {Name: "Idea"}}}
	for _, x := range s.techniques {
		t.Rows = append(t.Rows, []table.Cell{{Text: x.name, Link: x.page}, table.Int(x.records), table.Text(s.idea(x.name))})
	}
	return t
}

// layerList is a table of cells. Each pass and precision leads to its layers.
func (c *catalogue) layerList() *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Cell"}}}
	var cells, kinds []string
	at := map[[2]string]*group{}
	for _, g := range c.groups {
		p := g.layers[0].recs[0].Point
		kind := p.Pass + " " + p.Precision
		if !slices.Contains(cells, p.Cell) {
			cells = append(cells, p.Cell)
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		at[[2]string{p.Cell, kind}] = g
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		t.Columns = append(t.Columns, table.Column{Name: k, Right: true})
	}
	for _, c := range cells {
		row := []table.Cell{table.Text(c)}
		for _, k := range kinds {
			var cell table.Cell
			if g := at[[2]string{c, k}]; g != nil {
				cell = table.Int(len(g.layers))
				cell.Link = g.page
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{"Each number is that of layers, and leads to their list."}
	return t
}

// shapes is the script that lists the layers for the search: title, page and number of machines.
func (c *catalogue) shapes() (string, error) {
	var b strings.Builder
	b.WriteString("const layers = [\n")
	for _, l := range c.layers {
		machines := 0
		for _, m := range c.machines {
			if l.raceOn(m) != nil {
				machines++
			}
		}
		line, err := json.Marshal([]any{l.title, l.page, machines})
		if err != nil {
			return "", err
		}
		b.Write(line)
		b.WriteString(",\n")
	}
	b.WriteString("];\n")
	return b.String(), nil
}
