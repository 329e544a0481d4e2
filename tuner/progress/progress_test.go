package progress

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"rnnbench/record"
	"rnnbench/rnn/axis"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/search"
)

// at is a point with so many units.
func at(hidden int) record.Point {
	return record.Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Input: hidden, Layers: 1, Batch: 1, Steps: 2, Precision: "fp32"}
}

// done is the event of a finished record.
func done(hidden int, label string, status record.Status) tuner.Event {
	r := &record.Record{Point: at(hidden), Impl: record.Impl{Name: label, Label: label}, Status: status}
	if status == record.OK {
		r.Stats = &record.Stats{Median: 0.002}
	} else {
		why := "it cannot"
		r.Reason = &why
	}
	return tuner.Event{Phase: tuner.Done, Point: r.Point, Label: label, Record: r}
}

// forecast has two techniques at two points, one of them chosen by auto.
func forecast() *agenda.Forecast {
	f := &agenda.Forecast{Seconds: 40}
	for _, hidden := range []int{8, 16} {
		for _, s := range []grid.Spec{{Name: "naive", Label: "naive"}, {Name: "scan", Label: "auto", Choice: &record.Choice{Impl: "scan", Match: "exact"}}} {
			f.Entries = append(f.Entries, agenda.Entry{Point: at(hidden), Spec: s, Ops: 1, Seconds: 10})
		}
	}
	return f
}

// TestLog: a log has a line for each record, and one for what was skipped.
func TestLog(t *testing.T) {
	var b bytes.Buffer
	g := New(Options{W: &b, Width: 100, Total: 4}, forecast())
	g.Watch(tuner.Event{Phase: tuner.Measuring, Point: at(8), Label: "naive"})
	g.Watch(done(8, "naive", record.OK))
	g.Watch(done(8, "auto", record.Failed))
	g.Watch(done(16, "naive", record.Skipped))
	g.Say("a note")
	g.Close()
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{"[1/4] lstm forward H=8 ", "[2/4] ", "a note", "naive: 1 skipped: it cannot"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d is not %q:\n%s", i, want, &b)
		}
	}
	if !strings.Contains(lines[1], "auto (scan, exact)  failed: it cannot") {
		t.Error(lines[1])
	}
}

