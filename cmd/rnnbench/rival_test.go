package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// exampleRival builds the rival of docs/rivals.md. It writes a file that names it, and a file
// that names a missing command.
func exampleRival(t *testing.T) (file, absent string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "example")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the example is built by Go, which is not here")
	}
	build := func(env ...string) ([]byte, error) {
		cmd := exec.Command("go", "build", "-o", program, "../../rival/testdata/example/main.go")
		cmd.Env = append(os.Environ(), env...)
		return cmd.CombinedOutput()
	}
	out, err := build()
	if err != nil { // as where the user has no caches
		out, err = build("GOCACHE="+t.TempDir(), "GO111MODULE=off", "GOTELEMETRY=off")
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write := func(name, command string) string {
		path := filepath.Join(dir, name+".toml")
		text := fmt.Sprintf("version = 1\n[[rival]]\nname = %q\ncommand = [%q]\n", name, command)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("example", program), write("absent", filepath.Join(dir, "nobody"))
}

// TestRival verifies, measures, resumes and races the rival of the documentation by all commands
// that take techniques.
func TestRival(t *testing.T) {
	file, absent := exampleRival(t)
	t.Chdir(t.TempDir())
	with := " --rival " + file
	const odd = " --cell rnn-tanh,lstm -H 13 --input 7 -B 3 -T 5"
	rnnbench(t, "verify"+with+odd+" --impl naive,example -o csv").want(t, exit.Done,
		[]string{"rnn-tanh forward H=13 B=3 T=5 L=1 I=7,example,ok"}, []string{"example: 1 skipped: it computes one layer of rnn-tanh, forward"})
	rnnbench(t, "verify"+with+" --cell rnn-tanh --pass train -H 3 -B 1 -T 2 --impl example").want(t, exit.Error, nil, []string{"no point succeeded: 1 skipped"})
	sweep := "sweep" + with + odd + quickly
	rnnbench(t, sweep+" -o csv").want(t, exit.Done, []string{"naive", "example", "scan"}, nil)
	rnnbench(t, "sweep --resume out").want(t, exit.Done, []string{"example"}, nil)
	rnnbench(t, "show --where impl=example --where cell=rnn-tanh -o csv").want(t, exit.Done, []string{"example"}, nil)
	rnnbench(t, sweep+" --print-config").want(t, exit.Done, []string{"[[rival]]", "name = 'example'"}, nil)
	rnnbench(t, sweep+" --impl example --dry-run").want(t, exit.Done, []string{"2 records = 2 cell × 1 technique"}, nil)
	rnnbench(t, "tune"+with+" --with-rival --cell rnn-tanh -H 5 -B 1 -T 2 --impl naive,example --effort quick --no-wisdom").want(t, exit.Done, []string{"| example"}, nil)
	rnnbench(t, "reproduce rivals-cpu --quick --dry-run"+with).want(t, exit.Done, []string{"rivals-cpu: 39 records"}, nil)
	rnnbench(t, "report -f report.html").want(t, exit.Done, nil, nil)
	rnnbench(t, "plot --y time -f plot.svg").want(t, exit.Done, nil, nil)

	const script = "version = 1\n[[rival]]\nname = 'script'\ncommand = ['go', 'nothere.py']\n"
	if err := os.WriteFile("script.toml", []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line    string
		code    int
		message string
	}{
		{"sweep -H 3 --rival nothere.toml", exit.Usage, "nothere.toml"},
		{"reproduce rivals-cpu --quick", exit.NoDevice, "rivals-cpu compares with rivals, but none that runs on"},
		{"reproduce rivals-gpu --quick" + with, exit.NoDevice, "rivals-gpu compares with rivals on a GPU"},
		{"reproduce appleyard-table1 --quick" + with, exit.Usage, "appleyard-table1 compares no rivals, so --rival has no effect"},
		{"sweep -H 3 --impl example", exit.Usage, `unknown technique "example"`},
		{"sweep -H 3 --impl example:fast=1" + with, exit.Usage, `unknown knob "fast"`},
		{"sweep -H 3 --impl absent --rival " + absent, exit.Usage, "absent cannot be started"},
		{"sweep -H 3 --impl script --rival script.toml", exit.Usage, "the command of the [[rival]] names nothere.py, which does not exist"},
		{"tune -H 3 --impl example" + with, exit.Usage, "example is a rival: add --with-rival to race it"},
		{"export -H 3 --impl example" + with, exit.Usage, "has no flag --rival: it belongs to advise, list, reproduce, sweep, tune, verify"},
	} {
		rnnbench(t, c.line).want(t, c.code, nil, []string{c.message})
	}
	rnnbench(t, tinyGrid+" --rival "+absent).want(t, exit.Done, nil, []string{"rival absent is left out: absent cannot be started"})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("taken.toml", []byte(strings.Replace(string(text), `"example"`, `"naive"`, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, tinyGrid+" --rival taken.toml").want(t, exit.Usage, nil, []string{"rival naive has the name of a technique: give it another name"})
}

// TestListRivals: list shows each rival's file and what it lacks. A rival that cannot run is no error.
func TestListRivals(t *testing.T) {
	file, absent := exampleRival(t)
	t.Chdir(t.TempDir())
	rnnbench(t, "list rivals").want(t, exit.Done, []string{"This folder has no rivals/*.toml: name a file with --rival FILE"}, nil)
	var rows []struct {
		Rival, File, Version string
		Missing              string `json:"missing_here"`
	}
	o := rnnbench(t, "list rivals -o json --rival "+file+" --rival "+absent)
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 2 || o.code != exit.Done {
		t.Fatalf("%v: %+v", err, o)
	}
	if r := rows[0]; r.Rival != "example" || r.File != file || r.Version == "" || r.Missing != "nothing" {
		t.Errorf("%+v", r)
	}
	if r := rows[1]; r.Rival != "absent" || !strings.Contains(r.Missing, "absent cannot be started: ") {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("rivals", 0o777); err != nil {
		t.Fatal(err)
	}
	for name, more := range map[string]string{"rivals/here.toml": "", "rivals/gpu.toml": "devices = ['cuda']\n"} {
		if err := os.WriteFile(name, append(text, more...), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	rnnbench(t, "list rivals -o csv --rival rivals/here.toml").want(t, exit.Done,
		[]string{"example,rivals/gpu.toml,1,\"a device that it runs on, which cpu is not\"\nexample,rivals/here.toml,1,nothing\n"}, nil)
	rnnbench(t, "list rivals --rival nothere.toml").want(t, exit.Usage, nil, []string{"nothere.toml"})
	rnnbench(t, "list cells --rival "+file).want(t, exit.Usage, nil, []string{"--rival works only with list rivals"})
}

// TestCompareRivals: runs with a rival can be compared, also in turns. A new version of the rival
// is reported.
func TestCompareRivals(t *testing.T) {
	file, _ := exampleRival(t)
	t.Chdir(t.TempDir())
	grid := " --rival " + file + " --cell rnn-tanh -H 13 -B 3 -T 5 --impl naive,example --threads 1" + quickly
	rnnbench(t, "sweep --out old"+grid).want(t, exit.Done, nil, nil)
	if err := os.CopyFS("new", os.DirFS("old")); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob("new/*/manifest.json")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(text), `"rival example": "1"`, `"rival example": "2"`, 1)
	if err := os.WriteFile(found[0], []byte(newer), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "compare old new --min-effect 900%").want(t, exit.Done, []string{"naive", "example"}, []string{"rival example changed between ", "it was 1, then 2"})
	rnnbench(t, "compare old new --min-effect 900% --where impl=example -o csv").want(t, exit.Done, []string{",example,"}, nil)

	if testing.Short() {
		t.Skip("turns start many processes; the suite without -short runs them")
	}
	t.Setenv(beProgram, "1")
	self := os.Args[0]
	rnnbench(t, "compare --ab old="+self+" new="+self+" --runs 3 --min-effect 900% --out turns -- sweep"+grid).want(t, exit.Done,
		[]string{"new against old: ", "example"}, []string{"run 6 of 6: ", ", 2 records; took "})
}

// TestVaryOfRival: a misspelled knob in vary gives a warning; a knob of another device does not.
func TestVaryOfRival(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("the rival of this test is a script, for which there is no shell here")
	}
	t.Chdir(t.TempDir())
	script := `read -r hello
echo '{"version":"1","devices":["cpu"],"precisions":["fp32"],"knobs":[{"name":"single","doc":"one thread","values":[0,1]}]}'
read -r open
echo '{"ok":true}'
cat >/dev/null
`
	if err := os.WriteFile("toy.sh", []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	for vary, want := range map[string]string{`"sngle"`: `warning: vary of rival toy names "sngle", which is not one of its knobs: did you mean single?`, `"single"`: "", `"graph"`: ""} {
		text := "version = 1\n[[rival]]\nname = \"toy\"\ncommand = [\"sh\", \"toy.sh\"]\nvary = [" + vary + "]\n"
		if err := os.WriteFile("toy.toml", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		o := rnnbench(t, "verify --cell rnn-tanh -H 3 -B 1 -T 2 --resets 3% --rival toy.toml --impl toy") // which it declines
		o.want(t, exit.Error, nil, []string{want})
		if want == "" && strings.Contains(o.errors, "vary") {
			t.Errorf("vary %s: %s", vary, o.errors)
		}
	}
}

// TestBannerOfRival: a rival that prints something else than answers fails its own points, and no
// others.
func TestBannerOfRival(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("the rival of this test is a script, for which there is no shell here")
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"toy.sh":   "echo 'Loading libraries ...'\ncat >/dev/null\n",
		"toy.toml": "version = 1\n[[rival]]\nname = \"toy\"\ncommand = [\"sh\", \"toy.sh\"]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const line = "sweep --cell rnn-tanh -H 3 -B 1 -T 2 --rival toy.toml --impl naive,toy"
	o := rnnbench(t, line+quickly)
	o.want(t, exit.Failures, []string{"naive", "failed"}, []string{"all points of rival toy fail: toy sent an invalid answer to hello", "Loading libraries"})
	rnnbench(t, line+",toy:fast=1"+quickly).want(t, exit.NoDevice, nil, []string{"toy sent an invalid answer to hello"})
}
