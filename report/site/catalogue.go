package site

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/report"
)

// A catalogue sorts records by what pages are about.
type catalogue struct {
	machines    []*machine
	runs        []*run // by machine, then by date
	experiments []*experiment
	groups      []*group
	layers      []*layer // by group, then by size
	techniques  []*technique

	names namer
	at    map[id]string // address of each record

	pageOf map[record.Point]string // of layers
	titled map[string]string       // pages of layers, by title
}

// An id names a record among all runs.
type id struct {
	run string
	seq int
	key string
}

func idOf(r *record.Record) id { return id{r.Run, r.Seq, r.Key()} }

// A machine is a device with its runs.
type machine struct {
	key, name, page string
	runs            []*run
	layers          []*layer
}

// A run is a run with its page.
type run struct {
	record.Set
	machine *machine
	of      *experiment // nil: of none
	title   string
	page    string
	parts   []part
}

// An experiment is one with its runs.
type experiment struct {
	study.Experiment
	page string
	runs []*run
	on   map[*machine]*report.Reproduction // the newest on each machine
}

// A group is all layers of a cell, pass and precision.
type group struct {
	title, page string
	layers      []*layer
}

// A layer is a problem without its streams.
type layer struct {
	title, page string
	group       *group
	recs        []*record.Record
	races       [][]*record.Record // of techniques that computed the whole answer; the fastest first
}

// A technique is one with its records.
type technique struct {
	name, page string
	records    int
}

func newCatalogue(sets []record.Set) catalogue {
	c := catalogue{names: namer{}, at: map[id]string{}, pageOf: map[record.Point]string{}, titled: map[string]string{}}
	for i := range sets {
		c.addRun(&run{Set: sets[i]})
	}
	slices.SortFunc(c.machines, func(a, b *machine) int { return strings.Compare(a.key, b.key) })
	c.runs = nil
	for _, m := range c.machines {
		m.page = c.names.page("machine", m.key)
		slices.SortStableFunc(m.runs, func(a, b *run) int {
			return cmp.Or(a.Manifest.Started.Compare(b.Manifest.Started), strings.Compare(a.Manifest.Run, b.Manifest.Run))
		})
		for _, r := range m.runs {
			c.divide(r)
		}
		c.runs = append(c.runs, m.runs...)
	}
	c.addExperiments()
	c.addLayers()
	c.addTechniques()
	return c
}

// addRun adds a run to its machine.
func (c *catalogue) addRun(r *run) {
	key, name := "", ""
	if d := r.Manifest.Devices; len(d) > 0 {
		key, name = d[0].Key, d[0].Name
	} else if len(r.Records) > 0 {
		key = r.Records[0].Device
	}
	key = cmp.Or(quantity.OneLine(key), "unknown")
	i := slices.IndexFunc(c.machines, func(m *machine) bool { return m.key == key })
	if i < 0 {
		i = len(c.machines)
		c.machines = append(c.machines, &machine{key: key})
	}
	r.machine = c.machines[i]
	r.machine.name = cmp.Or(r.machine.name, quantity.OneLine(name))
	r.machine.runs = append(r.machine.runs, r)
}

// addExperiments finds the experiments of runs, in their usual order.
func (c *catalogue) addExperiments() {
	known := map[string]*experiment{}
	for _, r := range c.runs {
		e, ok := report.ExperimentOf(r.Set)
		r.title = quantity.OneLine(r.Label)
		if !ok {
			continue
		}
		if known[e.ID] == nil {
			known[e.ID] = &experiment{Experiment: e, on: map[*machine]*report.Reproduction{}}
		}
		r.of = known[e.ID]
		r.of.runs = append(r.of.runs, r)
		r.title = e.ID
		r.of.on[r.machine] = &report.Reproduction{Experiment: e, Set: r.Set} // runs are by date
	}
	for _, usual := range experiments.All() {
		e := known[usual.ID]
		if e == nil {
			continue
		}
		e.page = c.names.page("experiment", e.ID)
		c.experiments = append(c.experiments, e)
		for _, x := range e.on {
			x.Report, x.Missing = reported(x)
		}
	}
}

// reported is the report on a reproduction, or the reason why there is none.
func reported(x *report.Reproduction) (*study.Report, string) {
	var d record.Device
	if list := x.Set.Manifest.Devices; len(list) > 0 {
		d = list[0]
	}
	rep, err := x.Experiment.On(d, x.Set.Records)
	if err != nil {
		return nil, err.Error()
	}
	return rep, ""
}

