// Package progress shows how far a sweep or a tune is: on a terminal one line that is
// written again, elsewhere a line per finished point, or a JSON object for each event.
package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"rnnbench/internal/safe"
	"rnnbench/plots/quantity"
	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/plan"
	"rnnbench/tuner/tuning"
)

// Moment is how long a user is left without a word.
const Moment = 250 * time.Millisecond

// A Progress shows how far a sweep is. It writes between samples only, when the sweep
// tells of something, so that it is never part of a sample.
type Progress struct {
	Options
	expected map[string]float64 // seconds, by entry; empty: not known
	names    map[string]string  // labels that say more than the technique's, by entry
	shared   []string           // words of all points
	skips    quantity.Skips
	all      float64 // sum of expected
	start    time.Time

	mu    sync.Mutex // the sweep and an interrupt write
	done  int
	spent float64 // of all
	drawn time.Time
	shown bool   // a line is on the terminal
	last  string // the newest result

	points, at int           // of a tune, and how many are done; its candidates are not counted
	here       results.Point // at which leader is the fastest so far
	leader     string
	best       float64 // its seconds
}

// Options say where progress is shown, and how.
type Options struct {
	W       io.Writer
	Rewrite bool // W is a terminal, on which a line is written again
	Width   int  // of W
	JSON    bool // a message for each event instead of text
	To      Sender
	Total   int // points with techniques, or points
	// Outcome says what came of a record; nil: its time and rate.
	Outcome func(*results.Record) string
}

// New shows the progress of what f forecasts; nil: not known.
func New(o Options, f *plan.Forecast) *Progress {
	if o.Outcome == nil {
		o.Outcome = Outcome
	}
	g := &Progress{Options: o, start: time.Now(), expected: map[string]float64{}, names: map[string]string{}}
	if f == nil {
		return g
	}
	for _, e := range f.Entries {
		seconds := e.Seconds
		if !e.Known() {
			seconds = f.Seconds / float64(len(f.Entries))
		}
		key := entryKey(e.Point, e.Spec.Label)
		g.expected[key] = seconds
		if e.Spec.Choice != nil {
			g.names[key] = withChoice(e.Spec)
		}
		g.share(e.Point)
		g.all += seconds
	}
	g.all *= float64(o.Total) / float64(max(1, len(f.Entries))) // of a resumed run part is done
	return g
}

// Tune has g show a tune of q, whose points are counted and not its candidates.
func (g *Progress) Tune(q plan.Plan) {
	g.points = q.Points()
	for _, part := range q.Parts {
		for _, at := range part.Points {
			g.share(at)
		}
	}
}

// withChoice is a spec's label with what was chosen for it, where the user did not
// name it.
func withChoice(s grid.Spec) string {
	if s.Choice == nil {
		return s.Label
	}
	return s.Label + " (" + s.Choice.Impl + ", " + s.Choice.Match + ")"
}

func entryKey(p results.Point, label string) string { return fmt.Sprintf("%+v|%s", p, label) }

// Watch is told what the sweep is doing.
func (g *Progress) Watch(e tuner.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Phase == tuner.Done {
		g.done++
		g.spent += g.expected[entryKey(e.Point, e.Label)]
		g.last = g.Outcome(e.Record)
		g.follow(e.Record)
	}
	if g.JSON {
		g.sendEvent(e)
		return
	}
	name := g.name(e)
	if e.Phase == tuner.Done {
		g.skips.Add(e.Record, "")
		if s := e.Record.Status; s == results.Skipped {
			return // counted, and told in the end
		} else if !g.Rewrite {
			if g.points == 0 || s != results.OK { // of a tune, a line per point
				fmt.Fprintf(g.W, "%s %v %s  %s\n", g.count(g.done), e.Point, name, g.last)
			}
			return
		} else if s != results.OK { // stays on the screen
			g.clear()
			fmt.Fprintf(g.W, "%v %s  %s\n", e.Point, name, g.last)
		}
	}
	if !g.Rewrite || g.shown && e.Phase == tuner.Measuring && time.Since(g.drawn) < 200*time.Millisecond {
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
	line := func(leads string) string {
		return fmt.Sprintf("%s %s%s%s  %s  %s", g.count(min(g.done+1, g.Total)), g.own(e.Point), leads, g.eta(), name, what)
	}
	s := line(g.leads())
	if !g.room(s) {
		s = line("")
	}
	g.draw(s) // what comes last is cut where that is still too much
}

// share keeps the words that p has, too.
func (g *Progress) share(p results.Point) {
	words := strings.Fields(p.String())
	if g.shared == nil {
		g.shared = words
		return
	}
	g.shared = slices.DeleteFunc(g.shared, func(w string) bool { return !slices.Contains(words, w) })
}

// own spells what tells p from the other points.
func (g *Progress) own(p results.Point) string {
	words := strings.Fields(p.String())
	if own := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(g.shared, w) }); len(own) > 0 {
		words = own
	}
	return strings.Join(words, " ")
}

// name is what the technique of an event is called.
func (g *Progress) name(e tuner.Event) string {
	if s, ok := g.names[entryKey(e.Point, e.Label)]; ok {
		return s
	}
	return e.Label
}

// follow keeps the fastest of the point that a sweep is at.
func (g *Progress) follow(r *results.Record) {
	if g.points > 0 { // tells itself
		return
	}
	if r.Point != g.here {
		g.here, g.leader, g.best = r.Point, "", 0
	}
	if s := r.Seconds(); s > 0 && (g.best == 0 || s < g.best) {
		g.leader, g.best = quantity.Label(r), s
	}
}

