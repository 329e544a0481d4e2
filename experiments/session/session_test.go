package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ids are two experiments.
func ids() []string { return []string{"hwang-graph", "diamos-barrier"} }

// TestSession: a session goes on where it was, from its own folder or from that of results.
func TestSession(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	s := New(ids(), true)
	if err := s.Create(dir); err != nil {
		t.Fatal(err)
	}
	first, second := s.Entries[0], s.Entries[1]
	if err := errors.Join(first.Begin(filepath.Join(dir, "run")), first.End(0), second.Begin(filepath.Join(dir, "next"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, s.Dir} {
		again, err := Find(path)
		if err != nil || again.Dir != s.Dir || !again.Quick || len(again.Entries) != 2 {
			t.Fatalf("%s: %+v, %v", path, again, err)
		}
		x, y := again.Entries[0], again.Entries[1]
		if !x.Done || x.Run != "../run" || filepath.Clean(x.Folder()) != filepath.Join(dir, "run") || y.Done || y.Reason != "interrupted" || y.Session() != again {
			t.Errorf("%s: %+v, %+v", path, x, y)
		}
	}
	if err := second.End(3); err != nil || second.Done || second.Reason != "3 records missing: budget exhausted" {
		t.Errorf("%+v, %v", second, err)
	}
	other := New(ids(), true)
	other.Started = s.Started
	if err := other.Create(dir); err != nil || other.Dir != s.Dir+"-2" {
		t.Errorf("a second one of the same second: %s, %v", other.Dir, err)
	}
}

// TestFindNone says what is wrong with a folder.
func TestFindNone(t *testing.T) {
	dir := t.TempDir()
	var none *NoneError
	if _, err := Find(dir); !errors.As(err, &none) || none.Dir != dir {
		t.Errorf("an empty folder: %v", err)
	}
	for text, want := range map[string]string{
		"{":  "unexpected EOF",
		"{}": "unknown schema",
		`{"schema":"rnnbench.reproduce/1","experiments":[null]}`:             "an experiment is null",
		`{"schema":"rnnbench.reproduce/1","experiments":[{"id":"nothing"}]}`: "nothing",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Find(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestNowhere: without a session, nothing is noted.
func TestNowhere(t *testing.T) {
	var x *Entry
	if err := errors.Join(x.Begin("run"), x.End(0)); err != nil {
		t.Error(err)
	}
}

// TestDryRun: a session without a folder, as of a dry run, writes nothing.
func TestDryRun(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := New(ids(), false).Entries[0].Skip("needs a GPU"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestBudget: the time that one experiment does not use goes to the others.
func TestBudget(t *testing.T) {
	s := New([]string{"a", "b", "c", "d"}, true)
	w := NewBudget(s, 4*time.Hour)
	for _, want := range []time.Duration{time.Hour, 4 * time.Hour / 3, 2 * time.Hour, 4 * time.Hour} { // none of them spends anything
		if got, ok := w.Share(); !ok || got > want || got < want-time.Hour/2 {
			t.Errorf("a share is %v, %v, want %v", got, ok, want)
		}
	}
	w = NewBudget(s, time.Hour)
	w.begun = w.begun.Add(-2 * time.Hour)
	for i := range s.Entries {
		if got, ok := w.Share(); ok != (i == 0) || ok && got <= 0 {
			t.Errorf("share %d of a budget that is spent is %v, %v", i, got, ok)
		}
	}
	if got, ok := NewBudget(s, 0).Share(); got != 0 || !ok {
		t.Errorf("without a budget the limit is %v, %v", got, ok)
	}
}
