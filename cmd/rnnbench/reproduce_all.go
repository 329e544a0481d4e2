package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnnbench/experiments"
	"rnnbench/report"
	"rnnbench/results"
	"rnnbench/results/files"
	"rnnbench/tuner/config"
)

// A session is a reproduction of several experiments: a folder with the page of all
// of them and with what says how far it came.
type session struct {
	Schema  string          `json:"schema"`
	Started time.Time       `json:"started"`
	Quick   bool            `json:"quick"`
	Config  json.RawMessage `json:"config"` // as of a run
	Entries []*sitting      `json:"experiments"`

	dir string
}

// A sitting is how far one experiment of a session came.
type sitting struct {
	ID     string `json:"id"`
	Run    string `json:"run,omitempty"` // the run's folder, from the session's; empty: not begun
	Done   bool   `json:"done"`
	Reason string `json:"reason,omitempty"` // why there is no run, or why it is not whole

	of *session
}

const (
	sessionSchema = "rnnbench.reproduce/1"
	sessionFile   = "session.json"
	sessionPage   = "index.html"
	sessionEnding = "-reproduce"
	maxSession    = 1 << 20
)

// newSession makes the folder of a session in c's folder of results.
func newSession(c config.Config, ids []string, quick bool) (*session, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	s := &session{Schema: sessionSchema, Started: time.Now().UTC().Truncate(time.Second), Quick: quick, Config: text}
	for _, id := range ids {
		s.Entries = append(s.Entries, &sitting{ID: id, of: s})
	}
	if err := os.MkdirAll(c.Dir, 0o777); err != nil {
		return nil, &failure{exitError, err, "set --out DIR to a writable folder"}
	}
	name := s.Started.Format("20060102T150405Z") + sessionEnding
	for n := 1; n < 1000; n++ {
		s.dir = filepath.Join(c.Dir, name)
		if n > 1 {
			s.dir += fmt.Sprintf("-%d", n)
		}
		switch err := os.Mkdir(s.dir, 0o777); {
		case err == nil:
			return s, s.save()
		case !errors.Is(err, os.ErrExist):
			return nil, &failure{exitError, err, "set --out DIR to a writable folder"}
		}
	}
	return nil, fmt.Errorf("folder %s holds too many sessions: use another --out DIR", c.Dir)
}

