package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"rnnbench/device"
	"rnnbench/device/cpu/simd"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/tuner"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain keeps the user's environment out of the tests, but for the cap of the
// instruction set, and has the test binary be the worker that --isolate starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerVerb {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		os.Exit(run(context.Background(), os.Args[2:], os.Stdin, os.Stdout, stderr()))
	}
	if os.Getenv(beProgram) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "RNNBENCH_") && name != simd.Variable || name == "NO_COLOR" || name == "CLICOLOR_FORCE" {
			if err := os.Unsetenv(name); err != nil {
				panic(err)
			}
		}
	}
	known, measure := map[string]device.Limits{}, limitsOf
	limitsOf = func(m device.Meter, i device.Info) (device.Limits, error) {
		key := i.Key + i.Libraries["simd"]
		if l, ok := known[key]; ok {
			return l, nil
		}
		l, err := measure(m, i)
		known[key] = l
		return l, err
	}
	os.Exit(m.Run())
}

// tiny is a sweep that takes a moment: two points, two techniques. tinyGrid
// leaves the techniques open.
const (
	tinyGrid = "sweep -H 8,16 -B 2 -T 3 --effort quick --rounds 2 --max-rounds 2 --warmup 0s --min-time 0s"
	tiny     = tinyGrid + " --impl naive,cudnnstyle"
)

// quickly is how commands measure in tests.
const quickly = " --effort quick --rounds 2 --max-rounds 2 --warmup 0s --min-time 0s"

type outcomeOf struct {
	code        int
	out, errors string
}

// rnnbench runs a command line, whose words hold no spaces.
func rnnbench(t *testing.T, line string) outcomeOf {
	t.Helper()
	return rnnbenchWith(t.Context(), "", strings.Fields(line)...)
}

func rnnbenchWith(ctx context.Context, stdin string, args ...string) outcomeOf {
	var out, errors bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &errors)
	return outcomeOf{code, out.String(), errors.String()}
}

// want checks exit code and what both streams contain.
func (o outcomeOf) want(t *testing.T, code int, out, errors []string) {
	t.Helper()
	var wrong []string
	if o.code != code {
		wrong = append(wrong, fmt.Sprintf("exit code %d, want %d", o.code, code))
	}
	for _, s := range out {
		if !strings.Contains(o.out, s) {
			wrong = append(wrong, fmt.Sprintf("stdout lacks %q", s))
		}
	}
	for _, s := range errors {
		if !strings.Contains(o.errors, s) {
			wrong = append(wrong, fmt.Sprintf("stderr lacks %q", s))
		}
	}
	if wrong != nil {
		t.Errorf("%s\nstdout:\n%.3000s\nstderr:\n%.3000s", strings.Join(wrong, "\n"), o.out, o.errors)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test -update makes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs, -update rewrites it; got:\n%s", path, got)
	}
}

