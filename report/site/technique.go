package site

import (
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
			if list := s.standing(t, m); len(list.Rows) > 0 {
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

// standing says how fast t is on m, for each group of layers.
func (c *catalogue) standing(t *technique, m *machine) *table.Table {
	list := &table.Table{Columns: []table.Column{{Name: "Cell, pass, precision"}, {Name: "Layers", Right: true}, {Name: "Fastest at", Right: true}, {Name: "Ties", Right: true},
		{Name: "Over the best other", Right: true}, {Name: "Highest rate", Right: true}, {Name: "at"}}}
	for _, g := range c.groups {
		x := placed(t, m, g)
		if x.layers == 0 {
			continue
		}
		over := table.Cell{}
		if x.compared > 0 {
			v := math.Exp(x.logs / float64(x.compared))
			over = table.Number(v, quantity.Factor(v))
		}
		list.Rows = append(list.Rows, []table.Cell{{Text: g.title, Link: "../" + g.page}, table.Int(x.layers), table.Int(x.won), table.Int(x.ties),
			over, table.Throughput(x.best), {Text: x.at.title, Link: "../" + x.at.page}})
	}
	return list
}

// A place is how a technique did in a group of layers on a machine.
type place struct {
	layers, won, ties, compared int

	logs float64 // sum of logarithms of the best other time over the own
	best *record.Record
	at   *layer // of best
}

func placed(t *technique, m *machine, g *group) (x place) {
	for _, l := range g.layers {
		race := l.raceOn(m)
		i := slices.IndexFunc(race, func(r *record.Record) bool { return r.Impl.Name == t.name && r.Seconds() > 0 })
		if i < 0 {
			continue
		}
		own := race[i]
		x.layers++
		if x.best == nil || own.FLOPS() > x.best.FLOPS() {
			x.best, x.at = own, l
		}
		other := slices.IndexFunc(race, func(r *record.Record) bool { return r.Impl.Name != t.name && r.Seconds() > 0 })
		if other >= 0 {
			x.logs += math.Log(race[other].Seconds() / own.Seconds())
			x.compared++
		}
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
