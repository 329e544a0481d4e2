package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/config"
)

// TestReproduceAll: several experiments end with one table and one page. After an interruption,
// --resume keeps finished experiments and continues the unfinished one in its own run.
func TestReproduceAll(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := &trigger{word: "[ 3/", f: cancel}
	line := "reproduce hwang-graph diamos-barrier --quick --no-verify --no-hostname" + strings.Replace(quickly, "2", "1", 2)
	if code := run(ctx, strings.Fields(line), strings.NewReader(""), &stdout, stderr); code != exit.Interrupted {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	pages, err := filepath.Glob(filepath.Join(config.Dir, "*-reproduce", "session.json"))
	if err != nil || len(pages) != 1 || !strings.Contains(stderr.String(), "reproduce all --resume "+filepath.Dir(pages[0])+" resumes the session") {
		t.Fatalf("sessions %v: %s", pages, stderr)
	}
	barrier, some, _, err := record.Read(config.Dir) // the latest
	if err != nil || len(some) == 0 || len(some) >= barrier.Scope.Records {
		t.Fatalf("%d of %d records: %v", len(some), barrier.Scope.Records, err)
	}

	o := rnnbench(t, "reproduce all --resume")
	o.want(t, exit.Done, []string{"The paper found", "one recurrent node", "reduced size"}, []string{"hwang-graph: already finished", "index.html"})
	if strings.Contains(o.out, "they agree") {
		t.Errorf("quick sizes agree:\n%s", o.out)
	}
	again, all, _, err := record.Read(config.Dir)
	if err != nil || again.Run != barrier.Run || len(all) != barrier.Scope.Records {
		t.Errorf("%d of %d records in run %s after %s: %v", len(all), barrier.Scope.Records, again.Run, barrier.Run, err)
	}
	page, err := os.ReadFile(filepath.Join(filepath.Dir(pages[0]), "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`href="../` + barrier.Run + `/"`, "<svg ", "data:image/svg+xml", "(reduced size)", "run folder", `id="machine"`} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, outside := range []string{"http://", "https://", `src="/`} {
		if rest := bytes.ReplaceAll(page, []byte("http://www.w3.org/"), nil); bytes.Contains(rest, []byte(outside)) {
			t.Errorf("the page asks for %s", outside)
		}
	}
	rnnbench(t, "reproduce all --resume "+filepath.Dir(pages[0])).want(t, exit.Done, []string{"Verdict"}, []string{"diamos-barrier: already finished"})
	rnnbench(t, "reproduce all --resume nowhere").want(t, exit.Error, nil, []string{"no reproduction of several experiments", "hint: "})
}

// TestReproduceAllBudget: several experiments share one budget. --resume begins those for which
// it was not enough.
func TestReproduceAllBudget(t *testing.T) {
	t.Chdir(t.TempDir())
	line := "reproduce hwang-graph diamos-barrier --quick --no-verify --no-hostname" + strings.Replace(quickly, "2", "1", 2)
	rnnbench(t, line+" --budget 1ns").want(t, exit.Done, []string{"not begun: budget exhausted"},
		[]string{"budget of 1ns exhausted; 1 experiment not begun", " completes unfinished experiments", "index.html"})
	if testing.Short() {
		t.Skip("the suite without -short goes on")
	}
	rnnbench(t, "reproduce all --resume --budget 1h --dry-run").want(t, exit.Done, []string{" covers all of 15 records"}, []string{"hwang-graph: already finished", "in all: 15 records in 1 experiment to measure; about "})
	rnnbench(t, "reproduce all --resume --budget 0s").want(t, exit.Done, []string{"The paper found"}, []string{"hwang-graph: already finished"})
}