// findSession reads the session that a word names: its folder, its name in dir, or a
// folder of results, which stands for its latest one.
func findSession(word, dir string) (*session, error) {
	path := runPath(word, dir)
	if !exists(filepath.Join(path, sessionFile)) {
		found, err := filepath.Glob(filepath.Join(path, "*"+sessionEnding+"*", sessionFile))
		if err != nil || len(found) == 0 {
			return nil, &failure{exitError, fmt.Errorf("no reproduction of several experiments to resume in %s", path), "run rnnbench reproduce all --quick to start one"}
		}
		slices.Sort(found)
		path = filepath.Dir(found[len(found)-1])
	}
	f, err := os.Open(filepath.Join(path, sessionFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &session{dir: path}
	if err := json.NewDecoder(io.LimitReader(f, maxSession)).Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if s.Schema != sessionSchema {
		return nil, fmt.Errorf("%s: unknown schema %q: want %q", f.Name(), s.Schema, sessionSchema)
	}
	for _, e := range s.Entries {
		if e == nil {
			return nil, fmt.Errorf("%s: an experiment is null", f.Name())
		}
		if _, err := experiments.Lookup(e.ID); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		e.of = s
	}
	return s, nil
}

// save keeps how far the session is.
func (s *session) save() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(s.dir, sessionFile), func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
}

// begin notes the run of an experiment: nothing where there is no session.
func (x *sitting) begin(run string) error {
	if x == nil {
		return nil
	}
	x.Run, x.Done, x.Reason = x.of.link(run), false, "interrupted"
	return x.of.save()
}

// end notes that an experiment is over, with so many of its records missing.
func (x *sitting) end(missing int) error {
	if x == nil {
		return nil
	}
	x.Done, x.Reason = missing == 0, ""
	if missing > 0 {
		x.Reason = plural(missing, "record") + " missing: budget exhausted"
	}
	return x.of.save()
}

// skip notes why an experiment has no run.
func (x *sitting) skip(reason string) error {
	x.Done, x.Reason = false, reason
	return x.of.save()
}

// link is the way from the session's folder to a run's.
func (s *session) link(run string) string {
	if abs, err := filepath.Abs(run); err == nil {
		if base, err := filepath.Abs(s.dir); err == nil {
			if rel, err := filepath.Rel(base, abs); err == nil {
				return filepath.ToSlash(rel)
			}
		}
	}
	return filepath.ToSlash(run)
}

// run is the folder of an experiment's run.
func (x *sitting) run() string {
	run := filepath.FromSlash(x.Run)
	if filepath.IsAbs(run) {
		return run
	}
	return filepath.Join(x.of.dir, run)
}

// reproduceAll measures what a session has not yet, one experiment after the other,
// and ends with a table and a page of all.
func (p *program) reproduceAll(ctx context.Context, cmd *cobra.Command, f *sweepFlags, c config.Config, s *session) error {
	var outcome error
	for _, x := range s.Entries {
		if x.Done && exists(x.run()) {
			p.note("%s: already finished", x.ID)
			continue
		}
		err := p.sit(ctx, cmd, f, c, x)
		var bad *failure
		switch {
		case err == nil:
		case !errors.As(err, &bad):
			return s.again(err)
		case bad.code == exitNoDevice:
			p.note("skipped: %v", err)
			if err := x.skip("needs a GPU with the vendor library"); err != nil {
				return err
			}
		case bad.code == exitFailures:
			outcome = err // the others can go on
		default:
			return s.again(err)
		}
	}
	if f.dryRun {
		return outcome
	}
	return errors.Join(outcome, p.presentAll(s, f.format))
}

// sit measures one experiment of a session, or what its run lacks.
func (p *program) sit(ctx context.Context, cmd *cobra.Command, f *sweepFlags, c config.Config, x *sitting) error {
	e, err := experiments.Lookup(x.ID)
	if err != nil {
		return err
	}
	size := experiments.Full
	if x.of.Quick {
		size = experiments.Quick
	}
	own := *f
	own.resume = ""
	var before *results.Manifest
	if x.Run != "" && exists(x.run()) {
		own.resume = x.run()
		if c, before, err = own.resumed(p, c.Dir); err != nil {
			return misused(cmd, err)
		}
	}
	return p.reproduce(ctx, cmd, &own, c, e, size, before, x)
}

// again adds to an error how to go on.
func (s *session) again(err error) error {
	hint := "rnnbench reproduce all --resume " + s.dir + " resumes the session"
	var bad *failure
	switch {
	case s.dir == "":
		return err
	case errors.As(err, &bad):
		return &failure{bad.code, bad.err, hint}
	case errors.Is(err, context.Canceled):
		return &failure{exitInterrupted, errors.New("interrupted"), hint}
	}
	return &failure{exitError, err, hint}
}

// presentAll prints the table of verdicts and writes the page.
func (p *program) presentAll(s *session, format string) error {
	var list []report.Reproduction
	for _, x := range s.Entries {
		e, err := experiments.Lookup(x.ID)
		if err != nil {
			return err
		}
		r := report.Reproduction{Experiment: e, Missing: x.Reason}
		if x.Run != "" {
			r.Link = x.Run
			if err := p.read(&r, x.run()); err != nil {
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
	page := filepath.Join(s.dir, sessionPage)
	if err := files.Write(page, func(w io.Writer) error { return report.WriteReproductions(w, title, list) }); err != nil {
		return err
	}
	p.note("wrote %s", page)
	if slices.ContainsFunc(s.Entries, func(x *sitting) bool { return x.Run != "" && !x.Done }) {
		p.note("hint: rnnbench reproduce all --resume %s completes unfinished experiments", s.dir)
	}
	return nil
}

// read reports on the run of r.
func (p *program) read(r *report.Reproduction, dir string) error {
	m, recs, warnings, err := results.Read(dir)
	for _, w := range warnings {
		p.warn("%v", w)
	}
	if err != nil {
		return err
	}
	var d results.Device
	if len(m.Devices) > 0 {
		d = m.Devices[0]
	}
	r.Set = results.Set{Label: strings.TrimSpace(m.Label), Manifest: m, Records: recs, Dir: dir}
	r.Report, err = r.Experiment.On(d, recs)
	return err
}