// leads says which technique is the fastest so far.
func (g *Progress) leads() string {
	if g.leader == "" {
		return ""
	}
	return fmt.Sprintf("  leads: %s %s", g.leader, quantity.SI(g.best, "s"))
}

// Lead is told of the candidate of a tune that is the fastest so far.
func (g *Progress) Lead(p results.Point, label string, seconds float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leader, g.best = label, seconds
	if g.JSON {
		m := g.message("lead")
		m.Point, m.Impl, m.Seconds = &p, label, seconds
		g.To.Send(m)
	}
}

// seconds is what a run of the winner takes.
func seconds(v *tuner.Verdict) float64 {
	t, _ := v.Cost()
	return t
}

// cost is the time of a run of the winner, and the energy where that was tuned for.
func cost(v *tuner.Verdict) string {
	t, joules := v.Cost()
	text := quantity.SI(t, "s")
	if joules > 0 {
		text += ", " + quantity.SI(joules, "J")
	}
	return text
}

// Tuned is told of a verdict.
func (g *Progress) Tuned(v *tuner.Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at++
	winner := v.WinnerRecord()
	if g.JSON {
		m := g.message("point")
		m.Point, m.Leader, m.Candidates, m.Dropped, m.Samples = &v.Point, "", v.Candidates(), v.Dropped, v.Evaluations
		if winner != nil {
			m.Impl, m.Seconds = winner.Label(), seconds(v)
		}
		if v.Second >= 0 {
			m.RunnerUp, m.Lead = v.Records[v.Second].Label(), &v.Lead
		}
		g.To.Send(m)
	} else if !g.Rewrite {
		what := "no candidate can run"
		switch {
		case v.Untimed():
			what = tuning.TimedNothing
		case winner != nil:
			what = fmt.Sprintf("%s  %s", winner.Label(), cost(v))
		}
		dropped := ""
		if v.Dropped > 0 {
			dropped = fmt.Sprintf(", %d dropped by prediction", v.Dropped)
		}
		fmt.Fprintf(g.W, "%s %v  %s  %s%s, %s%s\n", g.count(g.at), v.Point, what, quantity.Plural(v.Candidates(), "candidate"), dropped, quantity.Plural(v.Evaluations, "sample"), g.eta())
	}
	g.leader, g.best = "", 0
}

func (g *Progress) count(n int) string {
	if g.points > 0 {
		n = min(g.at+1, g.points)
		if !g.Rewrite {
			n = g.at
		}
	}
	return fmt.Sprintf("[%*d/%d]", len(fmt.Sprint(g.Total)), n, g.Total)
}

// eta says how long the rest takes.
func (g *Progress) eta() string {
	left, ok := g.left()
	switch {
	case !ok:
		return ""
	case g.points == 0 && g.spent < 0.02*g.all:
		return "  about " + quantity.Duration(left)
	}
	return "  ETA " + quantity.Duration(left)
}

// left extrapolates from what was expected of the points that are done, or, of a
// tune, from their number. It is in seconds.
func (g *Progress) left() (float64, bool) {
	elapsed := time.Since(g.start).Seconds()
	switch {
	case g.points > 0:
		return elapsed / float64(max(1, g.at)) * float64(g.points-g.at), g.at > 0 && g.at < g.points
	case g.all <= 0:
		return 0, false
	case g.spent < 0.02*g.all:
		return g.all, true
	}
	return elapsed / g.spent * max(0, g.all-g.spent), true
}

// margin is for the ^C that a terminal echoes.
const margin = 4

// room reports whether a line fits the terminal.
func (g *Progress) room(line string) bool { return utf8.RuneCountInString(line) <= g.Width-margin }

// draw replaces the line on the terminal.
func (g *Progress) draw(line string) {
	line = safe.Text(line)
	if !g.room(line) {
		line = string([]rune(line)[:g.Width-margin])
	}
	fmt.Fprintf(g.W, "\r%s\x1b[K", line)
	g.shown, g.drawn = true, time.Now()
}

func (g *Progress) clear() {
	if g.shown {
		fmt.Fprint(g.W, "\r\x1b[K")
		g.shown = false
	}
}

// Say writes a line that stays.
func (g *Progress) Say(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
	if g.JSON {
		g.To.Text(line)
		return
	}
	fmt.Fprintln(g.W, safe.Text(line))
}

// Close leaves a clean line. A log says what was skipped; on a terminal the table
// does.
func (g *Progress) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
	if g.Rewrite || g.JSON || g.points > 0 {
		return
	}
	for _, line := range g.skips.Lines() {
		fmt.Fprintln(g.W, line)
	}
}

// Outcome says what came of a point in a few words.
func Outcome(r *results.Record) string {
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

// LaidOut tells of a dry run how many entries were laid out.
func (g *Progress) LaidOut(done int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pause := 2 * time.Second // between lines of a log
	if g.Rewrite {
		pause = 100 * time.Millisecond
	}
	if time.Since(g.start) < Moment || time.Since(g.drawn) < pause {
		return
	}
	g.drawn = time.Now()
	line := fmt.Sprintf("planned %d of %d", done, g.Total)
	switch {
	case g.JSON:
		g.To.Text(line)
	case g.Rewrite:
		g.draw(line)
	default:
		fmt.Fprintln(g.W, line)
	}
}