// commands are those that people use.
func commands() []*cobra.Command {
	p := &program{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	return slices.DeleteFunc(p.root().Commands(), func(c *cobra.Command) bool { return c.Hidden })
}

func TestHelp(t *testing.T) {
	for _, c := range commands() {
		o := rnnbench(t, c.Name()+" --help")
		o.want(t, exitDone, []string{"Usage:", "Examples:"}, nil)
		golden(t, "help-"+c.Name(), o.out)
		if by := rnnbench(t, "help "+c.Name()); by.out != o.out {
			t.Errorf("help %s is not %s --help", c.Name(), c.Name())
		}
	}
	for _, line := range []string{"", "--help", "help"} {
		o := rnnbench(t, line)
		o.want(t, exitDone, []string{"Measure:", "Manage:"}, nil)
		golden(t, "help", o.out)
	}
	rnnbench(t, "--version").want(t, exitDone, []string{"rnnbench "}, nil)
}

// TestExamples parses every example of the help as a shell would.
func TestExamples(t *testing.T) {
	check := func(c *cobra.Command, example string) int {
		n := 0
		for line := range strings.Lines(example) {
			line = strings.TrimSpace(line)
			if i := strings.Index(line, "rnnbench "); i < 0 || strings.HasPrefix(line, "python3") {
				n++
				continue
			} else {
				line = strings.ReplaceAll(line[i+len("rnnbench "):], ")", " )")
			}
			n++
			args := bareResume(shell(line))
			p := &program{args: args, in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
			root := p.root()
			if err := p.checkHyphens(root); err != nil {
				t.Errorf("%s: %q: %v", c.Name(), line, err)
				continue
			}
			cmd, rest, err := root.Find(args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil && !strings.Contains(line, "--version") && args[0] != "help" {
				t.Errorf("%s: %q: %v", c.Name(), line, err)
			}
		}
		return n
	}
	for _, c := range commands() {
		if n := check(c, c.Example); n < 3 {
			t.Errorf("%s has %d examples, want 3 or more", c.Name(), n)
		}
		if c.GroupID == "" {
			t.Errorf("%s is in no group", c.Name())
		}
	}
}

// shell splits a line at spaces outside quotes, up to a comment or an operator.
func shell(line string) []string {
	var words []string
	word, open, quote := "", false, rune(0)
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ':
			if open || word != "" {
				words = append(words, word)
			}
			word, open = "", false
		case strings.ContainsRune("#|>&;)", r) && word == "":
			return words
		default:
			word += string(r)
		}
	}
	return words
}

func TestUsageErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("bad.toml", []byte("version = 1\n[measure]\nmin_sampels = 3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, message string
	}{
		{"swep", `unknown command "swep": did you mean sweep?`},
		{"swep --hidden 3", `unknown command "swep": did you mean sweep?`},
		{"help swep", `unknown command "swep": did you mean sweep?`},
		{"--hidden 3", `has no flag --hidden: it belongs to explain, export, graph, model, sweep, tune, verify`},
		{"sweep --hiden 3", "sweep has no flag --hiden: did you mean --hidden?"},
		{"sweep -hidden 3", "did you mean --hidden?"},
		{"sweep -hidden=3", "did you mean --hidden?"},
		{"sweep -out x", "did you mean --out?"},
		{"sweep -x", "sweep has no flag -x"},
		{"show --hidden 3", "show has no flag --hidden: it belongs to explain, export, graph, model, sweep, tune, verify"},
		{"sweep -H", "--hidden needs a value"},
		{"sweep -H abc", `--hidden: "abc" is not a size`},
		{"sweep --dry-run=maybe", `--dry-run: "maybe" must be true or false`},
		{"sweep H=512,B=3", "did you mean --point H=512,B=3?"},
		{"sweep hidden=512", "did you mean --hidden 512?"},
		{"sweep hidden 512", "did you mean --hidden?"},
		{"sweep -H 64, 128", "sweep takes flags only"},
		{"sweep --cell lstn", "did you mean lstm?\nhint: rnnbench list cells"},
		{"sweep --impl naiv", "did you mean naive?\nhint: rnnbench list techniques"},
		{"sweep --impl cudnnstyle:fusd=0", "did you mean fused?\nhint: rnnbench list knobs"},
		{"sweep --impl cudnnstyle:fused=7", "knob fused cannot be 7"},
		{"sweep --impl naive:fused=1", "unknown knob"},
		{"sweep --preset quik", "did you mean quick?\nhint: rnnbench list presets"},
		{"sweep --where hiden<3", "did you mean hidden?"},
		{"sweep --where hidden<3", "no point is left"},
		{"sweep --point H=1,H=2", "sets hidden twice"},
		{"sweep --precision tf32", "supports only fp32, fp16, bf16"},
		{"sweep --device cpuu", "did you mean cpu?"},
		{"sweep --impl naive,cudnnstyle --baseline nave", `--baseline: unknown technique "nave": did you mean naive?`},
		{"sweep --simd avx3", "did you mean avx2?"},
		{"sweep --threads 2000", "2000 exceeds the maximum"},
		{"sweep --max-memory 3x", `"3x" is not a size`},
		{"sweep --effort quickly", "did you mean quick?"},
		{"sweep --rounds 5 --max-rounds 3", "--max-rounds is 3 and --rounds is 5"},
		{"sweep -o tabel", "did you mean table?"},
		{"sweep --color sometimes", "choose among auto, always, never"},
		{"sweep --config nothere.toml", "nothere.toml"},
		{"sweep --config bad.toml", "bad.toml:3:1: measure.min_sampels"},
		{"sweep --dry-run -o jsonl", "a dry run cannot be printed as jsonl"},
		{"verify -o benchfmt", "choose among"},
		{"tune --search racingg", "did you mean racing?"},
		{"tune --depth few", `--depth: "few" must be a number of knobs`},
		{"tune --tie 2", `"2" is not a share: did you mean 2%?`},
		{"tune --tie nan%", `--tie: "nan%" is not a percentage`},
		{"tune --margin -1%", `--margin: "-1%" is not a percentage`},
		{"tune --margin inf%", `--margin: "inf%" is not a percentage`},
		{"tune --max-evals -1", "must not be negative"},
		{"tune --impl cudnn --wisdom w.toml", "cudnn is a vendor library: add --with-vendor"},
		{"tune -o benchfmt", "choose among"},
		{"tune --impl auto", "--impl auto cannot be tuned"},
		{"sweep --impl auto:fused=1 --wisdom w.toml", "auto chooses its own settings: omit fused=1"},
		{"sweep --impl autoo", "did you mean auto?"},
		{"wisdom shw", "did you mean show?"},
		{"wisdom merge", "merge needs the files to merge"},
		{"wisdom prune --wisdom w.toml", "no entries selected"},
		{"wisdom prune --wisdom w.toml --older-than -5h", "--older-than: -5h0m0s must be more than 0"},
		{"wisdom prune --wisdom w.toml --older-than 0s", "--older-than: 0s must be more than 0"},
		{"wisdom prune --wisdom w.toml --older-than 5", `--older-than: "5" is not a time: write one with its unit, such as 720h`},
		{"wisdom export --wisdom w.toml --device x", "--wisdom: file w.toml does not exist"},
		{"wisdom lookup --hiden 3", "did you mean --hidden?"},
		{"show --pivot hidden", "is not two axes"},
		{"show --metric time", "--metric needs --pivot"},
		{"plot -f x.gif", "use one of the endings .svg, .png, .pdf"},
		{"plot -f - -f -", "-f - is given twice: omit one"},
		{"plot -f x.svg -f y.svg -f ./x.svg", "-f ./x.svg is given twice: omit one"},
		{"plot --kind line -f x.svg", "did you mean lines?"},
		{"sweep --zip hidden -H 1,2", "--zip: hidden is a single axis"},
		{"sweep --zip hiden,batch", `rnnbench: --zip: unknown axis "hiden": did you mean hidden?`},
		{"compare", "compare needs a base run"},
		{"compare a b --fail-on slow", `unknown verdict "slow": did you mean slower?`},
		{"compare a b --only sme", "did you mean same?"},
		{"compare a b --min-effect 2", `"2" is not a share: did you mean 2%?`},
		{"compare a b --alpha x", `--alpha: "x" is not a percentage`},
		{"report -f x.pdf", "the report is HTML"},
		{"list cels", "did you mean cells?"},
		{"list cells presets", "list takes one argument"},
		{"reproduce appleyard-tabel1", "did you mean appleyard-table1?"},
		{"reproduce hwang-fig4 hwang-graph hwang-fig4 --dry-run", "hwang-fig4 is named twice: omit one"},
		{"reproduce --from x", "--from takes one experiment: name one"},
		{"reproduce --resume x", "--resume takes one experiment, or all"},
		{"reproduce list --from x", "--from takes one experiment: name one"},
		{tinyGrid + " --impl cudnnstyle,cudnnstyle:fused=1", "--impl cudnnstyle and cudnnstyle:fused=1 have the same settings: omit one"},
		{"explain -H 1,2", "the flags name 2 points"},
		{"explain -o dot", "name one, as in --impl naive"},
		{"export -H 3", "no output file"},
		{"export -H 3 -f x.npy", "x.npy can hold only one array, but export writes several: use the ending .npz"},
		{"graph", "graph takes one cell or one file"},
		{"graph lstmm", "unknown cell \"lstmm\": did you mean lstm?"},
		{"graph bad.toml", "unknown key \"version\" above the tables: write one of name, layer, connection\nhint: rnnbench graph --help"},
		{"graph lstm --layers 0", "must be at least 1"},
		{"graph lstm --layers 1000000", "--layers must be at most 1024"},
		{"sweep -H 8 --layers 1000000000", "layers is 1000000000: it must be at most 1024"},
		{"export -H 3 --impl all -f x.npz", "export writes one answer, but the flags name"},
		{"completion", "takes the name of a shell"},
		{"completion bsh", "did you mean bash?"},
		{"version now", "version takes flags only"},
	} {
		o := rnnbench(t, c.line)
		if o.code != exitUsage || !strings.Contains(o.errors, c.message) || o.out != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want code 2 and %q", c.line, o.code, o.out, o.errors, c.message)
		}
		if !strings.HasPrefix(withoutBusy(o.errors), "rnnbench: ") || strings.Contains(o.errors, "rnnbench: rnnbench:") {
			t.Errorf("%s: stderr begins otherwise: %q", c.line, o.errors)
		}
	}
	o := rnnbench(t, fmt.Sprintf("sweep --threads %d", threadsEach*runtime.NumCPU()+1))
	o.want(t, exitUsage, nil, []string{"--threads: "})
	if _, err := os.Stat(usualDir); err == nil {
		t.Error("a mistake in the command line made a results folder")
	}
}

// TestEmptyRuns: what an unset variable of the shell's leaves names no run, least
// of all the latest.
func TestEmptyRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny).want(t, exitDone, nil, nil)
	for _, args := range [][]string{
		{"sweep", "--resume", ""}, {"tune", "--resume="}, {"tune", "--from", "out", "--from="}, {"reproduce", "diamos-barrier", "--resume", ""}, {"reproduce", "diamos-barrier", "--from="},
		{"show", ""}, {"show", "label="}, {"compare", "", ""}, {"compare", ""}, {"plot", "", "-f", "x.svg"}, {"report", "", "-f", "x.html"},
	} {
		o := rnnbenchWith(t.Context(), "", args...)
		if o.code != exitUsage || !strings.Contains(o.errors, "is empty: write a ") || o.out != "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, o.code, o.out, o.errors)
		}
	}
	if runs, err := filepath.Glob("out/*/manifest.json"); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v", runs, err)
	}
}

// TestEmptyFlags: what an unset variable of the shell's leaves is no value, and least of all one that
// has a comparison fail on nothing.
func TestEmptyFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny).want(t, exitDone, nil, nil)
	for _, args := range [][]string{
		{"sweep", "--config", ""}, {"sweep", "--wisdom="}, {"sweep", "--max-memory", ""}, {"sweep", "--baseline="},
		{"wisdom", "show", "--wisdom", ""}, {"wisdom", "prune", "--stale", "--device", ""}, {"wisdom", "export", "--device="}, {"wisdom", "export", "-f", ""},
		{"compare", "out", "out", "--fail-on", ""}, {"compare", "out", "out", "--only="}, {"show", "--filter", ""}, {"show", "--pivot="},
		{"plot", "-f", "x.svg", "--x", ""}, {"plot", "-f", "x.svg", "-f", ""}, {"report", "-f", ""}, {"graph", "lstm", "--out", ""}, {"doctor", "--machine", ""},
		{"export", "-H", "3", "-f", ""},
	} {
		o := rnnbenchWith(t.Context(), "", args...)
		if o.code != exitUsage || !strings.Contains(o.errors, "the value is empty: write a value, or omit the flag\nhint: rnnbench ") || o.out != "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, o.code, o.out, o.errors)
		}
	}
}

