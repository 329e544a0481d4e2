package site

import (
	"errors"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/record/compare"
	"rnnbench/report/page"
)

// A layerPage is the page of a layer.
type layerPage struct {
	head
	Fastest   []fastest
	Across    *page.Sheet // techniques by machine; nil: one machine has measured it
	Passes    *page.Sheet
	Trainings *page.Sheet
	Histories []template.HTML
	Runs      []crumb // that measured it, in the order of their machines and dates
	Near      []crumb // of the group, before and after
}

// fastest says what is the fastest on a machine.
type fastest struct{ Machine, Link, Time, Record, Text string }

const (
	fewestRuns = 3  // of a machine, for a history on a layer's page
	judgedRuns = 8  // for steps to be found: four runs before and four after
	fewLines   = 40 // of a history that lists lines without a step, too
)

func (s *site) layerPages() error {
	for i, l := range s.layers {
		d := layerPage{head: under(l.title, crumb{l.group.title, "../" + l.group.page})}
		for _, k := range []int{i - 1, i + 1} {
			if k >= 0 && k < len(s.layers) && s.layers[k].group == l.group {
				d.Near = append(d.Near, crumb{s.layers[k].title, "../" + s.layers[k].page})
			}
		}
		d.Runs = s.measuredIn(l)
		for _, m := range s.machines {
			if race := l.raceOn(m); race != nil {
				d.Fastest = append(d.Fastest, fastest{m.title(), "../" + m.page, quantity.SI(race[0].Seconds(), "s"), s.above(race[0]), told(race)})
			}
		}
		if err := s.measured(&d, l); err != nil {
			return fmt.Errorf("%s: %w", l.title, err)
		}
		if err := s.put(l.page, "layer", d); err != nil {
			return err
		}
	}
	return nil
}

// measuredIn lists the runs that measured l. Each leads to its first record of l.
func (c *catalogue) measuredIn(l *layer) (list []crumb) {
	seen := map[string]bool{}
	for _, r := range l.recs { // by run
		if link := c.above(r); !seen[r.Run] {
			seen[r.Run] = true
			list = append(list, crumb{fmt.Sprintf("%s, %s", r.Run, r.Time.UTC().Format("2006-01-02 15:04")), link})
		}
	}
	return list
}

// measured adds the tables and figures of l.
func (s *site) measured(d *layerPage, l *layer) (err error) {
	var passes, trainings []record.Record
	for _, r := range l.recs {
		if r.Training == nil {
			passes = append(passes, *r)
		} else {
			trainings = append(trainings, *r)
		}
	}
	if len(passes) > 0 {
		t, err := table.Records(passes, "naive")
		if err != nil {
			return err
		}
		d.Passes = page.NewSheet(t, s.above)
	}
	if len(trainings) > 0 {
		t, err := table.Records(record.Trainings(trainings), "naive")
		if err != nil {
			return err
		}
		d.Trainings = page.NewSheet(t, s.above)
	}
	if len(d.Fastest) > 1 {
		whole := slices.DeleteFunc(slices.Clone(passes), func(r record.Record) bool { return !competes(&r) })
		t, err := table.Pivot(whole, "impl", "device", "time", "")
		if err != nil {
			return err
		}
		d.Across = page.NewSheet(t, s.above)
	}
	d.Histories, err = s.histories(l)
	return err
}

// histories draws the times of l run by run, for each machine with enough runs.
func (c *catalogue) histories(l *layer) (list []template.HTML, err error) {
	for _, m := range c.machines {
		var sets []record.Set
		for _, r := range m.runs {
			own := r.Set
			own.Records = nil
			for _, rec := range l.recs {
				if rec.Run == r.Manifest.Run && rec.Training == nil {
					own.Records = append(own.Records, *rec)
				}
			}
			if len(own.Records) > 0 {
				sets = append(sets, own)
			}
		}
		if len(sets) < fewestRuns {
			continue
		}
		figures, _, err := followed(sets)
		if err != nil {
			return nil, err
		}
		list = append(list, figures...)
	}
	return list, nil
}

