// Package progress shows how far a sweep or a tune is. On a terminal it rewrites one line. Elsewhere
// it prints a line for each finished point, or a JSON object for each event.
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
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/campaign"
	"rnnbench/tuner/grid"
)

// Moment is how long a command may take before it shows progress.
const Moment = 250 * time.Millisecond

// A Progress shows how far a sweep is. It writes only on events of the sweep, which come between
// samples, so writing is never part of a sample.
type Progress struct {
	Options
	expected map[string]float64 // estimated seconds by entry; empty: not known
	names    map[string]string  // labels with the technique that auto chose, by entry
	shared   []string           // words that all points share
	skips    quantity.Skips
	all      float64            // sum of expected
	rounds   float64            // that are expected at a point; 0: not known
	begun    map[string]float64 // seconds of expected that the rounds of unfinished entries have taken
	start    time.Time

	mu    sync.Mutex // the sweep and an interrupt both write
	done  int
	spent float64 // sum of expected of the finished entries, and of begun
	drawn time.Time
	shown bool   // a line is on the terminal
	last  string // the newest result

	points, at int          // points of a tune, and how many are done; 0: a sweep
	here       record.Point // the point of leader
	leader     string       // the fastest so far
	best       float64      // leader's seconds
}

// Options say where progress is shown, and how.
type Options struct {
	W       io.Writer
	Rewrite bool // W is a terminal, on which one line is rewritten
	Width   int  // of W
	ASCII   bool // only ASCII characters
	JSON    bool // a message for each event instead of text
	To      Sender
	Total   int // records of a sweep, or points of a tune
	// Outcome describes a finished record; nil: by its time and rate.
	Outcome func(*record.Record) string
}

// New makes the progress of a sweep. f is its forecast; nil: none.
func New(o Options, f *agenda.Forecast) *Progress {
	if o.Outcome == nil {
		o.Outcome = Outcome
	}
	if o.ASCII {
		o.W = table.Letters(o.W)
	}
	g := &Progress{Options: o, start: time.Now(), expected: map[string]float64{}, begun: map[string]float64{}, names: map[string]string{}}
	if f == nil {
		return g
	}
	g.rounds = f.Rounds
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
	g.all *= float64(o.Total) / float64(max(1, len(f.Entries))) // a resumed run is partly done
	return g
}

// Tune makes g show a tune of q: it counts points instead of candidates.
func (g *Progress) Tune(q agenda.Agenda) {
	g.points = q.Points()
	for _, part := range q.Parts {
		for _, at := range part.Points {
			g.share(at)
		}
	}
}

// withChoice is a spec's label, with the technique chosen for it if the user left it open.
func withChoice(s grid.Spec) string {
	if s.Choice == nil {
		return s.Label
	}
	return s.Label + " (" + s.Choice.Impl + ", " + s.Choice.Match + ")"
}

func entryKey(p record.Point, label string) string { return fmt.Sprintf("%+v|%s", p, label) }

// Watch receives the sweep's events.
func (g *Progress) Watch(e tuner.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spend(e)
	if e.Phase == tuner.Done {
		g.done++
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
		if s := e.Record.Status; s == record.Skipped {
			return // Close reports skipped ones
		} else if !g.Rewrite {
			if g.points == 0 || s != record.OK { // a tune prints a line per point instead
				fmt.Fprintf(g.W, "%s %s %s  %s\n", g.count(g.done), brief(e.Point.String(), mostWord), name, g.last)
			}
			return
		} else if s != record.OK { // this line stays on the screen
			g.clear()
			fmt.Fprintf(g.W, "%s %s  %s\n", brief(e.Point.String(), mostWord), name, g.last)
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
	g.draw(g.line(g.own(e.Point), name, what)) // which cuts a line that is still too long
}

// line says what is measured at a point, which is given in words. Where there is no room, it leaves
// out the leader, then the middle of the longest words of the point, then all but its first: lengths from
// a file take much room.
func (g *Progress) line(point, name, what string) string {
	spell := func(point, leads string) string {
		return fmt.Sprintf("%s %s%s%s  %s  %s", g.count(min(g.done+1, g.Total)), point, leads, g.eta(), name, what)
	}
	s := spell(point, g.leads())
	if !g.room(s) {
		s = spell(point, "")
	}
	for most := mostWord; !g.room(s) && most >= 12; most /= 2 {
		s = spell(brief(point, most), "")
	}
	if first, _, more := strings.Cut(point, " "); !g.room(s) && more {
		s = spell(brief(first, 12)+" …", "")
	}
	return s
}

// mostWord is the most characters of a word of a point in a line.
const mostWord = 48

// brief leaves out the middle of words with more than most characters.
func brief(text string, most int) string {
	words := strings.Fields(text)
	for i, w := range words {
		if r := []rune(w); len(r) > most {
			words[i] = string(r[:most-most/3]) + "…" + string(r[len(r)-most/3+1:])
		}
	}
	return strings.Join(words, " ")
}

// share keeps the shared words that p has too.
func (g *Progress) share(p record.Point) {
	words := strings.Fields(p.String())
	if g.shared == nil {
		g.shared = words
		return
	}
	g.shared = slices.DeleteFunc(g.shared, func(w string) bool { return !slices.Contains(words, w) })
}

// own spells the words of p that other points do not share.
func (g *Progress) own(p record.Point) string {
	words := strings.Fields(p.String())
	if own := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(g.shared, w) }); len(own) > 0 {
		words = own
	}
	return strings.Join(words, " ")
}