// TestResumeLabel: a run keeps its label.
func TestResumeLabel(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --label nightly").want(t, exitDone, nil, nil)
	rnnbench(t, "sweep --resume out --label nightly").want(t, exitDone, nil, []string{"4 records"})
	rnnbench(t, "sweep --resume out --label weekly").want(t, exitUsage, nil, []string{`cannot be resumed with another label: its label is "nightly", not "weekly"`})
}

func TestOtherErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep --device cuda:0").want(t, exitNoDevice, nil, []string{"cuda:0 is not available: cannot find the GPU worker", "hint: build it with make cuda"})
	t.Setenv(workerVariable, "/nothere")
	rnnbench(t, "sweep --device cuda:0").want(t, exitNoDevice, nil, []string{"RNNBENCH_CUDA names the worker /nothere, which cannot be run: "})
	rnnbench(t, "show").want(t, exitError, nil, []string{"no runs found", "rnnbench sweep --preset quick"})
	rnnbench(t, "show nothere").want(t, exitError, nil, []string{"nothere"})
	rnnbench(t, "sweep --resume nothere").want(t, exitError, nil, []string{"nothere", "hint:"})
	rnnbench(t, "show -").want(t, exitError, nil, []string{"no records in -"})
	if err := os.WriteFile("file", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, tiny+" --out file/out").want(t, exitError, nil, []string{"file/out", "hint: set --out DIR"})
	// Nothing succeeds: the only technique cannot run on four streams.
	o := rnnbench(t, tinyGrid+" --impl naive --streams 4")
	o.want(t, exitError, []string{"skipped"}, []string{"no point succeeded: 2 skipped", "naive runs on one stream, not 4"})
	t.Setenv("RNNBENCH_ROUNDS", "many")
	rnnbench(t, tiny).want(t, exitUsage, nil, []string{"RNNBENCH_ROUNDS"})
}

func TestDryRun(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "sweep --dry-run --impl naive,cudnnstyle -H 64,256,512 -B 1 -T 10 --max-memory 5MiB")
	o.want(t, exitDone, []string{"6 points = 3 hidden × 2 techniques; 4 skipped (4 memory); about", "memory: at most", "5.00 MiB available"}, nil)
	if withoutBusy(o.errors) != "" {
		t.Errorf("stderr: %s", o.errors)
	}
	var rows []struct {
		Status string
		Reason *string
		Memory *int64 `json:"mem_bytes"`
	}
	o = rnnbench(t, "sweep --dry-run --impl naive,cudnnstyle -o json -H 64,256,512 -B 1 -T 10 --max-memory 5MiB")
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 6 || rows[0].Status != "planned" || rows[5].Status != "skipped" || *rows[5].Memory < 5<<20 {
		t.Errorf("%v: %s", err, o.out)
	}
	if exists(usualDir) {
		t.Error("a dry run made a results folder")
	}
	rnnbench(t, "reproduce appleyard-table1 --quick --dry-run").want(t, exitDone, []string{"7 points"}, nil)
}

// TestHuge holds that sizes far beyond any machine are declined at once, with
// numbers, however they are made: before anything is laid out step by step.
func TestHuge(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{
		"sweep -H 8 -B 1 -T 1000000000 --max-memory 1GiB --impl naive,cudnnstyle,scc",
		"sweep -H 8 -B 1000000000 -T 2 --max-memory 1GiB",
		"sweep -H 60000 -B 1 -T 2 --max-memory 1GiB --layers 1000 --impl naive,persistent",
	} {
		rnnbench(t, line).want(t, exitError, []string{"skipped"}, []string{"no point succeeded"})
	}
	rnnbench(t, "show --out out").want(t, exitDone, []string{"needs ", "1.00 GiB may be used"}, nil)
}

func TestPrintConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "sweep --print-config -H 64:256:x2 --effort quick --where hidden<=128 --no-verify")
	o.want(t, exitDone, []string{"hidden = '64:256:x2'", "verify = false", "dir = 'out'"}, nil)
	if err := os.WriteFile("c.toml", []byte(o.out), 0o666); err != nil {
		t.Fatal(err)
	}
	if again := rnnbench(t, "sweep --print-config --config c.toml"); again.out != o.out {
		t.Errorf("a printed configuration reads back otherwise:\n%s%s", again.out, again.errors)
	}
	t.Setenv("RNNBENCH_RESULTS", "elsewhere")
	rnnbench(t, "sweep --print-config").want(t, exitDone, []string{"dir = 'elsewhere'"}, nil)
	rnnbench(t, "sweep --print-config --out here").want(t, exitDone, []string{"dir = 'here'"}, nil)
	t.Setenv("RNNBENCH_ROUND", "3")
	rnnbench(t, "sweep --print-config").want(t, exitDone, nil, []string{"warning:", "did you mean RNNBENCH_ROUNDS?"})
}

func TestSweep(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, tiny+" --label first")
	o.want(t, exitDone, []string{"naive", "cudnnstyle", "over naive"}, []string{
		"4 points = 2 hidden × 2 techniques; about", "[1/4] lstm forward H=8 B=2 T=3 L=1 naive", "[4/4]", "4 records in out/", "4 ok"})
	if strings.ContainsAny(o.out+o.errors, "\r\x1b") {
		t.Error("a stream that is no terminal got control characters")
	}
	m, recs, _, err := results.Read(usualDir)
	if err != nil || len(recs) != 4 || m.Label != "first" || m.Exit == nil || *m.Exit != exitDone || m.Finished == nil || m.Plan.Records != 4 || m.Counts[results.OK] != 4 {
		t.Fatalf("%v: %d records, manifest %+v", err, len(recs), m)
	}
	if d := m.Devices[0]; d.Peak == nil || *d.Peak <= 0 || d.Facts["simd"] == "" || d.Key != recs[0].Device {
		t.Errorf("device %+v", d)
	}
	if !slices.Contains(m.Argv, "--label") {
		t.Errorf("argv %q", m.Argv)
	}

	o = rnnbench(t, tinyGrid+" -q -o csv --impl naive,plain=cudnnstyle:fused=0")
	o.want(t, exitDone, []string{"cell,pass,hidden", ",plain,cudnnstyle,"}, nil)
	if o.errors != "" {
		t.Errorf("-q printed %q", o.errors)
	}

	show := func(line string, out ...string) string {
		t.Helper()
		o := rnnbench(t, line)
		o.want(t, exitDone, out, nil)
		return o.out
	}
	show("show", "plain")
	show("show "+m.Run, "cudnnstyle")
	rnnbench(t, "show --baseline plane").want(t, exitUsage, nil, []string{`--baseline: unknown technique "plane": did you mean plain?`})
	rnnbench(t, "report --baseline nothere -f r.html").want(t, exitUsage, nil, []string{`--baseline: unknown technique "nothere": choose among naive, plain`})
	show("show --pivot hidden,impl --metric speedup", "speed-up over naive")
	show("show --baseline plain", "over plain")
	if o := rnnbench(t, "plot --where impl=zzzzzz -f x.svg"); strings.Count(o.errors, "naive") != 1 {
		t.Errorf("techniques are listed twice: %s", o.errors)
	}
	show("show --pivot hidden,impl -o markdown", "|")
	show("show -o benchfmt", "BenchmarkRNN/impl=naive/")
	show("show --where hidden>8", "H=16")
	if s := show("show -o csv --where impl=plain"); strings.Count(s, "\n") != 3 || strings.Contains(s, ",naive,naive") {
		t.Errorf("--where impl=plain: %s", s)
	}
	o = rnnbenchWith(t.Context(), "", "show", "-o", "csv", "--filter", "/impl:(naive OR other) -/hidden:8")
	o.want(t, exitDone, nil, nil)
	if strings.Count(o.out, "\n") != 2 {
		t.Errorf("--filter: %s", o.out)
	}
	rnnbench(t, "show --where hidden>99").want(t, exitError, nil, []string{"select none of the 4 records"})
	jsonl := show("show -o jsonl")
	for line := range strings.Lines(jsonl) {
		var r results.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Schema != results.Schema {
			t.Errorf("%v: %s", err, line)
		}
	}
	rnnbenchWith(t.Context(), jsonl, "show", "-").want(t, exitDone, []string{"plain"}, nil)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(show("show -o json")), &rows); err != nil || len(rows) != 4 {
		t.Errorf("-o json: %v", err)
	}
	// Two runs that measured the same do not hide each other.
	show("show a=out/"+m.Run+" out", "a: naive", "20")
	rnnbench(t, "show --pivot hidden,hiden").want(t, exitUsage, nil, []string{"hiden"})

	o = rnnbench(t, "plot -f a.svg -f b.png --x hidden")
	o.want(t, exitDone, nil, []string{"wrote a.svg", "wrote b.png"})
	svg, err := os.ReadFile("a.svg")
	if err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("a.svg: %v", err)
	}
	show("plot", "<svg")
	for _, kind := range []string{"speedup", "heatmap", "winner", "roofline"} {
		show("plot -f - --kind "+kind, "<svg")
	}
	rnnbench(t, "plot -f nowhere/a.svg").want(t, exitError, nil, []string{"nowhere"})
}

