package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// text returns a function that writes s.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func TestWrite(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, s := range []string{"old", "new"} {
		if err := Write("a", text(s)); err != nil {
			t.Fatal(err)
		}
		holds(t, "a", s)
	}
	broken := errors.New("broken")
	err := Write("a", func(w io.Writer) error { return errors.Join(text("half")(w), broken) })
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "cannot write a: ") {
		t.Errorf("error %v", err)
	}
	holds(t, "a", "new")
	if err := Write("nowhere/a", text("x")); err == nil || err.Error() != "cannot write nowhere/a: there is no folder nowhere" {
		t.Errorf("error %v", err)
	}
	full := func(w io.Writer) error { return &fs.PathError{Op: "write", Path: ".a.17.tmp", Err: syscall.ENOSPC} }
	for _, write := range []func(io.Writer) error{full, func(w io.Writer) error { return fmt.Errorf("array b: %w", full(w)) }} {
		if err := Write("a", write); !errors.Is(err, syscall.ENOSPC) || err.Error() != "cannot write a: no space left on device" {
			t.Errorf("error %v names a file that no one knows", err)
		}
	}
	if err := Cause(errors.Join(broken, full(nil))); !errors.Is(err, broken) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v lacks one of two causes", err)
	}
	if err := Write(".", text("x")); err == nil {
		t.Error("a folder was written")
	}
	leaves(t, ".", "a")
}

// TestWriteFollowsLinks: links stay, even links to files that do not exist yet.
func TestWriteFollowsLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(filepath.FromSlash(to), name); err != nil {
			t.Skip(err) // some systems have none
		}
	}
	for _, dir := range []string{"deep/er", "links"} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	link("deep/er", "far")
	link("../far/real", "links/one")
	link("links/one", "two")
	for _, s := range []string{"begun", "replaced"} {
		if err := errors.Join(Writable("two"), Write("two", text(s))); err != nil {
			t.Fatal(err)
		}
		holds(t, "deep/er/real", s)
	}
	for _, name := range []string{"two", "links/one"} {
		if _, err := os.Readlink(name); err != nil {
			t.Errorf("the link was replaced: %v", err)
		}
	}
	leaves(t, "deep/er", "real")
	link("circle", "circle")
	if err := Write("circle", text("x")); err == nil || Writable("circle") == nil {
		t.Error("a circle of links was written")
	}
}

// TestLockIsHeldByOne: one process at a time holds the lock, whatever a killed process left behind.
func TestLockIsHeldByOne(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(".a.lock", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var inside, entered atomic.Int32
	for range 8 {
		all.Go(func() {
			for range 8 {
				unlock, err := Lock("a")
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two have the lock")
				}
				entered.Add(1)
				inside.Add(-1)
				unlock()
			}
		})
	}
	all.Wait()
	if n := entered.Load(); n != 64 {
		t.Errorf("the lock was had %d times", n)
	}
	if _, err := Lock("nowhere/a"); err == nil || !strings.HasPrefix(err.Error(), "cannot lock nowhere/a: ") {
		t.Errorf("error %v", err)
	}
}

// holds checks the content of a file.
func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
}

// leaves checks which files a folder has.
func leaves(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("%s has %v, %v; want %v", dir, names, err, want)
	}
}
