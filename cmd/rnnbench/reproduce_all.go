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
	"rnnbench/experiments/study"
	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/files"
	"rnnbench/report"
)

// reproduceAll measures the unfinished experiments of a session, one after the other. It then
// prints a table and writes a page of all.
func reproduceAll(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, s *session.Session) error {
	var outcome error
	f.sum = &total{}
	budget := session.NewBudget(s, f.Config.Measure.Budget)
	for _, x := range s.Entries {
		if x.Finished() {
			p.Note("%s: already finished", x.ID)
			continue
		}
		share, ok := budget.Share()
		if !ok {
			if err := budget.Refuse(x); err != nil {
				return err
			}
			continue
		}
		err := reproduceEntry(ctx, p, cmd, *f, x, share)
		var bad *exit.Failure
		switch {
		case err == nil:
		case !errors.As(err, &bad):
			return withResumeHint(s, err)
		case bad.Code == exit.NoDevice:
			p.Note("skipped: %v", err)
			if err := x.Skip(needs(x.ID)); err != nil {
				return err
			}
		case bad.Code == exit.Failures:
			outcome = err // the others can go on
		default:
			return withResumeHint(s, err)
		}
	}
	if f.DryRun {
		p.Note("%s", f.sum)
		return outcome
	}
	if budget.Refused > 0 {
		p.Note("budget of %v exhausted; %s not begun", f.Config.Measure.Budget, plural(budget.Refused, "experiment"))
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

// needs says what a declined experiment lacks here.
func needs(id string) string {
	if e, err := experiments.Lookup(id); err == nil && e.Rivals != "" {
		return "needs a rival (--rival FILE) on such a device"
	}
	return "needs a GPU with the vendor library"
}

// reproduceEntry measures one experiment of a session, or what its run lacks, within a budget.
func reproduceEntry(ctx context.Context, p *program, cmd *cobra.Command, f sweepFlags, x *session.Entry, budget time.Duration) error {
	e, err := experiments.Lookup(x.ID)
	if err != nil {
		return err
	}
	size := study.Full
	if x.Session().Quick {
		size = study.Quick
	}
	f.Resume = ""
	var before *record.Manifest
	if x.Run != "" && exists(x.Folder()) {
		f.Resume = x.Folder()
		if before, err = f.Resumed(); err != nil {
			return misused(cmd, err)
		}
	}
	f.Config.Measure.Budget = budget
	return reproduce(ctx, p, cmd, &f, e, size, before, x)
}

// withResumeHint adds to an error the command that resumes the session.
func withResumeHint(s *session.Session, err error) error {
	hint := "rnnbench reproduce all --resume " + s.Dir + " resumes the session"
	var bad *exit.Failure
	switch {
	case s.Dir == "":
		return err
	case errors.As(err, &bad):
		return exit.With(bad.Code, bad.Err, hint)
	case errors.Is(err, context.Canceled):
		return exit.With(exit.Interrupted, errors.New("interrupted"), hint)
	}
	return exit.With(exit.Error, err, hint)
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
	p.Note("wrote %s", page)
	if slices.ContainsFunc(s.Entries, func(x *session.Entry) bool { return x.Run != "" && !x.Done || x.Reason == session.NotBegun }) {
		p.Note("hint: rnnbench reproduce all --resume %s completes unfinished experiments", s.Dir)
	}
	return nil
}

// readReproduction reads the run in dir into r, and reports on it.
func readReproduction(p *program, r *report.Reproduction, dir string) error {
	m, recs, warnings, err := record.Read(dir)
	for _, w := range warnings {
		p.Warn("%v", w)
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
