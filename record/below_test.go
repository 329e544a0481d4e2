package record

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestBelow: runs are found at any depth, and behind a link that is named itself.
func TestBelow(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, run := range []string{"runs/b", "runs/deep/a"} {
		if err := os.MkdirAll(run, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(run, recordsFile), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("runs", "link"); err != nil {
		t.Skipf("no links here: %v", err)
	}
	for _, dir := range []string{"runs", "link", "link/"} {
		top := filepath.Clean(dir)
		got, err := Below(dir)
		if want := []string{filepath.Join(top, "b"), filepath.Join(top, "deep", "a")}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", dir, got, err, want)
		}
	}
	if list, err := Below("."); err != nil || len(list) != 2 {
		t.Errorf("links inside a folder are followed: %q, %v", list, err)
	}
}
