package yardstick

import (
	"fmt"

	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/cell"
)

// A threadLimit says what holds a layer back on some threads, each as a share of its time.
type threadLimit struct {
	barriers float64 // barriers at each step, or at each operation
	uneven   float64 // waiting of the mean worker for the busiest
	memory   float64 // reading what no private cache holds, at the measured rate
}

// Names of limits.
const (
	byBarriers = "barriers"
	byUneven   = "uneven shares"
	byMemory   = "shared memory"
	byOthers   = "something else"
)

// limits are the names of limits, in the order of tables.
var limits = []string{byBarriers, byUneven, byMemory, byOthers}

// largest is the limit that takes most, if it takes a tenth at least.
func (l threadLimit) largest() string {
	name, most := byOthers, 0.1
	for i, share := range []float64{l.barriers, l.uneven, l.memory} {
		if share > most {
			name, most = limits[i], share
		}
	}
	return name
}

// limitOf models what holds a record back. Barriers take the time that was measured on that many
// threads. Shares are of strips of 16 units. Memory has the rate of all threads together.
func limitOf(r *record.Record, here *model.Machine) threadLimit {
	n, sec, p := threadsOf(r), r.Seconds(), r.Point
	passes := 1
	if p.Pass == "train" {
		passes = 2
	}
	barriers, waiting, strips := r.Work.Ops, n, ceil(p.Hidden, 16)
	steps := passes * p.Steps * max(1, p.Layers)
	bytes := float64(r.Work.Bytes) // of a scan, which reads each once
	c := cell.Lookup(p.Cell)
	if c == nil {
		return threadLimit{}
	}
	if c.Recurrent > 0 {
		element := 4.0
		if p.Precision != "fp32" {
			element = 2
		}
		bytes = float64(c.Recurrent*p.Hidden*p.Hidden) * element
	}
	switch r.Impl.Name {
	case "persistent":
		barriers, waiting = barriers+steps, min(n, strips)
	case "scan":
		strips *= p.Batch
	default:
		strips *= max(1, c.Recurrent) * ceil(p.Batch, 8)
	}
	l := threadLimit{barriers: min(1, float64(barriers)*here.Meets(waiting)/sec)}
	busiest := ceil(strips, n)
	l.uneven = 1 - float64(strips)/float64(busiest*n)
	if rate := sharedRate(here, bytes, n); rate > 0 {
		if c.Recurrent > 0 {
			bytes *= float64(steps)
		}
		l.memory = min(1, bytes/rate/sec)
	}
	return l
}

func ceil(a, b int) int { return (a + b - 1) / b }

// sharedRate returns the rate of the memory that holds these bytes for n threads, in bytes per
// second. It is 0 if the caches of the threads each hold their part.
func sharedRate(m *model.Machine, bytes float64, n int) float64 {
	private := m.Private()
	for _, l := range m.Levels[:private] {
		if bytes/float64(n) <= l.M {
			return 0
		}
	}
	for _, l := range m.Levels[private:] {
		if bytes <= l.M {
			return l.B
		}
	}
	return m.Levels[len(m.Levels)-1].B
}

// limitThreads adds the limits of each layer on the most threads.
func limitThreads(rep *study.Report, recs []record.Record, here *model.Machine) {
	t := &table.Table{Title: "What holds layers back on all threads, as shares of the time of a run (modelled)", Columns: []table.Column{
		{Name: "Cell", Key: "cell"}, {Name: "Pass", Key: "pass"}, {Name: "Precision", Key: "precision"},
		{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true}, {Name: "Threads", Key: "threads", Right: true}, {Name: "Technique", Key: "impl"},
		{Name: byBarriers, Key: "barriers", Right: true}, {Name: byUneven, Key: "uneven", Right: true}, {Name: byMemory, Key: "memory", Right: true}, {Name: "most", Key: "most"},
	}}
	all := threadCurves(recs)
	for _, g := range groupsOf(all) {
		counts := map[string]int{}
		some := g.in(all)
		for _, s := range some {
			r := s.best[len(s.best)-1]
			l, p := limitOf(r, here), s.point
			counts[l.largest()]++
			t.Rows = append(t.Rows, []table.Cell{table.Text(p.Cell), table.Text(p.Pass), table.Text(p.Precision), table.Int(p.Hidden), table.Int(p.Batch), table.Int(threadsOf(r)), table.Text(r.Impl.Name),
				show.Number(100*l.barriers, "%.0f %%"), show.Number(100*l.uneven, "%.0f %%"), show.Number(100*l.memory, "%.0f %%"), table.Text(l.largest())})
		}
		text := ""
		for _, name := range limits {
			if counts[name] > 0 {
				text += fmt.Sprintf(", %s at %d", name, counts[name])
			}
		}
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s: what limits %s most on all threads, by the model: %s.", g, quantity.Plural(len(some), "layer"), text[2:]))
	}
	if len(t.Rows) > 0 {
		rep.Tables = append(rep.Tables, t)
		rep.Findings = append(rep.Findings, "Barriers are the measured time of a barrier on so many threads, times the steps of a persistent layer, or times the operations of others. That is the most that they can take, since fewer threads share small operations. Uneven shares are of strips of 16 units. Shared memory is the time of reading weights, or the arrays of a scan, that caches of the threads do not hold. Something else includes other programs, lower clocks and work that one thread does alone.")
	}
}