// addLayers sorts records by layer, and layers by size.
func (c *catalogue) addLayers() {
	at := map[record.Point]*layer{}
	for _, r := range c.runs {
		for i := range r.Records {
			rec := &r.Records[i]
			p := rec.Point.Timed().Place()
			if at[p] == nil {
				at[p] = &layer{title: quantity.OneLine(p.String())}
				c.layers = append(c.layers, at[p])
			}
			at[p].recs = append(at[p].recs, rec)
		}
	}
	axes := slices.DeleteFunc(quantity.Axes(), func(a quantity.Axis) bool {
		return slices.Contains([]string{"impl", "device", "streams", "cache", "graph", "data"}, a.Name)
	})
	slices.SortFunc(axes, func(a, b quantity.Axis) int { return rank(a.Name) - rank(b.Name) })
	slices.SortStableFunc(c.layers, func(x, y *layer) int {
		for _, a := range axes {
			if d := a.Compare(x.recs[0], y.recs[0]); d != 0 {
				return d
			}
		}
		return strings.Compare(x.title, y.title)
	})
	for _, l := range c.layers {
		l.page = c.names.page("layer", l.title)
		c.pageOf[l.recs[0].Point.Timed().Place()], c.titled[l.title] = l.page, l.page
		l.races = quantity.Races(rivals(l.recs))
		c.group(l)
		for _, m := range c.machines {
			if slices.ContainsFunc(l.recs, func(r *record.Record) bool { return quantity.OneLine(r.Device) == m.key }) {
				m.layers = append(m.layers, l)
			}
		}
	}
}

// rank is the place of an axis in the order of layers.
func rank(name string) int {
	order := []string{"cell", "pass", "precision", "hidden", "batch", "steps", "layers"}
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// rivals are the records that compete. A technique that was chosen competes under its own name, if it has a
// record of that name there.
func rivals(recs []*record.Record) (list []*record.Record) {
	named := map[string]bool{}
	for _, r := range recs {
		if competes(r) && r.Impl.Choice == nil && r.Seconds() > 0 {
			named[r.Device] = true
		}
	}
	for _, r := range recs {
		if competes(r) && (r.Impl.Choice == nil || !named[r.Device]) {
			list = append(list, r)
		}
	}
	return list
}

// competes reports whether r is of the whole problem. Trainings take more than a pass, and a scan alone less.
func competes(r *record.Record) bool { return r.Training == nil && r.Impl.Knobs["alone"] == 0 }

// group puts l into its group. Layers come sorted.
func (c *catalogue) group(l *layer) {
	p := l.recs[0].Point
	title := quantity.OneLine(fmt.Sprintf("%s %s %s", p.Cell, p.Pass, p.Precision))
	if n := len(c.groups); n == 0 || c.groups[n-1].title != title {
		c.groups = append(c.groups, &group{title: title, page: c.names.page("layers", title)})
	}
	l.group = c.groups[len(c.groups)-1]
	l.group.layers = append(l.group.layers, l)
}

// addTechniques lists the techniques by name.
func (c *catalogue) addTechniques() {
	at := map[string]*technique{}
	for _, l := range c.layers {
		for _, r := range l.recs {
			if at[r.Impl.Name] == nil {
				at[r.Impl.Name] = &technique{name: r.Impl.Name}
				c.techniques = append(c.techniques, at[r.Impl.Name])
			}
			at[r.Impl.Name].records++
		}
	}
	slices.SortFunc(c.techniques, func(a, b *technique) int {
		return cmp.Or(quantity.Rank(a.name, a.name)-quantity.Rank(b.name, b.name), strings.Compare(a.name, b.name))
	})
	for _, t := range c.techniques {
		t.page = c.names.page("technique", t.name)
	}
}

// address is where r is shown, from the index; "": nowhere.
func (c *catalogue) address(r *record.Record) string { return c.at[idOf(r)] }

// above is the link of a record from a page in a folder.
func (c *catalogue) above(r *record.Record) string {
	if at := c.address(r); at != "" {
		return "../" + at
	}
	return ""
}

// title is the machine's name for readers.
func (m *machine) title() string {
	if m.name == "" || strings.HasPrefix(m.key, "cpu-") { // keys of processors say more
		return m.key
	}
	return m.name
}
