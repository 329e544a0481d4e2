package main

import (
	"os"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// TestBareResume: --resume without a value resumes the latest run, whatever the command.
func TestBareResume(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep --resume").want(t, exit.Error, nil, []string{"out"})
	rnnbench(t, tiny).want(t, exit.Done, nil, nil)
	for _, line := range []string{"sweep --resume", "sweep --resume -q", "sweep -q --resume --retry-failed"} {
		rnnbench(t, line).want(t, exit.Done, []string{"naive"}, nil)
	}
	rnnbench(t, "train --resume").want(t, exit.Usage, nil, []string{"is not a run of train"})
	rnnbench(t, "show --resume").want(t, exit.Usage, nil, []string{"show has no flag --resume"})
	if runs, err := os.ReadDir("out"); err != nil || len(runs) != 2 { // the run, and the name of the latest
		t.Errorf("%d entries, %v", len(runs), err)
	}
}

// TestResumeOfAnotherCommand: --resume says which command made the run.
func TestResumeOfAnotherCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "train --data echo -H 8 -B 2 -T 4 --impl naive --iterations 2").want(t, exit.Done, nil, nil)
	rnnbench(t, "sweep --resume out").want(t, exit.Usage, nil, []string{"is not a run of sweep, but of train", "hint: rnnbench train --help"})
	rnnbench(t, "-q tune --resume out").want(t, exit.Usage, nil, []string{"is not a run of tune, but of train"})
	rnnbench(t, "reproduce scan-rates --quick --resume out").want(t, exit.Usage, nil, []string{"is not a run of reproduce, but of train"})
	rnnbench(t, tiny).want(t, exit.Done, nil, nil)
	rnnbench(t, "train --resume out").want(t, exit.Usage, nil, []string{"is not a run of train, but of sweep", "hint: rnnbench sweep --help"})
}

// TestFolderCannotBeMade: every command that makes a folder says which flag names another.
func TestFolderCannotBeMade(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	self, sweep := os.Args[0], " --out file/in -- "+tiny
	for _, line := range []string{
		tiny + " --out file/in",
		"compare --ab " + self + " " + self + sweep,
		"bisect --programs " + self + "," + self + sweep,
		"ci --base " + self + " --head " + self + sweep,
	} {
		rnnbench(t, line).want(t, exit.Error, nil, []string{"mkdir file", "hint: set --out DIR", "to a writable folder"})
	}
}

// TestSkipForAuto: auto chooses no technique that --skip-impl names.
func TestSkipForAuto(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("RNNBENCH_WISDOM", "none.toml")
	lookup := "sweep -H 16 -B 2 -T 20" + quickly + " -o csv --impl auto,naive --skip-impl "
	all := []string{"persistent", "cudnnstyle", "scan", "scc", "naive"}
	for i := range all {
		skipped := strings.Join(all[:i+1], ",")
		o := rnnbench(t, lookup+skipped)
		if i == len(all)-1 {
			o.want(t, exit.Usage, nil, []string{"auto has no technique left to choose: shorten --skip-impl"})
			continue
		}
		row := ""
		for l := range strings.Lines(o.out) {
			if strings.Contains(l, ",auto,") {
				row = l
			}
		}
		if o.code != exit.Done || row == "" {
			t.Fatalf("without %s: exit code %d: %s", skipped, o.code, o.errors)
		}
		for _, name := range all[:i+1] {
			if strings.Contains(row, ","+name) {
				t.Errorf("without %s: %s", skipped, row)
			}
		}
	}
}

// TestPlainLocale: a locale without UTF-8 gets ASCII on both streams, unless a flag says otherwise.
func TestPlainLocale(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false}, {"C", "", "en_GB.UTF-8", true}, {"POSIX", "", "", true}, {"C.UTF-8", "", "", false}, {"", "", "en_GB.UTF-8", false},
		{"", "C", "en_GB.UTF-8", true}, {"", "", "de_DE.ISO-8859-1", true}, {"en_GB.utf8", "C", "", false}, {"", "", "de_DE", false},
	} {
		values := map[string]string{"LC_ALL": c.all, "LC_CTYPE": c.ctype, "LANG": c.lang}
		if got := plainLocale(func(name string) string { return values[name] }); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	t.Chdir(t.TempDir())
	t.Setenv("LC_ALL", "C")
	ascii := func(s string) bool { return strings.IndexFunc(s, func(c rune) bool { return c > 126 }) < 0 }
	for _, line := range []string{tiny, "show", "show --pivot hidden,impl", "sweep --help", "list cells", "explain -H 4 -B 1 -T 2", "doctor --help", tiny + " --dry-run"} {
		if o := rnnbench(t, line); o.code != exit.Done || !ascii(o.out) || !ascii(o.errors) {
			t.Errorf("%s: exit code %d, not in ASCII: %s%s", line, o.code, o.out, o.errors)
		}
	}
	if o := rnnbench(t, "show --ascii=false"); ascii(o.out) {
		t.Errorf("--ascii=false has no effect: %s", o.out)
	}
}
