package files

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// held creates a file that is locked, as by a process that is writing it. It skips where files have no
// locks.
func held(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := TryLock(f); err != nil || !excludes(path) {
		t.Skip("no locks here:", err)
	}
}

// TestClean removes what killed processes left, and nothing that a process is writing or a user named.
func TestClean(t *testing.T) {
	t.Chdir(t.TempDir())
	held(t, ".a.1.tmp")
	left := []string{".a.2.tmp", ".a.b.3.tmp", "a.4-5.tmp", ".b.6.tmp"}
	own := []string{"a.tmp", ".a.tmp", ".a.x.tmp", ".7.tmp", "a"}
	for _, name := range slices.Concat(left, own) {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write("a", text("new")); err != nil {
		t.Fatal(err)
	}
	holds(t, "a", "new")
	leaves(t, ".", ".7.tmp", ".a.1.tmp", ".a.b.3.tmp", ".a.tmp", ".a.x.tmp", ".b.6.tmp", "a", "a.tmp")
	Clean(".")
	leaves(t, ".", ".7.tmp", ".a.1.tmp", ".a.tmp", ".a.x.tmp", "a", "a.tmp")
}

// TestReplaceLink: Replace replaces a link itself.
func TestReplaceLink(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(Write("real", text("old")), os.Symlink("real", "link")); err != nil {
		t.Skip(err) // some systems have no links
	}
	if err := Replace("link", text("new")); err != nil {
		t.Fatal(err)
	}
	holds(t, "real", "old")
	holds(t, "link", "new")
}

// TestFolder: the folder of a killed process is removed by the next one, and that of a live one stays.
func TestFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	live, remove, err := Folder(".", "mine-*")
	if err != nil {
		t.Fatal(err)
	}
	if !excludes(filepath.Join(live, owner)) {
		t.Skip("no locks here")
	}
	for _, dir := range []string{"mine-killed", "mine-other", "other"} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"mine-killed", "other"} {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, owner), nil, 0o666), os.WriteFile(filepath.Join(dir, "data"), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	second, removeSecond, err := Folder(".", "mine-*")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Base(live), filepath.Base(second), "mine-other", "other"}
	slices.Sort(want)
	leaves(t, ".", want...)
	if err := errors.Join(remove(), removeSecond()); err != nil {
		t.Fatal(err)
	}
	leaves(t, ".", "mine-other", "other")
}