// TestPlotNothing refuses a figure without a single value.
func TestPlotNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep --max-memory 1KiB -H 8 -B 1 -T 5 --impl naive,cudnnstyle --effort quick").want(t, exitError, nil, []string{"2 skipped"})
	for _, kind := range []string{"lines", "speedup", "heatmap", "winner", "winner --y memory", "roofline"} {
		o := rnnbench(t, "plot -f x.svg --kind "+kind)
		o.want(t, exitUsage, nil, []string{"none of the 2 records has a value to draw: result", "hint: rnnbench show"})
	}
	if exists("x.svg") {
		t.Error("a figure of nothing was written")
	}
	rnnbench(t, "plot -f x.svg --y memory").want(t, exitDone, nil, []string{"wrote x.svg"}) // which is known of what was skipped
	rnnbench(t, "sweep -H 8 -B 1 -T 5 --impl naive --profile --out profile").want(t, exitDone, nil, nil)
	runs, err := filepath.Glob("profile/*") // none of them is the latest
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v, %v", runs, err)
	}
	rnnbench(t, "plot --y percent "+runs[0]).want(t, exitUsage, nil, []string{"none of the 1 record has a value to draw: share of peak"})
}

// TestLabelOfWords selects by a label that is no technique's name, as experiments have them.
func TestLabelOfWords(t *testing.T) {
	run := filepath.Join("..", "..", "results", "cpu-amd-epyc-2t", "appleyard-table1")
	for where, want := range map[string]int{"impl=3 fused": 1, "impl!=3 fused": 6} {
		if o := rnnbenchWith(t.Context(), "", "show", run, "-o", "csv", "--where", where); o.code != exitDone || strings.Count(o.out, "\n") != 1+want {
			t.Errorf("%s: exit code %d: %s%s", where, o.code, o.out, o.errors)
		}
	}
	o := rnnbenchWith(t.Context(), "", "show", run, "--where", "impl=3 fusd")
	o.want(t, exitUsage, nil, []string{"did you mean 3 fused?"})
}

// TestLabel holds that knobs which were asked for show wherever a technique is named.
func TestLabel(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = tinyGrid + " --impl naive,cudnnstyle:fused=0"
	rnnbench(t, line).want(t, exitDone, []string{"cudnnstyle:fused=0"}, []string{"[4/4]"})
	rnnbench(t, "show -o benchfmt").want(t, exitDone, []string{"BenchmarkRNN/impl=cudnnstyle:fused_0/"}, nil)
	rnnbench(t, "show --where impl=cudnnstyle --baseline cudnnstyle").want(t, exitDone, []string{"cudnnstyle:fused=0", "over cudnnstyle"}, nil)
	rnnbench(t, "plot").want(t, exitDone, []string{"cudnnstyle:fused=0"}, nil)
	if o := rnnbench(t, "show -o csv out b=out --where impl=cudnnstyle:fused=0"); strings.Count(o.out, "\n") != 5 || strings.Contains(o.out, "naive") {
		t.Errorf("--where impl=cudnnstyle:fused=0: %s%s", o.out, o.errors)
	}

	// A run of before knobs were in labels goes on, and is comparable.
	rnnbench(t, line+" --out new").want(t, exitDone, nil, nil)
	m, _, _, err := results.Read(usualDir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(usualDir, m.Run, "records.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(`"label":"cudnnstyle:fused=0"`), []byte(`"label":"cudnnstyle"`))
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "sweep --resume out").want(t, exitDone, nil, []string{"4 records in out/"})
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, text) {
		t.Errorf("%v: a record with its technique's bare name was measured again", err)
	}
	o := rnnbench(t, "compare a=out b=new --min-effect 900%")
	o.want(t, exitDone, []string{"b against a: 4 "}, nil)
	if strings.Contains(o.out, "NEW") || strings.Contains(o.out, "GONE") {
		t.Errorf("records with and without knobs in the label are not compared:\n%s", o.out)
	}
}

// A trigger calls f once it has been written a word.
type trigger struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	f    func()
}

func (w *trigger) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.text.Write(b)
	if w.f != nil && strings.Contains(w.text.String(), w.word) {
		w.f()
		w.f = nil
	}
	return n, err
}

func (w *trigger) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestIsolate measures in a worker process what is measured in this one, on the
// same device in every record's eyes.
func TestIsolate(t *testing.T) {
	t.Chdir(t.TempDir())
	var keys [2][]string
	var devices [2]results.Device
	for i, isolate := range []string{"off", "on"} {
		rnnbench(t, tiny+" --threads 1 --simd generic --isolate "+isolate).want(t, exitDone, nil, []string{"4 ok"})
		m, recs, _, err := results.Read(usualDir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			keys[i] = append(keys[i], r.Device+" "+r.Key())
		}
		slices.Sort(keys[i])
		devices[i] = m.Devices[0]
	}
	if !slices.Equal(keys[0], keys[1]) {
		t.Errorf("records %q, isolated %q", keys[0], keys[1])
	}
	if here, there := devices[0], devices[1]; here.Key != there.Key || here.Facts["simd"] != there.Facts["simd"] || there.Peak == nil {
		t.Errorf("device %+v, isolated %+v", here, there)
	}
	rnnbench(t, tiny+" --device cuda:0 --isolate off").want(t, exitUsage, nil, []string{"always needs a worker process"})
	rnnbench(t, "worker --threads none").want(t, exitDone, []string{"rnnbench worker"}, nil) // its caller is told
}

