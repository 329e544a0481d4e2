package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// TestResumeVersion1: a run with records of schema version 1 can be shown and compared, but not
// resumed. Nothing changes on disk.
func TestResumeVersion1(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep -H 8 -B 1 -T 2 --impl naive --rounds 2 --max-rounds 2 --warmup 0s --min-time 0s --out out").want(t, exit.Done, nil, nil)
	runs, err := filepath.Glob("out/*/manifest.json")
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs are %v, %v", runs, err)
	}
	dir := filepath.Dir(runs[0])
	for _, name := range []string{"manifest.json", "records.jsonl"} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		old := strings.ReplaceAll(string(text), "rnnbench.record/2", "rnnbench.record/1")
		if before, _, ok := strings.Cut(old, `,"kernels":`); ok {
			old = before + "}\n"
		}
		if err := os.WriteFile(path, []byte(old), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, dir)
	if err := os.CopyFS("copy", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"show out", "show -o csv out", "compare " + dir + " copy", "plot --x hidden -f out.svg out", "report -f out.html out", "tune --from out --wisdom wisdom.toml"} {
		rnnbench(t, line).want(t, exit.Done, nil, nil)
	}
	for _, line := range []string{"sweep --resume out", "tune --resume out", "reproduce appleyard-table1 --resume out"} {
		o := rnnbench(t, line)
		o.want(t, exit.Usage, nil, []string{"cannot be resumed, because its records have the older form rnnbench.record/1: start a new run without --resume\n", "hint: rnnbench show out"})
	}
	if after := tree(t, dir); before != after {
		t.Errorf("the run was changed:\n%s\n%s", before, after)
	}
}

// tree returns the names and contents of all files in a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range list {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(f.Name() + "\n" + string(text))
	}
	return b.String()
}
