package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	latest := filepath.Join(filepath.Dir(run.Dir()), latestFile)
	want := map[string]bool{latest: true, filepath.Join(filepath.Dir(latest), ".latest.17.tmp"): false, latest + ".17-4.tmp": false}
	for name, stays := range map[string]bool{
		".checkpoint-3.npz.123.tmp": false, ".manifest.json.5.tmp": false, ".control.jsonl.6.tmp": false,
		"manifest.json.17-4.tmp": false, // of an early version
		"mine.tmp":               true, ".mine.tmp": true, "checkpoint-3.npz": true,
	} {
		want[filepath.Join(run.Dir(), name)] = stays
	}
	for name := range want {
		if name == latest {
			continue
		}
		if err := os.WriteFile(name, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Resume(run.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range want {
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(name), err == nil, want)
		}
	}
	if err := again.Finish(0); err != nil {
		t.Fatal(err)
	}
}
