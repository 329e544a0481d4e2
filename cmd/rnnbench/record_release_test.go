package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/experiments"
)

// aCommit is the release of the tests.
const aCommit = "0123456789abcdef0123456789abcdef01234567"

// aProgram stands in for rnnbench: it writes down how it is called, and a run with the manifest that the script
// reads. The experiment slow is killed once, broken fails, and none needs another device.
const aProgram = `#!/usr/bin/env bash
case $1 in
version) echo '{"vcs_revision": "` + aCommit + `", "vcs_modified": '${MODIFIED:-false}'}'; exit ;;
list) echo '[{"device": "cpu", "model": "A B", "key": "cpu-loom-2t", "workers": 2},'; echo '{"device": "cuda:0", "model": "C", "key": "cuda-loom"}]'; exit ;;
esac
echo "$*" >>calls
id=$2 resumed='[]' exit=0 key=cpu-loom-2t
[[ $* != *cuda:0* ]] || key=cuda-loom
while [ $# -gt 0 ]; do
	case $1 in --out) out=$2 ;; --budget) budget=$2 ;; --resume) at=$2 ;; esac
	shift
done
[ $id != none ] || exit 5
[ $id != broken ] || exit 1
if [ -n "${at-}" ]; then
	budget=$(sed -n 's/.*"budget": "\(.*\)".*/\1/p' $at/manifest.json)
	resumed='["2026-01-02"]'
else
	run=20260101T000000Z-$key-abcd at=$out/$run
	mkdir -p $at && echo $run >$out/latest
	[ $id != slow ] || exit=null
fi
printf '{\n  "budget": "%s",\n  "vcs_revision": "%s",\n  "started": "%s",\n  "resumed": %s,\n  "exit": %s,\n}\n' $budget ` + aCommit + ` ${STARTED:-2026-01-01} "$resumed" $exit >$at/manifest.json
echo '{}' >>$at/records.jsonl
[ $exit = 0 ] || exit 130
`

// releaseFolder makes and enters a folder with scripts/record, a release of some experiments, and a program.
func releaseFolder(t *testing.T, list string) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil || runtime.GOOS == "windows" {
		t.Skip("bash is not installed")
	}
	script := page(t, "scripts/record")
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"scripts/record": script, "results/release.txt": list, "results/RELEASE": aCommit + "\n", "bin/rnnbench": aProgram} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// scripted runs scripts/record and returns what it prints and how it called the program.
func scripted(t *testing.T, args string, env ...string) (said, calls string) {
	t.Helper()
	_ = os.Remove("calls")
	cmd := exec.Command("bash", append([]string{"scripts/record"}, strings.Fields(args)...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "%v\n", err)
	}
	text, _ := os.ReadFile("calls") // none: it was not called
	return string(out), string(text)
}