// TestProfile runs each technique once, unchecked.
func TestProfile(t *testing.T) {
	t.Chdir(t.TempDir())
	profile := func(dir string) ([]results.Record, error) { // it is not the latest run
		runs, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(runs) != 1 {
			return nil, fmt.Errorf("%v: %w", runs, err)
		}
		_, recs, _, err := results.Read(runs[0])
		return recs, err
	}
	rnnbench(t, "sweep -H 8,16 -B 2 -T 3 --impl naive,cudnnstyle --profile").want(t, exitDone, nil, []string{"4 ok"})
	recs, err := profile(usualDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if r.Stats.N != 1 || r.Samples.Iters[0] != 1 || r.Verify != nil || r.Rate.Peak != nil {
			t.Errorf("%s: %+v, verified %v, peak %v", r.Key(), r.Samples, r.Verify, r.Rate.Peak)
		}
	}
	rnnbench(t, "sweep -H 8 -B 2 -T 3 --impl naive --profile --rounds 3 --max-rounds 3 --out more").want(t, exitDone, nil, []string{"1 ok"})
	if recs, err := profile("more"); err != nil || recs[0].Stats.N != 3 {
		t.Errorf("%v: %d rounds, want the 3 asked for", err, recs[0].Stats.N)
	}
}

// A terminal that is closed, as when ssh breaks down, is an interrupt.
func TestHangUp(t *testing.T) {
	mine := make(chan os.Signal, 1)
	signal.Notify(mine, syscall.SIGHUP) // or it would end the tests once nobody waits for it
	defer signal.Stop(mine)
	p := &program{err: io.Discard}
	ctx, stop := interruptible(t.Context(), p.newProgress(nil, 0))
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGHUP)
	}
	if err != nil {
		t.Skipf("no hang-up here: %v", err)
	}
	<-ctx.Done()
}

func TestInterruptAndResume(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	line := strings.Replace(tiny, "8,16", "8,16,24,32", 1)
	stderr := &trigger{word: "[2/8]", f: cancel}
	var stdout bytes.Buffer
	if code := run(ctx, strings.Fields(line), strings.NewReader(""), &stdout, stderr); code != exitInterrupted {
		t.Fatalf("exit code %d, want %d:\n%s", code, exitInterrupted, stderr)
	}
	m, recs, _, err := results.Read(usualDir)
	if err != nil || len(recs) < 2 || len(recs) >= 8 || *m.Exit != exitInterrupted {
		t.Fatalf("%v: %d records, exit %v", err, len(recs), m.Exit)
	}
	if !strings.Contains(stdout.String(), "cudnnstyle") || !strings.Contains(stderr.String(), "rnnbench: interrupted\nhint: rnnbench sweep --resume out/"+m.Run) {
		t.Errorf("stdout:\n%s\nstderr:\n%s", &stdout, stderr)
	}

	for _, c := range []struct{ flags, message string }{
		{" -H 8", "cannot be resumed: its plan"},
		{" -H 9,16,24,32", "cannot be resumed: its plan differs from the requested plan of the same size (8 points"},
		{" --label new", `cannot be resumed with another label: its label is none, not "new": omit --label`},
		{" --seed 7", "cannot be resumed: its inputs are normal with seed 1"},
		{" --cache cold", "cannot be resumed: it used hot caches, but the requested setting is cold"},
		{" --simd generic", "cannot be resumed: its instruction set is"},
		{" --threads 1", "cannot be resumed: its device is not"},
	} {
		if c.flags == " --threads 1" && runtime.NumCPU() == 1 || strings.Contains(c.flags, "generic") && m.Devices[0].Facts["simd"] == "generic" {
			continue
		}
		rnnbench(t, "sweep --resume out"+c.flags).want(t, exitUsage, nil, []string{c.message})
	}

	o := rnnbench(t, "sweep --resume "+m.Run) // all settings come from the run
	o.want(t, exitDone, []string{"32"}, []string{fmt.Sprintf("/%d]", 8-len(recs)), "8 records in out/" + m.Run})
	again, more, _, err := results.Read(usualDir)
	if err != nil || again.Run != m.Run || len(more) != 8 || *again.Exit != exitDone || len(again.Resumed) != 1 {
		t.Fatalf("%v: %d records of %s, exit %v", err, len(more), again.Run, again.Exit)
	}
	for i, r := range recs { // nothing was measured twice
		if more[i].Seq != r.Seq || more[i].Time != r.Time {
			t.Errorf("record %d was measured again", i)
		}
	}
	rnnbench(t, line+" --resume out").want(t, exitDone, nil, []string{"8 records"}) // the same flags are fine
}

func TestBudget(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --budget 1ns").want(t, exitDone, nil, []string{"budget of 1ns exhausted", "2 of 4 records missing", "resumes the run"})
}

// TestSpoiled holds what becomes of runs whose files are not what they were.
func TestSpoiled(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny).want(t, exitDone, nil, nil)
	m, _, _, err := results.Read(usualDir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, records := filepath.Join(usualDir, m.Run, "manifest.json"), filepath.Join(usualDir, m.Run, "records.jsonl")
	if err := os.WriteFile("words", []byte(strings.Repeat("not a record\n", 20)), 0o666); err != nil {
		t.Fatal(err)
	}
	o := rnnbench(t, "show words")
	o.want(t, exitError, nil, []string{"words:5: this line is not a record", "omitted similar warnings about", "no records in words"})
	if strings.Contains(o.errors, "words:6:") {
		t.Errorf("every line is warned of:\n%s", o.errors)
	}
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "show out").want(t, exitDone, []string{"naive"}, []string{"the environment is unknown"})
	rnnbench(t, "sweep --resume out").want(t, exitError, nil, []string{"run out cannot be resumed: cannot read its settings from manifest.json", "hint: rnnbench show out"})
	if err := errors.Join(os.Mkdir("empty", 0o777), os.WriteFile("empty/records.jsonl", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "compare empty "+records).want(t, exitChanged, nil, []string{"no records to compare in empty"})
}

func TestFullDisk(t *testing.T) {
	t.Chdir(t.TempDir())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, line := range []string{tiny, "show", "list cells", "version", "explain -H 4 -B 1 -T 2 --no-limits", "plot -f -", "report", "compare out", "export -H 4 -B 1 -T 2 -f -"} {
		var stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), strings.NewReader(""), full, &stderr); code != exitError || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s > /dev/full: exit code %d: %s", line, code, &stderr)
		}
	}
	if m, recs, _, err := results.Read(usualDir); err != nil || len(recs) != 4 || *m.Exit != exitDone {
		t.Errorf("the records did not survive: %v, %d, %v", err, len(recs), m.Exit)
	}
	rnnbench(t, "export -H 4 -B 1 -T 2 -f /dev/full/x.npz").want(t, exitError, nil, []string{"/dev/full/x.npz"})
}

func TestVerify(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "verify -H 9 -B 3 -T 4 --cell all --pass forward,train")
	n := len(cell.All()) * len(rnn.Passes()) * len(impl.Own())
	o.want(t, exitDone, []string{"lstm-peephole train", "ok"}, []string{fmt.Sprintf("[%d/%d]", n, n), ", tolerance "})
	if exists(usualDir) {
		t.Error("verify made a results folder")
	}
	o = rnnbench(t, "verify --impl naive -H 5 -B 1 -T 2 -q -o jsonl")
	var r results.Record
	if err := json.Unmarshal([]byte(strings.SplitN(o.out, "\n", 2)[0]), &r); err != nil || r.Stats != nil || r.Verify == nil || !r.Verify.OK {
		t.Errorf("%v: %s", err, o.out)
	}
}