// name is the displayed name of an event's technique.
func (g *Progress) name(e tuner.Event) string {
	if s, ok := g.names[entryKey(e.Point, e.Label)]; ok {
		return s
	}
	return e.Label
}

// follow keeps the fastest record of the sweep's current point.
func (g *Progress) follow(r *record.Record) {
	if g.points > 0 { // a tune calls Lead
		return
	}
	if r.Point != g.here {
		g.here, g.leader, g.best = r.Point, "", 0
	}
	if s := r.Seconds(); s > 0 && (g.best == 0 || s < g.best) {
		g.leader, g.best = quantity.Label(r), s
	}
}

// leads names the fastest technique so far.
func (g *Progress) leads() string {
	if g.leader == "" {
		return ""
	}
	return fmt.Sprintf("  leads: %s %s", g.leader, quantity.SI(g.best, "s"))
}

// Lead receives each new fastest candidate of a tune.
func (g *Progress) Lead(p record.Point, label string, seconds float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leader, g.best = label, seconds
	if g.JSON {
		m := g.message("lead")
		m.Point, m.Impl, m.Seconds = &p, label, seconds
		g.To.Send(m)
	}
}

// seconds is the time of a run of the winner.
func seconds(v *tuner.Verdict) float64 {
	t, _ := v.Cost()
	return t
}

// cost is the time of a run of the winner, and its energy if energy was the objective.
func cost(v *tuner.Verdict) string {
	t, joules := v.Cost()
	text := quantity.SI(t, "s")
	if joules > 0 {
		text += ", " + quantity.SI(joules, "J")
	}
	return text
}

// Tuned receives the verdict of each point of a tune.
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
			what = campaign.TimedNothing
		case winner != nil:
			what = fmt.Sprintf("%s  %s", winner.Label(), cost(v))
		}
		dropped := ""
		if v.Dropped > 0 {
			dropped = fmt.Sprintf(", %d dropped by prediction", v.Dropped)
		}
		fmt.Fprintf(g.W, "%s %s  %s  %s%s, %s%s\n", g.count(g.at), brief(v.Point.String(), mostWord), what, quantity.Plural(v.Candidates(), "candidate"), dropped, quantity.Plural(v.Evaluations, "sample"), g.eta())
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

// margin leaves room for the ^C that a terminal echoes.
const margin = 4

// room reports whether a line fits the terminal.
func (g *Progress) room(line string) bool { return utf8.RuneCountInString(line) <= g.Width-margin }

// draw replaces the line on the terminal.
func (g *Progress) draw(line string) {
	line = safe.Text(line)
	if g.ASCII {
		line = table.ASCII(line) // before it is cut
	}
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

// Close clears the line. A log then lists what was skipped; on a terminal the table of results does.
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

// Outcome describes a record in a few words: its time and rate, or its status and reason.
func Outcome(r *record.Record) string {
	if r.Status != record.OK {
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
	switch {
	case t.Spread() >= 1: // as a percentage, it would say nothing
		s += fmt.Sprintf(" (%s to %s)", quantity.SI(t.Lo, "s"), quantity.SI(t.Hi, "s"))
	case t.Known():
		s += " ±" + t.Half()
	}
	return s + "  " + quantity.SI(r.FLOPS(), "FLOP/s")
}

// LaidOut shows how many entries a dry run has laid out.
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
