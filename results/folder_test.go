package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRemovedFolder: appending to a run whose folder was removed or created anew is an error in one
// sentence.
func TestRemovedFolder(t *testing.T) {
	for _, anew := range []bool{false, true} {
		run := create(t, 1)
		if err := os.RemoveAll(run.Dir()); err != nil {
			t.Skip(err) // a system that keeps open files
		}
		if anew {
			if err := os.Mkdir(run.Dir(), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(run.Dir(), recordsFile), nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		rec := sample(2)
		for range 2 {
			if err := run.Append(&rec); err == nil || !strings.Contains(err.Error(), "was removed or replaced") || strings.Contains(err.Error(), "\n") {
				t.Errorf("come anew %v: %v", anew, err)
			}
		}
		_ = run.Finish(1) // its folder is gone
	}
}

// TestStaleFiles: resuming removes what killed processes left, and nothing else.
func TestStaleFiles(t *testing.T) {
	run := create(t, 1)
	if err := run.Finish(0); err != nil {
		t.Fatal(err)
	}
	stale, other := filepath.Join(run.Dir(), manifestFile+".17-4.tmp"), filepath.Join(run.Dir(), "mine.tmp")
	latest := filepath.Join(filepath.Dir(run.Dir()), latestFile)
	old, young := latest+".17-4.tmp", latest+".18-4.tmp"
	for _, name := range []string{stale, other, old, young} {
		if err := os.WriteFile(name, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	again, err := Resume(run.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{stale: false, other: true, old: false, young: true, latest: true} {
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(name), err == nil, want)
		}
	}
	if err := again.Finish(0); err != nil {
		t.Fatal(err)
	}
}