// followed draws the histories of runs, and lists their steps; nothing if no time is in two runs.
func followed(sets []record.Set) (list []template.HTML, steps *table.Table, err error) {
	histories, err := compare.Histories(sets, order(sets), compare.Usual())
	if errors.Is(err, compare.ErrAlone) || errors.Is(err, compare.ErrNoTime) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for i := range histories {
		if len(histories[i].Runs) < 2 || len(histories[i].Lines) == 0 {
			continue
		}
		chart := plots.History(&histories[i])
		if len(histories[i].Runs) < judgedRuns {
			chart.Title = "Times of " + histories[i].Device + ", run by run"
		}
		svg, err := plots.Inline(chart, nil)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, template.HTML(svg))
	}
	if len(sets) < judgedRuns {
		return list, nil, nil
	}
	steps = table.History(histories, len(histories[0].Lines) <= fewLines)
	steps.Notes = slices.DeleteFunc(steps.Notes, func(n string) bool { return strings.Contains(n, "--all") }) // a hint for terminals
	return list, steps, nil
}

// order is the order of runs: of their programs' commits, if all say which.
func order(sets []record.Set) compare.Order {
	if slices.ContainsFunc(sets, func(s record.Set) bool { return s.Manifest.Environment.Tool.Time == "" }) {
		return compare.ByDate
	}
	return compare.ByCommit
}

// raceOn is the race of l on m with the fastest technique; nil: nothing has a time there.
func (l *layer) raceOn(m *machine) (best []*record.Record) {
	for _, race := range l.races {
		first := race[0]
		if quantity.OneLine(first.Device) != m.key || first.Seconds() == 0 {
			continue
		}
		if best == nil || first.Seconds() < best[0].Seconds() {
			best = race
		}
	}
	return best
}

// told says who won a race, and by how much.
func told(race []*record.Record) string {
	if lead, ok := quantity.LeadOf(race); ok {
		return lead.String()
	}
	return "only " + quantity.Label(race[0]) + " has a time"
}

// A groupPage lists the layers of a group.
type groupPage struct {
	head
	Layers *page.Sheet
}

func (s *site) groupPages() error {
	for _, g := range s.groups {
		d := groupPage{head: under(g.title), Layers: page.NewSheet(s.list(g), s.above)}
		if err := s.put(g.page, "layers", d); err != nil {
			return err
		}
	}
	return nil
}

// cell names l in a list of its group.
func (l *layer) cell() table.Cell {
	p := l.recs[0].Point
	return table.Cell{Text: strings.TrimPrefix(strings.TrimPrefix(l.title, p.Cell+" "), p.Pass+" "), Link: "../" + l.page}
}

// timed is the time of r with its technique.
func timed(r *record.Record) table.Cell {
	c := table.Time(r)
	c.Text += " " + quantity.Label(r)
	return c
}

// list is the table of a group's layers: what is fastest on each machine.
func (c *catalogue) list(g *group) *table.Table {
	t := &table.Table{Columns: []table.Column{{Name: "Layer"}}}
	var machines []*machine
	for _, m := range c.machines {
		if slices.ContainsFunc(g.layers, func(l *layer) bool { return l.raceOn(m) != nil }) {
			machines = append(machines, m)
			t.Columns = append(t.Columns, table.Column{Name: m.title(), Right: true})
		}
	}
	unsure := false
	for _, l := range g.layers {
		row := []table.Cell{l.cell()}
		for _, m := range machines {
			race := l.raceOn(m)
			if race == nil {
				row = append(row, table.Cell{})
				continue
			}
			c := timed(race[0])
			if lead, ok := quantity.LeadOf(race); ok && !lead.Clear() {
				c.Text += " ≈"
				unsure = true
			}
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, "Each time is that of the fastest technique, and leads to its record.")
	if unsure {
		t.Notes = append(t.Notes, "≈: a tie with another technique, or too few samples to tell.")
	}
	return t
}