func TestExitCode(t *testing.T) {
	rec := func(list ...results.Status) (recs []results.Record) {
		for _, s := range list {
			recs = append(recs, results.Record{Status: s})
		}
		return recs
	}
	stop := fmt.Errorf("stopped as --on-error stop asks")
	for _, c := range []struct {
		recs           []results.Record
		err            error
		stopped, allow bool
		want           int
	}{
		{recs: rec(results.OK), want: exitDone},
		{recs: rec(results.OK, results.Skipped), want: exitDone},
		{recs: rec(results.Skipped), want: exitError},
		{recs: nil, want: exitError},
		{recs: rec(results.Failed), want: exitError},
		{recs: rec(results.Failed), allow: true, want: exitError},
		{recs: rec(results.OK, results.Failed), want: exitFailures},
		{recs: rec(results.OK, results.Incorrect), want: exitFailures},
		{recs: rec(results.OK, results.Timeout), want: exitFailures},
		{recs: rec(results.OK, results.Timeout), allow: true, want: exitDone},
		{recs: rec(results.OK), err: context.Canceled, want: exitInterrupted},
		{recs: nil, err: context.Canceled, want: exitInterrupted},
		{recs: rec(results.OK), err: tuner.ErrBudget, want: exitDone},
		{recs: rec(results.OK), err: os.ErrClosed, want: exitError},
		{recs: rec(results.OK, results.Failed), err: stop, stopped: true, want: exitFailures},
		{recs: rec(results.OK, results.Failed), err: stop, want: exitError},
	} {
		if code, err := exitCode(c.recs, c.err, c.stopped, c.allow); code != c.want || (err == nil) != (code == exitDone) {
			t.Errorf("%+v: %d, %v", c, code, err)
		}
	}
	for _, c := range []struct {
		recs  []results.Record
		err   error
		allow bool
		want  int
	}{
		{recs: rec(results.OK, results.Skipped), want: exitDone},
		{recs: rec(results.OK, results.Incorrect), want: exitFailures},
		{recs: rec(results.Incorrect, results.Incorrect), want: exitFailures},
		{recs: rec(results.Incorrect, results.Skipped), allow: true, want: exitFailures},
		{recs: rec(results.OK, results.Incorrect), allow: true, want: exitDone},
		{recs: rec(results.Incorrect), err: stop, want: exitFailures},
		{recs: rec(results.Incorrect), err: context.Canceled, want: exitInterrupted},
		{recs: rec(results.Skipped), want: exitError},
		{recs: rec(results.Failed), want: exitError},
	} {
		if code, err := verdictCode(c.recs, c.err, c.err == stop, c.allow); code != c.want || (err == nil) != (code == exitDone) {
			t.Errorf("verify of %+v: %d, %v", c, code, err)
		}
	}
}

func TestLookInside(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "explain -H 8 -B 2 -T 3 --layers 2 --no-limits")
	o.want(t, exitDone, []string{"naive · lstm", "cudnnstyle · lstm", "critical path", "streams: 2"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3").want(t, exitDone, []string{"lower bounds: "}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -o dump").want(t, exitDone, []string{"matrix x 6×8", "s0"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -o dot").want(t, exitDone, []string{"digraph"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -S 4").want(t, exitDone, []string{"declined: naive runs on one stream"}, nil)
	rnnbench(t, "explain -H 8 -B 2 -T 3 --impl naive -S 4 -o dot").want(t, exitError, nil, []string{"naive runs on one stream"})
	for _, line := range []string{"export -H 8 -B 2 -T 3 -f a.npz", "export -H 8 -B 2 -T 3 --pass train --impl reference -o b.npz", "export --point H=4,B=1,T=2 --cell gru --impl cudnnstyle:fused=0 -f c.npz"} {
		rnnbench(t, line).want(t, exitDone, nil, []string{"wrote "})
	}
	for _, file := range []string{"a.npz", "b.npz", "c.npz"} {
		if data, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
			t.Errorf("%s: %v", file, err)
		}
	}
	rnnbench(t, "export -H 512 -B 1 -T 3 -f d.npz --max-memory 1MiB").want(t, exitError, nil, []string{"needs"})
}

// TestExportInterrupted: an export that is asked to end leaves no part of a file, and the one before as it was.
func TestExportInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.npz", []byte("before"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, strings.Fields("export -H 8 -B 2 -T 3 -f a.npz"), strings.NewReader(""), &stdout, &stderr); code != exitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d:\n%s", code, &stderr)
	}
	if data, err := os.ReadFile("a.npz"); err != nil || string(data) != "before" {
		t.Errorf("the file has %d bytes now, %v", len(data), err)
	}
	if all, err := os.ReadDir("."); err != nil || len(all) != 1 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// TestModel predicts for machines that are built in, from a file and this one.
