package compare

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"rnnbench/record"
)

// A History follows the runs of one device: how long each technique took at each point, run by run.
type History struct {
	Device string
	Runs   []record.Set // in the order of Order
	Lines  []Line       // by first appearance
	// Common is what moved all points of a run alike; nil: there are too few points to say.
	Common *Line
}

// A Line is one technique at one point, run by run.
type Line struct {
	Record  *record.Record // the newest with a time; nil: the common line of all points
	Choices []string       // what an automatic choice ran in each run; empty: none
	Times   []float64      // seconds of each run, or its ratio to a typical run for the common line; NaN: none
	Steps   []Step         // in order
	Spread  float64        // standard deviation of a run's median, as a share; NaN: unknown
	Visible float64        // the smallest step in the middle that would probably be found, as a share; +Inf: none
	Drifts  bool           // runs resemble their neighbours, which makes steps hard to tell from drift
	Late    Interval       // the last runs relative to those before, if they are too few for a step; else unknown

	logs []float64 // of Times, without the common shift of the run
}

// A Step is a change between two neighbouring runs that lasts for at least four runs.
type Step struct {
	At    int      // index of the first run after the step
	Ratio Interval // time after over time before
	P     float64  // probability of a step that clear by chance, at any run of any line
}

// shortest is the least number of runs between two steps, and before the first and after the last.
const shortest = 4

// ErrAlone says that no device has a second run.
var ErrAlone = errors.New("a history needs two runs or more of one device, and no device has more than one")

// ErrNoTime says that no run has a time.
var ErrNoTime = errors.New("no point has a time in any run")

// An Order sorts runs.
type Order string

// The orders of runs.
const (
	ByCommit Order = "commit" // when the measured program was committed, then when it was measured
	ByDate   Order = "date"   // when it was measured
)

// Histories follows each device's runs in that order. It fails if no device has two runs.
func Histories(sets []record.Set, by Order, o Options) ([]History, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var list []History
	for _, s := range sets {
		for _, device := range devices(s.Records) {
			i := slices.IndexFunc(list, func(h History) bool { return h.Device == device })
			if i < 0 {
				i = len(list)
				list = append(list, History{Device: device})
			}
			own := s
			own.Records = slices.DeleteFunc(slices.Clone(s.Records), func(r record.Record) bool { return r.Device != device })
			list[i].Runs = append(list[i].Runs, own)
		}
	}
	most, lines := 0, 0
	for i := range list {
		h := &list[i]
		most = max(most, len(h.Runs))
		slices.SortStableFunc(h.Runs, func(a, b record.Set) int { return by.compare(a.Manifest, b.Manifest) })
		if err := h.follow(o); err != nil {
			return nil, err
		}
		lines += len(h.Lines)
	}
	switch {
	case most < 2:
		return nil, ErrAlone
	case lines == 0:
		return nil, ErrNoTime
	}
	return list, nil
}

// compare orders two runs. Runs of programs without a commit come by when they were measured.
func (by Order) compare(a, b record.Manifest) int {
	if by == ByCommit {
		x, errX := time.Parse(time.RFC3339, a.Environment.Tool.Time)
		y, errY := time.Parse(time.RFC3339, b.Environment.Tool.Time)
		if errX == nil && errY == nil {
			return cmp.Or(x.Compare(y), cmp.Compare(a.Environment.Tool.Revision, b.Environment.Tool.Revision), a.Started.Compare(b.Started))
		}
	}
	return a.Started.Compare(b.Started)
}

// follow fills the lines of a history.
func (h *History) follow(o Options) error {
	at, err := index(Side{Label: h.Device, Runs: h.Runs}, lineOf)
	if err != nil {
		return err
	}
	for _, key := range at.keys {
		p := at.at[key]
		if len(p.all) == 0 {
			continue // never measured
		}
		l := Line{Record: p.all[len(p.all)-1], logs: p.runs, Late: unknown()}
		for _, v := range p.runs {
			l.Times = append(l.Times, math.Exp(v))
		}
		h.Lines = append(h.Lines, l)
	}
	h.choices()
	h.removeShifts()
	h.findSteps(o)
	return nil
}

// lineOf tells lines apart. An automatic choice is one line, whatever it chose.
func lineOf(r *record.Record) string {
	if c := r.Impl.Choice; c != nil {
		q := record.Record{Device: r.Device, Point: r.Point, Impl: record.Impl{Name: c.By}, Training: r.Training}
		return q.Key() + modeOf(r)
	}
	return r.Key() + modeOf(r)
}

// choices notes what automatic choices ran.
func (h *History) choices() {
	for i := range h.Lines {
		l := &h.Lines[i]
		if l.Record.Impl.Choice == nil {
			continue
		}
		l.Choices = make([]string, len(h.Runs))
		for run, s := range h.Runs {
			for j := range s.Records {
				if r := &s.Records[j]; ok(r) && lineOf(r) == lineOf(l.Record) {
					l.Choices[run] = cmp.Or(r.Impl.Choice.Impl, r.Impl.Name)
				}
			}
		}
	}
}

// removeShifts estimates what moved all points of a run alike, and removes it from each line.
func (h *History) removeShifts() {
	if len(h.Lines) < fewestPoints {
		return
	}
	shifts := make([]float64, len(h.Runs))
	for run := range shifts {
		var moved []float64
		for i := range h.Lines {
			if l := &h.Lines[i]; !math.IsNaN(l.logs[run]) {
				moved = append(moved, l.logs[run]-median(l.logs))
			}
		}
		shifts[run] = math.NaN()
		if len(moved) >= fewestPoints {
			shifts[run] = median(moved)
		}
	}
	if len(numbers(shifts)) == 0 {
		return // no run has enough of the points
	}
	h.Common = &Line{logs: shifts, Late: unknown()}
	for _, v := range shifts {
		h.Common.Times = append(h.Common.Times, math.Exp(v))
	}
	for i := range h.Lines {
		h.Lines[i].logs = withoutShifts(h.Lines[i].logs, shifts)
	}
}

// Stepped lists the lines with a step, the common line first.
func (h *History) Stepped() (list []*Line) {
	for _, l := range h.all() {
		if len(l.Steps) > 0 {
			list = append(list, l)
		}
	}
	return list
}

// all lists the common line, if there is one, and the others.
func (h *History) all() (list []*Line) {
	if h.Common != nil {
		list = append(list, h.Common)
	}
	for i := range h.Lines {
		list = append(list, &h.Lines[i])
	}
	return list
}

// StepsAt reports whether a line has a step at a run.
func (h *History) StepsAt(run int) bool {
	return slices.ContainsFunc(h.all(), func(l *Line) bool {
		return slices.ContainsFunc(l.Steps, func(s Step) bool { return s.At == run })
	})
}
