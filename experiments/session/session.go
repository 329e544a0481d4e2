// Package session records the progress of a reproduction of several experiments, in a file in a
// folder of its own.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rnnbench/experiments"
	"rnnbench/plots/quantity"
	"rnnbench/record/files"
)

// A Session is a reproduction of several experiments: a folder with a page of all of them and a file
// that says how far it came.
type Session struct {
	Schema  string          `json:"schema"`
	Started time.Time       `json:"started"`
	Quick   bool            `json:"quick"`
	Config  json.RawMessage `json:"config"` // as in the manifest of a run
	Entries []*Entry        `json:"experiments"`

	Dir string `json:"-"` // "": there is none yet
}

// An Entry is how far one experiment of a session came.
type Entry struct {
	ID     string `json:"id"`
	Run    string `json:"run,omitempty"` // the run's folder, from the session's; empty: not begun
	Done   bool   `json:"done"`
	Reason string `json:"reason,omitempty"` // why there is no run, or why it is not whole

	of *Session
}

// Page is the file in a session's folder that shows all experiments.
const Page = "index.html"

const (
	schema = "rnnbench.reproduce/1"
	file   = "session.json"
	ending = "-reproduce" // of a session's folder
	most   = 1 << 20      // bytes of the file
)

// New is a session of experiments that has no folder yet.
func New(ids []string, quick bool) *Session {
	s := &Session{Schema: schema, Started: time.Now().UTC().Truncate(time.Second), Quick: quick}
	for _, id := range ids {
		s.Entries = append(s.Entries, &Entry{ID: id, of: s})
	}
	return s
}

// Create makes the folder of a session in a folder of results.
func (s *Session) Create(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	name := s.Started.Format("20060102T150405Z") + ending
	for n := 1; n < 1000; n++ {
		s.Dir = filepath.Join(dir, name)
		if n > 1 {
			s.Dir += fmt.Sprintf("-%d", n)
		}
		switch err := os.Mkdir(s.Dir, 0o777); {
		case err == nil:
			return s.save()
		case !errors.Is(err, os.ErrExist):
			return err
		}
	}
	return fmt.Errorf("folder %s holds too many sessions: use another --out DIR", dir)
}

// A NoneError says that a folder holds no session.
type NoneError struct{ Dir string }

func (e *NoneError) Error() string {
	return fmt.Sprintf("no reproduction of several experiments to resume in %s", e.Dir)
}

// Find reads the session in path: its own folder, or a folder of results, which stands for its
// latest session.
func Find(path string) (*Session, error) {
	if _, err := os.Stat(filepath.Join(path, file)); err != nil {
		found, err := filepath.Glob(filepath.Join(path, "*"+ending+"*", file))
		if err != nil || len(found) == 0 {
			return nil, &NoneError{path}
		}
		slices.Sort(found)
		path = filepath.Dir(found[len(found)-1])
	}
	f, err := os.Open(filepath.Join(path, file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &Session{Dir: path}
	if err := json.NewDecoder(io.LimitReader(f, most)).Decode(s); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if s.Schema != schema {
		return nil, fmt.Errorf("%s: unknown schema %q: want %q", f.Name(), s.Schema, schema)
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

// save writes how far the session is. It writes nothing if the session has no folder.
func (s *Session) save() error {
	if s.Dir == "" {
		return nil
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return files.Write(filepath.Join(s.Dir, file), func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
}

// Begin notes the run of an experiment. A nil x notes nothing.
func (x *Entry) Begin(run string) error {
	if x == nil {
		return nil
	}
	x.Run, x.Done, x.Reason = x.of.link(run), false, "interrupted"
	return x.of.save()
}

// End notes that an experiment is over, with that many of its records missing. A nil x notes
// nothing.
func (x *Entry) End(missing int) error {
	if x == nil {
		return nil
	}
	x.Done, x.Reason = missing == 0, ""
	if missing > 0 {
		x.Reason = quantity.Plural(missing, "record") + " missing: budget exhausted"
	}
	return x.of.save()
}

// Skip notes why an experiment has no run.
func (x *Entry) Skip(reason string) error {
	x.Done, x.Reason = false, reason
	return x.of.save()
}

// link returns the path from the session's folder to a run's, with slashes.
func (s *Session) link(run string) string {
	if abs, err := filepath.Abs(run); err == nil {
		if base, err := filepath.Abs(s.Dir); err == nil {
			if rel, err := filepath.Rel(base, abs); err == nil {
				return filepath.ToSlash(rel)
			}
		}
	}
	return filepath.ToSlash(run)
}

// Folder returns the folder of the experiment's run.
func (x *Entry) Folder() string {
	run := filepath.FromSlash(x.Run)
	if filepath.IsAbs(run) {
		return run
	}
	return filepath.Join(x.of.Dir, run)
}

// Session returns the session that the experiment is part of.
func (x *Entry) Session() *Session { return x.of }

// Finished reports whether an experiment has all of its records.
func (x *Entry) Finished() bool {
	if !x.Done {
		return false
	}
	_, err := os.Stat(x.Folder())
	return err == nil
}

// NotBegun is the reason of an experiment for which no time was left.
const NotBegun = "not begun: budget exhausted"

// A Budget is the time of several experiments. Each may spend an even part of what is left.
type Budget struct {
	all     time.Duration // 0: no limit
	begun   time.Time
	waiting int  // experiments that have had no share yet
	opened  bool // one has had its share
	Refused int  // experiments that got no time
}

// NewBudget returns the budget of the unfinished experiments of a session; 0: no limit.
func NewBudget(s *Session, all time.Duration) *Budget {
	b := &Budget{all: all, begun: time.Now()}
	for _, x := range s.Entries {
		if !x.Finished() {
			b.waiting++
		}
	}
	return b
}

// Share returns how long the next experiment may take; 0: no limit. It returns false once the
// budget is spent, but the first experiment always gets some time.
func (b *Budget) Share() (time.Duration, bool) {
	n := time.Duration(b.waiting)
	b.waiting--
	left := b.all - time.Since(b.begun)
	switch {
	case b.all == 0:
		return 0, true
	case !b.opened:
		b.opened = true
		return max((left / n).Round(100*time.Millisecond), 1), true
	}
	return max((left / n).Round(100*time.Millisecond), 1), left >= n
}

// Refuse notes that an experiment got no time.
func (b *Budget) Refuse(x *Entry) error {
	b.Refused++
	if x.Run != "" { // its run shows what is missing
		return nil
	}
	return x.Skip(NotBegun)
}
