package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/config"
)

// TestLabelOfWords selects by a label that is not a technique's name, as experiments use them.
func TestLabelOfWords(t *testing.T) {
	run := filepath.Join("..", "..", "record", "testdata", "runs", "appleyard-table1")
	for where, want := range map[string]int{"impl=3 fused": 2, "impl!=3 fused": 12} {
		if o := rnnbenchWith(t.Context(), "", "show", run, "-o", "csv", "--where", where); o.code != exit.Done || strings.Count(o.out, "\n") != 1+want {
			t.Errorf("%s: exit code %d: %s%s", where, o.code, o.out, o.errors)
		}
	}
	o := rnnbenchWith(t.Context(), "", "show", run, "--where", "impl=3 fusd")
	o.want(t, exit.Usage, nil, []string{"did you mean 3 fused?"})
}

// TestShowByMachine puts runs of a processor and of another machine beside each other.
func TestShowByMachine(t *testing.T) {
	here := filepath.Join("..", "..", "record", "testdata", "runs", "appleyard-fig2")
	there := filepath.Join(t.TempDir(), "appleyard-fig2")
	if err := os.Mkdir(there, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string]int{"manifest.json": 1 << 20, "records.jsonl": 36} { // it lacks the last records
		text, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		list := strings.SplitAfter(strings.ReplaceAll(string(text), "cpu-intel-xeon-2t", "cuda-nvidia-loom"), "\n")
		if err := os.WriteFile(filepath.Join(there, name), []byte(strings.Join(list[:min(lines, len(list))], "")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	runs := []string{"show", here, there, "--by", "machine"}
	o := rnnbenchWith(t.Context(), "", append(runs, "--where", "cell=lstm", "--where", "pass=forward")...)
	o.want(t, exit.Done, []string{"of peak", "of copy", "cpu-intel-xeon-2t", "cuda-nvidia-loom", "one machine alone measured them"}, nil)
	rnnbenchWith(t.Context(), "", "show", here, "--by", "machine").want(t, exit.Usage, nil, []string{"name runs of the same points on different machines"})
	rnnbenchWith(t.Context(), "", "show", here, "--by", "machine", "--pivot", "hidden,impl").want(t, exit.Usage, nil, []string{"--pivot and --by exclude each other"})
}

// TestSpoiled: commands report runs whose files are damaged.
func TestSpoiled(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny).want(t, exit.Done, nil, nil)
	m, _, _, err := record.Read(config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, records := filepath.Join(config.Dir, m.Run, "manifest.json"), filepath.Join(config.Dir, m.Run, "records.jsonl")
	if err := os.WriteFile("words", []byte(strings.Repeat("not a record\n", 20)), 0o666); err != nil {
		t.Fatal(err)
	}
	o := rnnbench(t, "show words")
	o.want(t, exit.Error, nil, []string{"words:5: this line is not a record", "omitted similar warnings about", "no records in words"})
	if strings.Contains(o.errors, "words:6:") {
		t.Errorf("every line is warned of:\n%s", o.errors)
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "show out").want(t, exit.Done, []string{"naive"}, []string{"the environment is unknown"})
	rnnbench(t, "sweep --resume out").want(t, exit.Error, nil, []string{"run out cannot be resumed: cannot read its settings from manifest.json", "hint: rnnbench show out"})
	if err := errors.Join(os.Mkdir("empty", 0o777), os.WriteFile("empty/records.jsonl", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "show nothere").want(t, exit.Error, nil, []string{"nothing to read at nothere: no such file or directory\n"})
	rnnbenchWith(t.Context(), "", "show", "-").want(t, exit.Error, nil, []string{"no records in -, which is standard input: give it lines of a records.jsonl"})
	rnnbench(t, "compare empty "+records).want(t, exit.Changed, nil, []string{"no records to compare in empty"})
}

func TestFullDisk(t *testing.T) {
	t.Chdir(t.TempDir())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, line := range []string{tiny, "show", "list cells", "version", "--help", "sweep --help", "help list", "explain -H 4 -B 1 -T 2 --no-limits", "plot -f -", "report", "compare out", "export -H 4 -B 1 -T 2 -f -"} {
		var stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), strings.NewReader(""), full, &stderr); code != exit.Error || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s > /dev/full: exit code %d: %s", line, code, &stderr)
		}
	}
	if m, recs, _, err := record.Read(config.Dir); err != nil || len(recs) != 4 || *m.Exit != exit.Done {
		t.Errorf("the records did not survive: %v, %d, %v", err, len(recs), m.Exit)
	}
	rnnbench(t, "export -H 4 -B 1 -T 2 -f /dev/full/x.npz").want(t, exit.Error, nil, []string{"/dev/full/x.npz"})
	rnnbench(t, "plot -f nowhere/x.svg").want(t, exit.Error, nil, []string{"cannot write nowhere/x.svg: there is no folder nowhere\n"})
}