// TestTerminal: the line fits the terminal, if necessary without the leader. It spells only what
// differs between points, and Close clears it.
func TestTerminal(t *testing.T) {
	var b bytes.Buffer
	const width = 70
	g := New(Options{W: &b, Rewrite: true, Width: width, Total: 4}, forecast())
	g.Watch(done(8, "naive", record.OK))
	g.drawn = time.Time{}
	g.Watch(tuner.Event{Phase: tuner.Measuring, Point: at(8), Label: "auto", Round: 1, Rounds: 3})
	text := b.String()
	if !strings.Contains(text, "\r[2/4] H=8  ETA 1 s  auto (scan, exact)  round 2/3") || !strings.Contains(text, "\r[2/4] H=8  leads: naive 2.00 ms") || strings.Contains(text, "\n") {
		t.Errorf("%q", text)
	}
	for _, line := range strings.Split(text, "\r") {
		if n := len([]rune(strings.TrimSuffix(line, "\x1b[K"))); n > width-margin {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	b.Reset()
	if g.Close(); b.String() != "\r\x1b[K" {
		t.Errorf("close writes %q", b.String())
	}
}

// TestLongLengths: lengths from a file do not push the technique and its round off the line, and
// they do not flood a log.
func TestLongLengths(t *testing.T) {
	p := at(8)
	p.Lengths = axis.SequenceLengths(strings.Repeat("17+3+", 1000) + "9")
	e := done(8, "naive", record.OK)
	e.Point, e.Record.Point = p, p
	for _, width := range []int{60, 80, 200} {
		var b bytes.Buffer
		g := New(Options{W: &b, Rewrite: true, Width: width, Total: 4}, forecast())
		g.Watch(tuner.Event{Phase: tuner.Measuring, Point: p, Label: "naive", Round: 1, Rounds: 3})
		if line := b.String(); !strings.Contains(line, "naive  round 2/3") || strings.Contains(line, "lengths=1") != (width > 60) || !strings.Contains(line, "…") {
			t.Errorf("%d columns: %q", width, line)
		}
	}
	var b bytes.Buffer
	New(Options{W: &b, Width: 80, Total: 4}, nil).Watch(e)
	if line := b.String(); len(line) > 200 || !strings.Contains(line, "lengths=17+3+") || !strings.Contains(line, " naive  2.00 ms") {
		t.Errorf("%q", line)
	}
}

// TestMessages: each event is a line with a JSON object.
func TestMessages(t *testing.T) {
	var b bytes.Buffer
	g := New(Options{W: &b, JSON: true, To: Sender{W: &b, Start: time.Now()}, Total: 4}, forecast())
	g.Watch(done(8, "naive", record.OK))
	g.Lead(at(8), "scan", 0.001)
	g.Say("warning: hot")
	g.Close()
	var events []string
	for line := range strings.Lines(b.String()) {
		var m Message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if m.Event == "record" && (*m.Done != 1 || m.Total != 4 || m.Seconds != 0.002 || m.ETA == nil) {
			t.Errorf("%s", line)
		}
		events = append(events, m.Event)
	}
	if got := strings.Join(events, " "); got != "record lead warning" {
		t.Error(got)
	}
}

// TestTune: a tune prints a line for each point, which says so if nothing was timed.
func TestTune(t *testing.T) {
	var b bytes.Buffer
	g := New(Options{W: &b, Width: 100, Total: 2}, nil)
	g.Tune(agenda.Agenda{Parts: []agenda.Part{{Points: []record.Point{at(8), at(16)}}}})
	g.Watch(done(8, "naive", record.OK)) // a candidate is no point
	g.Tuned(&tuner.Verdict{Point: at(8), Result: &search.Result{Winner: -1, Second: -1}})
	g.Tuned(&tuner.Verdict{Point: at(16), Result: &search.Result{Winner: -1, Second: -1, Complete: true}})
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "[1/2] ") || !strings.Contains(lines[0], "budget exhausted before a candidate was timed") ||
		!strings.HasPrefix(lines[1], "[2/2] ") || !strings.Contains(lines[1], "no candidate can run") {
		t.Errorf("%s", &b)
	}
}

// TestOwnWords checks that the progress line spells only what differs between points.
func TestOwnWords(t *testing.T) {
	g := &Progress{}
	a, b := at(512), at(1024)
	if g.share(a); g.own(a) != a.String() {
		t.Errorf("one point: %q", g.own(a))
	}
	if g.share(b); g.own(b) != "H=1024" || g.own(a) != "H=512" {
		t.Errorf("two points: %q, %q", g.own(a), g.own(b))
	}
}

// TestTunedDropped: the line of a point, and its message, say how many candidates were
// dropped by prediction.
func TestTunedDropped(t *testing.T) {
	for _, c := range []struct {
		dropped    int
		line, json string
	}{{2, "3 candidates, 2 dropped by prediction, 7 samples", `"candidates":3,"dropped":2`}, {0, "3 candidates, 7 samples", `"candidates":3,"bursts":7`}} {
		v := &tuner.Verdict{Point: at(8), Records: make([]*record.Record, 3), Dropped: c.dropped, Result: &search.Result{Winner: -1, Second: -1, Evaluations: 7, Complete: true}}
		var line, message bytes.Buffer
		New(Options{W: &line, Width: 100, Total: 1}, nil).Tuned(v)
		(&Progress{Options: Options{JSON: true, To: Sender{W: &message}, Total: 1}}).Tuned(v)
		if !strings.Contains(line.String(), c.line) || !strings.Contains(message.String(), c.json) {
			t.Errorf("%d: %s%s", c.dropped, &line, &message)
		}
	}
}

// TestLoadShows: the estimate follows the rounds of a point, whose techniques finish together. So it tells soon
// that other programs slow the sweep down. When the first estimate is over and nothing is known, it says nothing.
func TestLoadShows(t *testing.T) {
	f := forecast()
	f.Rounds = 10
	g := New(Options{W: &bytes.Buffer{}, Width: 100, Total: 4}, f)
	later := func(d time.Duration) { g.start = g.start.Add(-d) }
	near := func(when string, want float64) {
		t.Helper()
		if got, ok := g.left(); ok != (want > 0) || ok && math.Abs(got-want) > 1 {
			t.Errorf("%s: %v s left, %t; want %v", when, got, ok, want)
		}
	}
	near("at first", 40)
	later(10 * time.Second)
	near("before a round", 30)
	for round := range 3 {
		for _, label := range []string{"naive", "auto"} {
			g.Watch(tuner.Event{Phase: tuner.Measuring, Point: at(8), Label: label, Round: round, Rounds: 5})
		}
	}
	near("after 2 of 10 rounds of half of the entries, of 10 s each", 90)
	g.Watch(done(8, "naive", record.OK))
	g.Watch(done(8, "auto", record.OK))
	near("at half", 10)
	g = New(Options{W: &bytes.Buffer{}, Width: 100, Total: 4}, f)
	later(41 * time.Second)
	near("later than estimated", 0)
}
