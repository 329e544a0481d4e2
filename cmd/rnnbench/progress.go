package main

import (
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"rnnbench/plots/quantity"
	"rnnbench/results"
	"rnnbench/tuner"
)

// A progress shows how far a sweep is: on a terminal one line that is written
// again, elsewhere a line per finished point. It writes between bursts only,
// when the sweep tells of something, so that it is never part of a sample.
type progress struct {
	w        io.Writer
	rewrite  bool
	width    int
	outcome  func(*results.Record) string
	expected map[string]float64 // seconds, by entry; empty: not known
	all      float64            // sum of expected
	total    int
	start    time.Time

	mu    sync.Mutex // the sweep and an interrupt write
	done  int
	spent float64 // of all
	drawn time.Time
	shown bool   // a line is on the terminal
	last  string // the newest result

	points, at int    // of a tune, and which it is at; its candidates are not counted
	leader     string // of the point at hand
}

// newProgress shows the progress of a sweep; f tells what to expect.
func (p *program) newProgress(f *forecast, total int) *progress {
	g := &progress{
		w: p.err, rewrite: terminal(p.err), width: p.width(p.err), total: total, start: time.Now(), expected: map[string]float64{},
		outcome: outcome,
	}
	if p.quiet {
		g.w = io.Discard
	}
	if f != nil && f.whole {
		for _, e := range f.entries {
			g.expected[entryKey(e.point, e.spec.Label)] = e.seconds
			g.all += e.seconds
		}
		g.all *= float64(total) / float64(max(1, len(f.entries))) // of a resumed run part is done
	}
	return g
}

func entryKey(p results.Point, label string) string { return fmt.Sprintf("%+v|%s", p, label) }

// watch is told what the sweep is doing.
func (g *progress) watch(e tuner.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Phase == tuner.Done {
		g.done++
		g.spent += g.expected[entryKey(e.Point, e.Label)]
		g.last = g.outcome(e.Record)
		if !g.rewrite {
			fmt.Fprintf(g.w, "%s %v %s  %s\n", g.count(g.done), e.Point, e.Label, g.last)
			return
		}
		if s := e.Record.Status; s != results.OK && s != results.Skipped { // stays on the screen
			g.clear()
			fmt.Fprintf(g.w, "%v %s  %s\n", e.Point, e.Label, g.last)
		}
	}
	if !g.rewrite || g.shown && e.Phase == tuner.Measuring && time.Since(g.drawn) < 200*time.Millisecond {
		return
	}
	what := string(e.Phase)
	switch e.Phase {
	case tuner.Measuring:
		what = fmt.Sprintf("round %d", e.Round+1)
		if e.Round < e.Rounds {
			what += fmt.Sprintf("/%d", e.Rounds)
		}
	case tuner.Done:
		what = g.last
	}
	g.draw(fmt.Sprintf("%s %v %s  %s%s%s", g.count(min(g.done+1, g.total)), e.Point, e.Label, what, g.leader, g.eta()))
}

// point begins the point of a tune after so many were done.
func (g *progress) point(done int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at, g.leader = done, ""
}

// leads is told of the candidate that is the fastest so far.
func (g *progress) leads(_ results.Point, label string, seconds float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leader = fmt.Sprintf("  leads: %s %s", label, quantity.SI(seconds, "s"))
}

func (g *progress) count(n int) string {
	if g.points > 0 {
		n = g.at + 1
	}
	return fmt.Sprintf("[%*d/%d]", len(fmt.Sprint(g.total)), n, g.total)
}

// eta extrapolates from what was expected of the points that are done.
func (g *progress) eta() string {
	elapsed := time.Since(g.start).Seconds()
	switch {
	case g.all <= 0:
		return ""
	case g.spent < 0.02*g.all:
		return "  about " + duration(g.all)
	}
	return "  ETA " + duration(elapsed/g.spent*max(0, g.all-g.spent))
}

// draw replaces the line on the terminal.
func (g *progress) draw(line string) {
	const margin = 4 // for the ^C that a terminal echoes
	if utf8.RuneCountInString(line) > g.width-margin {
		line = string([]rune(line)[:g.width-margin])
	}
	fmt.Fprintf(g.w, "\r%s\x1b[K", line)
	g.shown, g.drawn = true, time.Now()
}

func (g *progress) clear() {
	if g.shown {
		fmt.Fprint(g.w, "\r\x1b[K")
		g.shown = false
	}
}

// say writes a line that stays.
func (g *progress) say(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
	fmt.Fprintln(g.w, line)
}

// close leaves a clean line.
func (g *progress) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
}

// outcome says what came of a point in a few words.
func outcome(r *results.Record) string {
	if r.Status != results.OK {
		s := string(r.Status)
		if r.Reason != nil {
			s += ": " + quantity.OneLine(*r.Reason)
		}
		return s
	}
	t, ok := quantity.Time(r)
	if !ok {
		return string(r.Status)
	}
	s := quantity.SI(t.Value, "s")
	if t.Known() {
		s += fmt.Sprintf(" ±%.1f %%", 100*t.Spread())
	}
	return s + "  " + quantity.SI(r.FLOPS(), "FLOP/s")
}