// TestRecordRelease: a release is measured in the order of its list, call by call. What was cut off by the budget
// goes on once, with the rest of its share; what was killed goes on, too; what is done is left alone.
func TestRecordRelease(t *testing.T) {
	releaseFolder(t, "# a comment\ncpu 1m first\ngpu 1m other\ncpu 1h10m long --seed 7\ncpu-again 30s first\ncpu 20s none\n")
	said, calls := scripted(t, "release --budget 20m --quick")
	if want := "reproduce first --no-hostname --budget 60s --out out/record/cpu-loom-2t/first --quick\nreproduce long --no-hostname --budget 1"; !strings.HasPrefix(calls, want) ||
		!strings.HasSuffix(calls, "s --out out/record/cpu-loom-2t/long-7 --quick --seed 7\nreproduce none --no-hostname --budget 20s --out out/record/cpu-loom-2t/none --quick\n") {
		t.Errorf("the program is called by\n%s", calls)
	}
	for _, want := range []string{"recorded in results/cpu-loom-2t/first\n", "recorded in results/cpu-loom-2t/long-7\n", "to be done: long; give the same command again", "left out: none; the lines above say which device or rival is missing\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
	said, calls = scripted(t, "release --budget 2h --quick")
	if !strings.HasPrefix(calls, "reproduce long --no-hostname --budget 30") || !strings.Contains(calls, " --resume results/cpu-loom-2t/long-7 --quick --seed 7\n") || !strings.HasSuffix(said, "release recorded\n") {
		t.Errorf("%s by\n%s", said, calls)
	}
	if said, calls = scripted(t, "release --budget 2h"); strings.Contains(calls, "first") || strings.Contains(calls, "long") || !strings.HasSuffix(said, "release recorded\n") {
		t.Errorf("at last %s by\n%s", said, calls)
	}
	if said, _ = scripted(t, "release --budget 5m", "AGAIN=1"); !strings.Contains(said, "recorded in results/cpu-loom-2t/again/first\nrelease recorded\n") {
		t.Errorf("second runs: %s", said)
	}
}

// TestRecordFails: an experiment that fails keeps no other from being measured, and the last line names it.
func TestRecordFails(t *testing.T) {
	releaseFolder(t, "cpu 30s broken\ncpu 30s first\n")
	said, _ := scripted(t, "release --budget 5m")
	if want := "recorded in results/cpu-loom-2t/first\nscripts/record: failed: broken; the lines above say why; the same command tries them again\nexit status 1\n"; !strings.HasSuffix(said, want) {
		t.Errorf("%s", said)
	}
}

// TestRecordKilled: a run that is killed keeps its records, and the next call goes on with it.
func TestRecordKilled(t *testing.T) {
	releaseFolder(t, "cpu 30s slow\n")
	said, calls := scripted(t, "release --budget 5m")
	if !strings.HasSuffix(said, "recorded in results/cpu-loom-2t/slow\nexit status 130\n") {
		t.Errorf("%s by\n%s", said, calls)
	}
	if said, calls = scripted(t, "release --budget 5m"); calls != "reproduce slow --no-hostname --budget 30s --resume results/cpu-loom-2t/slow\n" || !strings.HasSuffix(said, "release recorded\n") {
		t.Errorf("%s by\n%s", said, calls)
	}
}

// TestRecordRefuses: what is not of the release is not measured, and a sentence says why.
func TestRecordRefuses(t *testing.T) {
	releaseFolder(t, "cpu 30s first\ncpu-again 30s first\n")
	today := "STARTED=" + time.Now().UTC().Format(time.DateOnly)
	for _, c := range []struct{ args, env, want string }{
		{"release", "A=", "add --budget 25m"},
		{"release --budget soon", "A=", "soon is not a time such as 25m"},
		{"release --budget 5m", "MODIFIED=true", "is not the program of the release: build it from a clean checkout of " + aCommit},
		{"release --budget 5m --device cuda:1", "A=", "there is no device cuda:1 here"},
		{"release --budget 5m", "AGAIN=1", "record the release first"},
		{"release --budget 5m", today, "release recorded"},
		{"release --budget 5m", "AGAIN=1", "second runs are of another day"},
	} {
		said, calls := scripted(t, c.args, c.env)
		if !strings.Contains(said, c.want) || strings.Count(said, "\n") > 4 || (calls != "") != (c.want == "release recorded") {
			t.Errorf("%s %s: %s by %s", c.env, c.args, said, calls)
		}
	}
	for _, args := range [][]string{{"init", "-q", "."}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "another"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Skipf("git: %v: %s", err, out)
		}
	}
	if said, _ := scripted(t, "release --budget 5m"); !strings.Contains(said, "the code here is not that of the release") {
		t.Error(said)
	}
}

// TestRecordingPage runs the commands of docs/recording.md that measure, and that of one experiment.
func TestRecordingPage(t *testing.T) {
	lines := slices.DeleteFunc(strings.Split(page(t, "docs/recording.md"), "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "    ") || !strings.Contains(line, "scripts/record")
	})
	releaseFolder(t, "cpu 1m first\ngpu 1m first\ngpu-again 1m first\n")
	if len(lines) != 3 {
		t.Errorf("the page has the commands %q", lines)
	}
	for _, line := range lines {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "release recorded\n") {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
	if said, calls := scripted(t, "other --device cuda:0 --seed=9"); said != "recorded in results/loom/other-9\n" || !strings.HasSuffix(calls, " --no-hostname --device cuda:0 --seed=9\n") {
		t.Errorf("%s by %s", said, calls)
	}
	for _, name := range []string{"cpu-loom-2t/first", "loom/first", "loom/again/first", "loom/other-9"} {
		if !exists(filepath.Join("results", name, "manifest.json")) {
			t.Errorf("%s was not recorded", name)
		}
	}
}

// TestReleaseList: the list of a release names experiments, and keeps to its time.
func TestReleaseList(t *testing.T) {
	spent := map[string]time.Duration{}
	for line := range strings.Lines(page(t, "results/release.txt")) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		share, err := time.ParseDuration(words[1])
		if err != nil {
			t.Error(err)
		}
		if _, err := experiments.Lookup(words[2]); err != nil {
			t.Error(err)
		}
		kind, _, _ := strings.Cut(words[0], "-")
		spent[kind] += share
	}
	if spent["gpu"] != 150*time.Minute || spent["cpu"] != 3*time.Hour || len(spent) != 2 {
		t.Error(spent)
	}
}
