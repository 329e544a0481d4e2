package site

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/report/page"
)

// A techniquePage is the page of a technique.
type techniquePage struct {
	head
	Idea     string
	Machines []standing
	Lost     string // why it has no result, and how often
}

// A standing says how fast a technique is on a machine.
type standing struct {
	Title, Link, ID string
	Groups          *page.Sheet
}

func (s *site) techniquePages() error {
	for _, t := range s.techniques {
		d := techniquePage{head: under(t.name), Idea: s.idea(t.name)}
		for _, m := range s.machines {
			list, err := s.standing(t, m)
			if err != nil {
				return err
			}
			if len(list.Rows) > 0 {
				d.Machines = append(d.Machines, standing{m.title(), "../" + m.page, slug(m.key), page.NewSheet(list, s.above)})
			}
		}
		var lost []*record.Record
		for _, l := range s.layers {
			for _, r := range l.recs {
				if r.Impl.Name == t.name && r.Status != record.OK {
					lost = append(lost, r)
				}
			}
		}
		if len(lost) > 0 {
			d.Lost = quantity.Reasons(lost)
		}
		if err := s.put(t.page, "technique", d); err != nil {
			return err
		}
	}
	return nil
}

// idea is a technique's idea; "": unknown.
func (s *site) idea(name string) string {
	if s.o.Idea == nil {
		return ""
	}
	return s.o.Idea(name)
}

// standing says how fast t is on m, for each group of layers. What is of several layers leads to a page of them.
func (s *site) standing(t *technique, m *machine) (*table.Table, error) {
	list := &table.Table{Columns: []table.Column{{Name: "Cell, pass, precision"}, {Name: "Layers", Right: true}, {Name: "Fastest at", Right: true}, {Name: "Ties", Right: true},
		{Name: "Over the best other", Right: true}, {Name: "Highest rate", Right: true}, {Name: "at"}}}
	for _, g := range s.groups {
		x := placed(t, m, g)
		if len(x.layers.Rows) == 0 {
			continue
		}
		over := table.Cell{}
		if x.compared > 0 {
			v := math.Exp(x.logs / float64(x.compared))
			over = table.Number(v, quantity.Factor(v))
		}
		all, err := s.placePage(t, m, g, x.layers)
		if err != nil {
			return nil, err
		}
		row := []table.Cell{{Text: g.title, Link: "../" + g.page}, table.Int(len(x.layers.Rows)), table.Int(x.won), table.Int(x.ties), over, table.Throughput(x.best), {Text: x.at.title, Link: "../" + x.at.page}}
		for i := 1; i < 5; i++ {
			row[i].Link = all
		}
		list.Rows = append(list.Rows, row)
	}
	return list, nil
}

// placePage writes the page of the layers that a technique's standing is of, and returns its link.
func (s *site) placePage(t *technique, m *machine, g *group, layers *table.Table) (string, error) {
	title := fmt.Sprintf("%s on %s: %s", t.name, m.title(), g.title)
	at := s.names.page("place", fmt.Sprintf("%s %s %s", t.name, m.key, g.title))
	layers.Notes = []string{"Over it: how many times as fast as the best other technique. Each time leads to its record."}
	d := groupPage{under(title, crumb{t.name, "../" + t.page}, crumb{m.title(), "../" + m.page}), page.NewSheet(layers, s.above)}
	return "../" + at, s.put(at, "layers", d)
}

// A place is how a technique did in a group of layers on a machine.
type place struct {
	layers              *table.Table // each with the time beside that of the best other
	won, ties, compared int

	logs float64 // sum of logarithms of the best other time over the own
	best *record.Record
	at   *layer // of best
}

func placed(t *technique, m *machine, g *group) (x place) {
	x.layers = &table.Table{Columns: []table.Column{{Name: "Layer"}, {Name: "Time", Right: true}, {Name: "Best other", Right: true}, {Name: "Over it", Right: true}}}
	for _, l := range g.layers {
		race := l.raceOn(m)
		i := slices.IndexFunc(race, func(r *record.Record) bool { return r.Impl.Name == t.name && r.Seconds() > 0 })
		if i < 0 {
			continue
		}
		own := race[i]
		if x.best == nil || own.FLOPS() > x.best.FLOPS() {
			x.best, x.at = own, l
		}
		other := slices.IndexFunc(race, func(r *record.Record) bool { return r.Impl.Name != t.name && r.Seconds() > 0 })
		row := []table.Cell{l.cell(), table.Time(own), {}, {}}
		if other >= 0 {
			next := race[other]
			v := next.Seconds() / own.Seconds()
			row[2], row[3] = timed(next), table.Number(v, quantity.Factor(v))
			row[3].Link = "../" + l.page
			x.logs += math.Log(v)
			x.compared++
		}
		x.layers.Rows = append(x.layers.Rows, row)
		lead, ok := quantity.LeadOf(race)
		switch {
		case ok && lead.First.Impl.Name != t.name:
		case ok && !lead.Clear() && lead.Next.Impl.Name != t.name:
			x.ties++
		default:
			x.won++
		}
	}
	return x
}