func TestModel(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "model titanx -H 1152 -B 4 --variant all").want(t, exitDone, []string{"24×1", "registers", "latency", "fp16"}, nil)
	rnnbench(t, "doctor --threads 2 --machine here.toml").want(t, exitDone, []string{"barrier", "L2", "products"}, []string{"wrote here.toml"})
	machines := []string{"here.toml", "", "here", "--threads 1"}
	if testing.Short() {
		machines = machines[:2] // the others measure this machine once more
	}
	for _, machine := range machines {
		rnnbench(t, "model "+machine+" --cell lstm -H 64,4096 -B 1").want(t, exitDone, []string{"lstm", "DRAM"}, nil)
	}
	o := rnnbench(t, "model h200 -H 512 -B 1,16 --precision bf16 -o json")
	var rows []struct {
		Batch                                     int
		Resident                                  bool
		Step, Compute, Weights, Exchange, Latency float64
		FLOPS                                     float64 `json:"flops_per_s"`
		Seconds                                   float64 `json:"step_s"`
	}
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%v: %s", err, o.out)
	}
	for _, r := range rows {
		if flops := 2 * 512 * 512 * float64(r.Batch); !r.Resident || r.FLOPS*r.Seconds < 0.999*flops || r.FLOPS*r.Seconds > 1.001*flops {
			t.Errorf("%+v", r)
		}
	}
	for line, want := range map[string]string{
		"model titany":                  "unknown machine or file",
		"model titanx k40":              "takes one machine",
		"model titanx --variant halv":   "did you mean",
		"model titanx -H 0":             "hidden",
		"model titanx --cell gilr -H 8": "no recurrent product",
	} {
		rnnbench(t, line).want(t, exitUsage, nil, []string{want})
	}
	if err := os.WriteFile("bad.toml", []byte("name = \"x\"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "model bad.toml").want(t, exitUsage, nil, []string{"flops is 0", "bad.toml"})
	text, err := os.ReadFile("here.toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("cut.toml", text[:bytes.LastIndex(text, []byte("x = "))], 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "model cut.toml").want(t, exitUsage, nil, []string{"level DRAM has no m", "cut.toml"})
	rnnbench(t, "doctor --machine no/such/folder.toml").want(t, exitError, nil, []string{"cannot write"})
}

// TestPredict explains where weights stay and what a step takes.
func TestPredict(t *testing.T) {
	m, err := model.Load("xeon")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{machine: m}
	for _, c := range []struct {
		cell     string
		hidden   int
		resident bool
		want     []string
	}{
		{"rnn-tanh", 512, true, []string{"512 KiB for each worker stay in its L2", "each private cache holds 768 KiB of weights, enough for 626 units", "predicted step of one layer in bands of units: 7.91 µs"}},
		{"lstm", 512, false, []string{"4.00 MiB stay in L3, which is shared"}},
		{"gilr", 512, false, nil},
	} {
		at := results.Point{Cell: c.cell, Pass: "forward", Hidden: c.hidden, Input: 8, Batch: 1, Steps: 4, Layers: 1, Precision: "fp32"}
		problem, err := tuner.Problem(at)
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.predict(&tuner.Layout{Point: at, Problem: problem})
		if err != nil || (x == nil) != (c.want == nil) {
			t.Fatalf("%s: %v, %v", c.cell, x, err)
		}
		if x == nil {
			continue
		}
		notes := strings.Join(x.notes(), "\n")
		for _, want := range c.want {
			if x.Resident != c.resident || !strings.Contains(notes, want) {
				t.Errorf("%s: no %q in\n%s", c.cell, want, notes)
			}
		}
	}
}

func TestGraph(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "graph lstm-c --output 5 --onehot")
	o.want(t, exitDone, []string{"i, f, f·c', i·g, c", "1 recurrent node"}, []string{"wrote out/lstm-c-grouped.svg"})
	for _, name := range []string{"lstm-c.dot", "lstm-c.svg", "lstm-c-grouped.dot", "lstm-c-grouped.svg"} {
		if data, err := os.ReadFile(filepath.Join("out", name)); err != nil || len(data) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	const jordan = `
[[layer]]
name = "x"
size = 3
input = "dense"
[[layer]]
name = "h"
size = 4
activation = "tanh"
bias = true
[[connection]]
from = "x"
to = "h"
[[connection]]
from = "h"
to = "h"
delay = %d
`
	for name, delay := range map[string]int{"good.toml": 2, "loop.toml": 0, "late.toml": math.MaxInt64} {
		text := fmt.Sprintf(jordan, delay)
		if err := os.WriteFile(name, []byte(text+"[[layer]]\nname = \"y\"\nsize = 4\n[[connection]]\nfrom = \"h\"\nto = \"y\"\nweight = \"diagonal\"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	rnnbench(t, "graph good.toml --run -B 2 -T 3 --history 2 --out -").want(t, exitDone, []string{"recurrent", "h (2 ago)", "× the tolerance"}, nil)
	if o := rnnbench(t, "graph good.toml --run -T 3 --out - -o json"); !json.Valid([]byte(o.out)) {
		t.Errorf("not JSON: %s", o.out)
	}
	rnnbench(t, "graph loop.toml").want(t, exitUsage, nil, []string{`loop.toml: graph: layer "h" connects to itself without a delay`})
	rnnbench(t, "graph good.toml -H 5").want(t, exitUsage, nil, []string{"--hidden applies only to a cell, but good.toml is a file"})
	rnnbench(t, "graph gru --steps 5").want(t, exitUsage, nil, []string{"--steps needs --run"})
	rnnbench(t, "graph gru --out good.toml").want(t, exitError, nil, []string{"cannot create the folder for drawings", "hint: use --out DIR"})
	rnnbench(t, "graph lstm -H 100000 --run --out -").want(t, exitError, nil, []string{"training lstm needs ", "is available"})
	rnnbench(t, "graph late.toml --run --out -").want(t, exitError, nil, []string{"training late needs ", "is available"})
	for _, flag := range []string{"batch", "steps", "history"} {
		rnnbench(t, fmt.Sprintf("graph good.toml --run --out - --%s %d", flag, math.MaxInt64)).want(t, exitError, nil, []string{"training good needs ", "is available"})
	}
	rnnbench(t, "graph none.toml").want(t, exitUsage, nil, []string{"none.toml"})
	rnnbench(t, "graph good.toml --run --batch 0 --out -").want(t, exitUsage, nil, []string{"must be at least 1"})
	rnnbench(t, "reproduce hwang-graph --quick --no-hostname").want(t, exitDone, []string{"{i, f, f·c', i·g, c}"}, []string{"hwang-graph-lstm-peephole-fig2.svg", "report.md"})
	rnnbench(t, "__complete graph lstm").want(t, exitDone, []string{"lstm-peephole"}, nil)
}

func TestManage(t *testing.T) {
	t.Chdir(t.TempDir())
	valid := func(line string) {
		t.Helper()
		o := rnnbench(t, line)
		o.want(t, exitDone, nil, nil)
		if !json.Valid([]byte(o.out)) {
			t.Errorf("%s: not JSON: %s", line, o.out)
		}
	}
	for _, c := range catalogues() {
		rnnbench(t, "list "+c.name).want(t, exitDone, []string{"+--"}, nil)
		valid("list -o json " + c.name)
	}
	for _, line := range []string{"list -o json", "version -o json", "doctor -o json --no-hostname", "explain -H 4 -B 1 -T 2 -o json", "reproduce -o json"} {
		valid(line)
	}
	rnnbench(t, "doctor --threads 1").want(t, exitDone, []string{"with 1 workers", "peak", "noise"}, nil)
	rnnbench(t, "reproduce").want(t, exitDone, []string{"appleyard-table1"}, nil)
	for _, s := range []string{"bash", "zsh", "fish", "powershell"} {
		rnnbench(t, "completion "+s).want(t, exitDone, []string{"rnnbench"}, nil)
	}
	for _, c := range []struct{ line, word string }{
		{"__complete sweep --cell lstm,g", "lstm,gru\tGRU"},
		{"__complete sweep --impl c", "cudnnstyle\t"},
		{"__complete sweep --preset q", "quick\t"},
		{"__complete sweep --effort q", "quick"},
		{"__complete sweep -o m", "markdown"},
		{"__complete show --metric s", "speedup\t"},
		{"__complete plot --rows h", "hidden\t"},
		{"__complete reproduce a", "appleyard-table1\t"},
		{"__complete compare x --fail-on slower,b", "slower,broken"},
		{"__complete report --baseline n", "naive\t"},
		{"__complete list p", "presets\t"},
		{"__complete sweep --impl cudnnstyle:", "cudnnstyle:fused=\t"},
		{"__complete sweep --impl naive,x=cudnnstyle:overlap=0:f", "naive,x=cudnnstyle:overlap=0:fused=\t"},
		{"__complete sweep --impl persistent:bands=", "persistent:bands=0\t"},
		{"__complete sweep --where h", "hidden<=\t"},
		{"__complete show --where cell!=", "cell!=gru"},
		{"__complete sweep --zip hidden,b", "hidden,batch\t"},
		{"__complete sweep --point H=5,B", "H=5,B=\t"},
		{"__complete plot --x g", "graph\t"},
		{"__complete plot --panel inp", "inputbatch\t"},
	} {
		rnnbench(t, c.line).want(t, exitDone, []string{c.word}, nil)
	}
}

func TestReproduce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := &trigger{word: "[7/7]", f: cancel} // whether it is seen does not matter: all is measured
	code := run(ctx, strings.Fields("reproduce appleyard-table1 --quick --no-verify"+strings.Replace(quickly, "2", "1", 2)), strings.NewReader(""), &stdout, stderr)
	if code != exitDone && code != exitInterrupted {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	m, recs, _, err := results.Read(usualDir)
	if err != nil || len(recs) != 7 || m.Label != "appleyard-table1" {
		t.Fatalf("%v: %d records", err, len(recs))
	}
	report, err := os.ReadFile(filepath.Join(usualDir, m.Run, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	figure := regexp.MustCompile(`\]\((.*\.svg)\)`).FindSubmatch(report)
	if figure == nil || !exists(filepath.Join(usualDir, m.Run, string(figure[1]))) {
		t.Errorf("the report shows no figure:\n%s", report)
	}
	for _, from := range []string{"out", filepath.Join("out", "latest"), "again=out"} {
		rnnbench(t, "reproduce appleyard-table1 --from "+from).want(t, exitDone, []string{"Paper"}, []string{".svg", "report.md"})
	}
	rnnbench(t, tiny+" --out swept").want(t, exitDone, nil, nil)
	o := rnnbench(t, "reproduce appleyard-table1 --from swept")
	o.want(t, exitUsage, nil, []string{"none of the 4 records in swept belongs to appleyard-table1", "hint: "})
	if reports, err := filepath.Glob("swept/*/report.md"); err != nil || len(reports) > 0 || o.out != "" {
		t.Errorf("a report on nothing: %v %v %s", reports, err, o.out)
	}
	// A run of another experiment keeps its report.
	for _, other := range []string{"appleyard-fig1", "diamos-memory", "hwang-graph"} {
		rnnbench(t, "reproduce "+other+" --from out").want(t, exitUsage, nil, []string{"the run in out is from experiment appleyard-table1, not " + other, "hint: "})
	}
	if now, err := os.ReadFile(filepath.Join(usualDir, m.Run, "report.md")); err != nil || !bytes.HasPrefix(now, []byte("# The optimization ladder")) {
		t.Errorf("%v: the report of appleyard-table1 is now\n%.200s", err, now)
	}
	rnnbench(t, "reproduce hwang-graph --from swept").want(t, exitUsage, nil, []string{"none of the 4 records in swept belongs to hwang-graph"})

	// What there was no time for is measured later, into the same folder.
	line := "reproduce diamos-barrier --quick --no-verify --out sittings" + strings.Replace(quickly, "2", "1", 2)
	rnnbench(t, line+" --budget 1ns").want(t, exitDone, nil, []string{"budget of 1ns exhausted", "hint: rnnbench reproduce diamos-barrier --resume sittings"})
	first, some, _, err := results.Read("sittings")
	if err != nil || len(some) == 0 || len(some) == first.Plan.Records {
		t.Fatalf("%v: %d records", err, len(some))
	}
	rnnbench(t, "reproduce appleyard-table1 --resume sittings").want(t, exitUsage, nil, []string{"its plan ("})
	rnnbench(t, "reproduce diamos-barrier --resume sittings --budget 0s").want(t, exitDone, nil, []string{"report.md"})
	again, all, _, err := results.Read("sittings")
	if err != nil || again.Run != first.Run || len(all) != first.Plan.Records {
		t.Fatalf("%v: %d of %d records in run %s after %s", err, len(all), first.Plan.Records, again.Run, first.Run)
	}

	// An experiment that measures nothing is a run as well.
	rnnbench(t, "reproduce diamos-memory --out counted").want(t, exitDone, []string{"215 MB", "about 9"}, []string{"diamos-memory.svg"})
	rnnbench(t, "reproduce diamos-memory --out dry --dry-run").want(t, exitDone, nil, []string{"nothing to measure"})
	rnnbench(t, "reproduce diamos-memory --from counted").want(t, exitDone, []string{"215 MB"}, []string{"diamos-memory.svg"})
}

// TestCompare compares runs whose records were changed on purpose.
func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --label first -q").want(t, exitDone, nil, nil)
	m, recs, _, err := results.Read(usualDir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, change func(i int, r *results.Record)) {
		t.Helper()
		var text bytes.Buffer
		for i, r := range recs {
			samples := make([]float64, 12)
			for j := range samples {
				samples[j] = 1e-3 * (1 + 0.0001*float64(j))
			}
			r.Samples = &results.Samples{Wall: samples}
			if change != nil {
				change(i, &r)
			}
			st, _ := results.Summarize(r.Samples.Wall, 0)
			r.Stats = &st
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(line, '\n'))
		}
		if err := os.WriteFile(name, text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("base.jsonl", nil)
	write("same.jsonl", nil)
	write("slow.jsonl", func(i int, r *results.Record) {
		if i == 0 {
			for j := range r.Samples.Wall {
				r.Samples.Wall[j] *= 1.2
			}
		}
	})
	write("broken.jsonl", func(i int, r *results.Record) {
		if why := "off by 3"; i == 1 {
			r.Status, r.Reason = results.Incorrect, &why
		}
	})
	write("other.jsonl", func(_ int, r *results.Record) { r.Point.Cell = "gru" })
	write("elsewhere.jsonl", func(_ int, r *results.Record) { r.Device = "abacus" })
	for _, c := range []struct {
		line        string
		code        int
		out, errors []string
	}{
		{"a=base.jsonl b=same.jsonl --fail-on slower,broken", exitDone, []string{"b against a: 4 SAME."}, nil},
		{"a=base.jsonl b=slow.jsonl", exitDone, []string{"SLOWER", "+20.0 %", "1 SLOWER, 3 SAME", "Largest slowdowns: ", "One run per side"}, nil},
		{"a=base.jsonl,same.jsonl b=slow.jsonl,slow.jsonl", exitDone, []string{"b against a: 1 SLOWER, 3 SAME"}, nil},
		{"base.jsonl,same.jsonl same.jsonl,base.jsonl", exitDone, []string{"4 SAME"}, nil},
		{"a=base.jsonl,nosuch.jsonl b=slow.jsonl", exitError, nil, []string{"nosuch.jsonl"}},
		{"a=base.jsonl a=base.jsonl b=slow.jsonl b=slow.jsonl", exitDone, []string{"1 SLOWER, 3 SAME"}, nil},
		{"a=base.jsonl b=slow.jsonl --fail-on slower", exitChanged, []string{"SLOWER"}, []string{"--fail-on: 1 SLOWER"}},
		{"a=base.jsonl b=slow.jsonl --fail-on broken", exitDone, nil, nil},
		{"a=base.jsonl b=slow.jsonl --min-effect 30% --fail-on slower", exitDone, []string{"4 SAME"}, nil},
		{"a=base.jsonl b=same.jsonl c=broken.jsonl --fail-on broken --only broken", exitChanged, []string{"off by 3", "c against a: 1 BROKEN"}, []string{"1 BROKEN"}},
		{"base.jsonl base.jsonl", exitDone, []string{"4 SAME"}, nil},
		{"a=base.jsonl b=other.jsonl", exitChanged, nil, []string{"nothing overlaps: no cell is in both"}},
		{"a=base.jsonl a=same.jsonl", exitChanged, nil, []string{"nothing to compare with a"}},
		{"a=base.jsonl b=elsewhere.jsonl", exitUsage, nil, []string{"abacus", "hint: add --across-devices"}},
		{"a=base.jsonl b=elsewhere.jsonl --across-devices", exitDone, []string{"4 SAME"}, nil},
		{"a=base.jsonl b=slow.jsonl --where hidden>99", exitError, nil, []string{"select none of the 8 records"}},
		{m.Run, exitDone, []string{"first #2 against first"}, nil},
	} {
		rnnbench(t, "compare "+c.line).want(t, c.code, c.out, c.errors)
	}
	var rows []struct {
		Verdict string
		Ratio   *float64
	}
	o := rnnbench(t, "compare base.jsonl slow.jsonl -o json")
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 4 || *rows[0].Ratio < 1.19 {
		t.Errorf("%v: %s", err, o.out)
	}
}

func TestReport(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --label first -q --impl naive,cudnnstyle -S 2 --allow-failures").want(t, exitDone, nil, nil)
	rnnbench(t, tiny+" --label second -q").want(t, exitDone, nil, nil)
	runs, err := filepath.Glob(usualDir + "/2*")
	if err != nil || len(runs) != 2 {
		t.Fatalf("%v: %v", runs, err)
	}
	rnnbench(t, "report -f page.html").want(t, exitDone, nil, []string{"wrote page.html"})
	page, err := os.ReadFile("page.html")
	if err != nil || !bytes.Contains(page, []byte("<svg")) || !bytes.Contains(page, []byte("--label second")) {
		t.Errorf("%v: %.300s", err, page)
	}
	rnnbench(t, "report "+strings.Join(runs, " ")).want(t, exitDone, []string{"naive runs on one stream", "<h1>", "first", "second"}, nil)
	rnnbench(t, "report --title Mine --where impl=naive").want(t, exitDone, []string{"<h1>Mine</h1>"}, nil)
	rnnbench(t, "report -f nowhere/a.html").want(t, exitError, nil, []string{"nowhere"})
}

// TestReproduceNeedsGPU has a processor asked for what only a GPU can show.
func TestReproduceNeedsGPU(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "reproduce cudnn-fp32")
	o.want(t, exitNoDevice, nil, []string{"cudnn-fp32 compares with the vendor library", "--device cuda:0"})
	if _, err := os.Stat("out"); err == nil {
		t.Error("a run was begun")
	}
}
