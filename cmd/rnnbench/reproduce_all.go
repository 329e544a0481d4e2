package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnnbench/experiments"
	"rnnbench/experiments/session"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/files"
	"rnnbench/report"
	"rnnbench/tuner/config"
)

// reproduceAll measures the unfinished experiments of a session, one after the other. It then
// prints a table and writes a page of all.
func reproduceAll(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, c config.Config, s *session.Session) error {
	var outcome error
	f.sum = &total{}
	purse := newPurse(s, c.Measure.Budget)
	for _, x := range s.Entries {
		if finished(x) {
			p.note("%s: already finished", x.ID)
			continue
		}
		share, ok := purse.share()
		if !ok {
			if err := purse.refuse(x); err != nil {
				return err
			}
			continue
		}
		c.Measure.Budget = share
		err := reproduceEntry(ctx, p, cmd, f, c, x)
		var bad *failure
		switch {
		case err == nil:
		case !errors.As(err, &bad):
			return withResumeHint(s, err)
		case bad.code == exitNoDevice:
			p.note("skipped: %v", err)
			if err := x.Skip(needs(x.ID)); err != nil {
				return err
			}
		case bad.code == exitFailures:
			outcome = err // the others can go on
		default:
			return withResumeHint(s, err)
		}
	}
	if f.dryRun {
		p.note("%s", f.sum)
		return outcome
	}
	if purse.refused > 0 {
		p.note("budget of %v exhausted; %s not begun", purse.all, plural(purse.refused, "experiment"))
	}
	return errors.Join(outcome, presentAll(p, s, f.format))
}

// A total sums up the dry runs of several experiments.
type total struct {
	experiments, records int
	seconds              float64
}

// add adds a dry run of so many records that take so many seconds. A nil total ignores it.
func (t *total) add(records int, seconds float64) {
	if t != nil {
		t.experiments, t.records, t.seconds = t.experiments+1, t.records+records, t.seconds+seconds
	}
}

func (t *total) String() string {
	return fmt.Sprintf("in all: %s in %s to measure; about %s", plural(t.records, "record"), plural(t.experiments, "experiment"), quantity.Duration(t.seconds))
}

// finished reports whether an experiment has all of its records.
func finished(x *session.Sitting) bool { return x.Done && exists(x.Folder()) }

// notBegun is the reason of an experiment for which no time was left.
const notBegun = "not begun: budget exhausted"

// A purse is the budget of several experiments. Each may spend an even part of what is left.
type purse struct {
	all     time.Duration // 0: no limit
	begun   time.Time
	waiting int  // experiments that have had no share yet
	opened  bool // one has had its share
	refused int
}

func newPurse(s *session.Session, all time.Duration) *purse {
	w := &purse{all: all, begun: time.Now()}
	for _, x := range s.Entries {
		if !finished(x) {
			w.waiting++
		}
	}
	return w
}

// share returns how long the next experiment may take; 0: no limit. It returns false once the
// budget is spent, but the first experiment always gets some time.
func (w *purse) share() (time.Duration, bool) {
	n := time.Duration(w.waiting)
	w.waiting--
	left := w.all - time.Since(w.begun)
	switch {
	case w.all == 0:
		return 0, true
	case !w.opened:
		w.opened = true
		return max((left / n).Round(100*time.Millisecond), 1), true
	}
	return max((left / n).Round(100*time.Millisecond), 1), left >= n
}

// refuse notes that an experiment got no time.
func (w *purse) refuse(x *session.Sitting) error {
	w.refused++
	if x.Run != "" { // its run shows what is missing
		return nil
	}
	return x.Skip(notBegun)
}

// needs says what a declined experiment lacks here.
func needs(id string) string {
	if e, err := experiments.Lookup(id); err == nil && e.Rivals != "" {
		return "needs a rival (--rival FILE) on such a device"
	}
	return "needs a GPU with the vendor library"
}

// reproduceEntry measures one experiment of a session, or what its run lacks.
func reproduceEntry(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, c config.Config, x *session.Sitting) error {
	e, err := experiments.Lookup(x.ID)
	if err != nil {
		return err
	}
	size := experiments.Full
	if x.Session().Quick {
		size = experiments.Quick
	}
	own := *f
	own.resume = ""
	var before *record.Manifest
	if x.Run != "" && exists(x.Folder()) {
		own.resume = x.Folder()
		share := c.Measure.Budget
		if c, before, err = own.resumed(p, c.Dir); err != nil {
			return misused(cmd, err)
		}
		c.Measure.Budget = share
	}
	return reproduce(ctx, p, cmd, &own, c, e, size, before, x)
}

// withResumeHint adds to an error the command that resumes the session.
func withResumeHint(s *session.Session, err error) error {
	hint := "rnnbench reproduce all --resume " + s.Dir + " resumes the session"
	var bad *failure
	switch {
	case s.Dir == "":
		return err
	case errors.As(err, &bad):
		return &failure{bad.code, bad.err, hint}
	case errors.Is(err, context.Canceled):
		return &failure{exitInterrupted, errors.New("interrupted"), hint}
	}
	return &failure{exitError, err, hint}
}

// presentAll prints the table of verdicts and writes the page.
func presentAll(p *program, s *session.Session, format string) error {
	var list []report.Reproduction
	for _, x := range s.Entries {
		e, err := experiments.Lookup(x.ID)
		if err != nil {
			return err
		}
		r := report.Reproduction{Experiment: e, Missing: x.Reason}
		if x.Run != "" {
			r.Link = x.Run
			if err := readReproduction(p, &r, x.Folder()); err != nil {
				r.Report, r.Missing = nil, err.Error()
			}
		}
		list = append(list, r)
	}
	if format != "json" {
		if _, err := fmt.Fprintln(p.out); err != nil {
			return err
		}
	}
	if err := report.Verdicts(list).Write(p.out, format, p.style()); err != nil {
		return err
	}
	title := "The papers' experiments"
	if s.Quick {
		title += " at reduced size"
	}
	page := filepath.Join(s.Dir, session.Page)
	if err := files.Write(page, func(w io.Writer) error { return report.WriteReproductions(w, title, list) }); err != nil {
		return err
	}
	p.note("wrote %s", page)
	if slices.ContainsFunc(s.Entries, func(x *session.Sitting) bool { return x.Run != "" && !x.Done || x.Reason == notBegun }) {
		p.note("hint: rnnbench reproduce all --resume %s completes unfinished experiments", s.Dir)
	}
	return nil
}

// readReproduction reads the run in dir into r, and reports on it.
func readReproduction(p *program, r *report.Reproduction, dir string) error {
	m, recs, warnings, err := record.Read(dir)
	for _, w := range warnings {
		p.warn("%v", w)
	}
	if err != nil {
		return err
	}
	var d record.Device
	if len(m.Devices) > 0 {
		d = m.Devices[0]
	}
	r.Set = record.Set{Label: strings.TrimSpace(m.Label), Manifest: m, Records: recs, Dir: dir}
	r.Report, err = r.Experiment.On(d, recs)
	return err
}
