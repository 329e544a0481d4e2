package main

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/wisdom"
)

// asProgram, as the first argument, makes the test binary act as rnnbench.
const asProgram = "as-program"

var kills = flag.Int("kills", 6, "how often TestKill kills a sweep and a tune together")

// TestKill kills sweep and tune at random moments and resumes them until they are done. No record
// is lost or written twice, and every file stays readable. The final records are those of an
// unkilled run.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: takes a second for each kill")
	}
	const grid = " -H 8:48:8 -B 2 -T 3 --min-time 2ms --min-iters 1 --seed 3 --threads 1 -q" // several would wait for each other on a busy machine
	for _, c := range []struct{ name, line string }{
		{"sweep", "sweep --impl naive,cudnnstyle,persistent,scc --warmup 2ms --rounds 6 --max-rounds 6" + grid},
		{"tune", "tune --impl naive,cudnnstyle,persistent --depth 1 --wisdom w.toml --max-rounds 6" + grid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			start := time.Now()
			rnnbench(t, c.line+" --out whole").want(t, exit.Done, nil, nil)
			whole := time.Since(start)
			_, all, _, err := record.Read("whole")
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
			done, killed, within := 0, 0, 0
			for ; killed < (*kills+1)/2; done++ {
				start := time.Now()
				k, w := killAndResume(t, strings.Fields(c.line), whole, rng, keys(all))
				killed, within = killed+k, within+w
				if k == 0 { // the first run may have been slow, so that no kill comes early enough
					whole = min(whole, time.Since(start))
				}
			}
			t.Logf("%d kills, %d of them between the first record and the last; %d runs completed", killed, within, done)
		})
	}
}

// killAndResume runs args and kills it repeatedly, each time later, until the run is complete.
// whole is about how long the run takes without kills. killed counts the kills, and within those
// that left a run which had begun.
func killAndResume(t *testing.T, args []string, whole time.Duration, rng *rand.Rand, want []string) (killed, within int) {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	var before []record.Record
	for {
		more := []string{"--out", out}
		if exists(filepath.Join(out, "latest")) {
			more = append(more, "--resume", out)
		}
		if args[0] == "tune" {
			more = append(more, "--wisdom", filepath.Join(dir, "w.toml"))
		}
		most := time.Duration((0.3 + rng.Float64()*(1+0.3*float64(killed))) * float64(whole))
		finished, message := runFor(t, append(slices.Clone(args), more...), most)
		if !finished {
			killed++
		}
		if _, err := wisdom.Read(filepath.Join(dir, "w.toml")); err != nil {
			t.Fatal(err)
		}
		if exists(filepath.Join(out, "latest")) {
			before = intact(t, out, before)
			if n := len(before); !finished && n > 0 && n < len(want) {
				within++
			}
		}
		if finished {
			if message != "" {
				t.Fatalf("after %d kills: %s", killed, message)
			}
			if got := keys(before); !slices.Equal(got, want) {
				t.Fatalf("after %d kills there are %d records and not %d:\n%s", killed, len(got), len(want), strings.Join(got, "\n"))
			}
			return killed, within
		}
	}
}

// runFor runs the program for at most the time most. It reports whether the program finished, and
// what it printed if it failed.
func runFor(t *testing.T, args []string, most time.Duration) (finished bool, message string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{asProgram}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(most, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, ""
	case errors.As(err, &exit) && !exit.Exited():
		return false, ""
	}
	return true, said.String()
}

// intact reads a killed run and returns its records. It fails if a line before the last is
// unreadable, or if a record of before is lost or present twice.
func intact(t *testing.T, dir string, before []record.Record) []record.Record {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(dir, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, strings.TrimSpace(string(id)), "records.jsonl")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	recs, warnings, err := record.ReadRecords(f, "records")
	if err != nil || len(warnings) > 1 || len(warnings) == 1 && !strings.Contains(warnings[0].Text, "cut short") {
		t.Fatalf("%v, %v", warnings, err)
	}
	if _, _, _, err := record.Read(dir); err != nil {
		t.Fatal(err)
	}
	for i, r := range before {
		if i >= len(recs) || recs[i].Key() != r.Key() || !recs[i].Time.Equal(r.Time) {
			t.Fatalf("record %d of %d is lost", i, len(before))
		}
	}
	if all := keys(recs); len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Fatalf("a record is there twice:\n%s", strings.Join(all, "\n"))
	}
	return recs
}

// keys returns the sorted keys of records.
func keys(recs []record.Record) []string {
	var list []string
	for i := range recs {
		list = append(list, recs[i].Key())
	}
	slices.Sort(list)
	return list
}
