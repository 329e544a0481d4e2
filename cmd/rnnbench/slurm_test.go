//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/record/merge"
)

// nap is how long a run sleeps. A point has three runs, one of them to check the answer.
const nap = 200 * time.Millisecond

// sleepyGrid returns a sweep of n points of one technique, each of which sleeps 0.6 s.
func sleepyGrid(points int) string {
	return fmt.Sprintf("sweep -H 1:%d:1 -B 1 -T 1 --impl naive --rounds 2 --max-rounds 2 --warmup 0s --min-time 0s --min-iters 1 --threads 1 --isolate on", points)
}

// TestSlurm submits shards to a real Slurm of six nodes, which scripts/slurm-test starts on this
// machine. Four nodes measure faster than one, and nothing is lost: not by a node that is
// killed, nor by a job that is asked to end, nor by one that comes near its time limit.
func TestSlurm(t *testing.T) {
	if os.Getenv("SLURM_TEST") == "" {
		t.Skip("scripts/slurm-test starts a cluster and runs it")
	}
	t.Chdir(t.TempDir())
	t.Setenv(beProgram, "1")
	t.Setenv(sleepVariable, nap.String())
	const points = 140
	grid := sleepyGrid(points)

	// One node measures during all that follows.
	rnnbench(t, "submit slurm --shards 1 --name one --sbatch=--nodelist=v5 -- "+grid).want(t, exit.Done, nil, []string{"1 shard\n"})
	start := time.Now()
	rnnbench(t, "submit slurm --shards 4 --name four --sbatch=--exclude=v5,v6 -- "+grid).want(t, exit.Done, nil, []string{"4 shards\n", " merges them"})
	began := time.Now()
	waitFor(t, "shards that run", func() bool { return done(t, "four") >= 4 })
	rnnbench(t, grid+" --out out/four --shard 2/4").want(t, exit.Error, nil, []string{"shard 2/4 is being measured by process "})
	rnnbench(t, "submit status four").want(t, exit.Done, []string{"running", "v1", "v4"}, []string{"4 shards: 4 running"})
	waitFor(t, "the end of all shards", func() bool { return ended(t, "four", 4) })
	four := time.Since(began)
	mergedBy(t, "four", points)
	ratio := speedUp(t, "four", 4, points)
	t.Logf("%.1f s on four nodes: %.2f times as fast as one node at their pace", four.Seconds(), ratio)
	if ratio <= 1 { // a busy machine may hold up one of them, so no larger number is certain
		t.Errorf("four nodes are %.2f times as fast as one at their pace: they took turns", ratio)
	}

	limited := limit(t)
	lose(t)
	limited()

	waitFor(t, "the end of one node", func() bool { return ended(t, "one", 1) })
	one := time.Since(start)
	mergedBy(t, "one", points)
	alike(t, "out/one", "out/four")
	t.Logf("%.1f s on one node, %.1f s on four: %.2f times as fast, which depends on how busy the machine was", one.Seconds(), four.Seconds(), one.Seconds()/four.Seconds())
	if asleep := points * 3 * nap; one < asleep {
		t.Errorf("one node took %v, less than the %v that its points sleep", one, asleep)
	}
}

// speedUp is how many times as fast shards measured a run of so many points as one node would have,
// had it taken as long for each record as they did. Shards that take turns, or measure what others measure, are
// no faster. Each must have an equal share of the points.
func speedUp(t *testing.T, name string, shards, points int) float64 {
	t.Helper()
	var begun, done time.Time
	var spent time.Duration
	records := 0
	for shard := 1; shard <= shards; shard++ {
		found, err := filepath.Glob(fmt.Sprintf("out/%s/*-%d-of-*/manifest.json", name, shard))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		m, err := record.ReadManifest(filepath.Dir(found[0]))
		if err != nil || m.Finished == nil {
			t.Fatalf("shard %d has not finished: %v", shard, err)
		}
		if begun.IsZero() || m.Started.Before(begun) {
			begun = m.Started
		}
		if m.Finished.After(done) {
			done = *m.Finished
		}
		spent += m.Finished.Sub(m.Started)
		own := len(lines(t, name, shard))
		if records += own; own < points/shards || own > points/shards+1 { // each shard also measures the first point
			t.Errorf("shard %d has %d of %d records: %d shards should have equal shares", shard, own, points, shards)
		}
		t.Logf("shard %d began %.1f s after the first and took %.1f s for %d records", shard, m.Started.Sub(begun).Seconds(), m.Finished.Sub(m.Started).Seconds(), own)
	}
	return spent.Seconds() / float64(records) * float64(points) / done.Sub(begun).Seconds()
}

// TestSpeedUpOfTurns: shards that take turns are no faster than one node, whatever the machine is busy with.
func TestSpeedUpOfTurns(t *testing.T) {
	t.Chdir(t.TempDir())
	for shard := 1; shard <= 2; shard++ {
		rnnbench(t, fmt.Sprintf("sweep -H 8,16,24,32 -B 2 -T 3 --impl naive%s --out out/turns --shard %d/2", quickly, shard)).want(t, exit.Done, nil, nil)
	}
	if ratio := speedUp(t, "turns", 2, 4); !(ratio > 0 && ratio <= 1) {
		t.Errorf("two shards that took turns are %.2f times as fast as one node", ratio)
	}
}

// lose kills a node, whose job Slurm requeues. It also asks the job of another shard to end, and a
// retry continues that shard.
func lose(t *testing.T) {
	const points = 48
	grid := sleepyGrid(points)
	job := submitted(t, rnnbench(t, "submit slurm --shards 4 --name lost --sbatch=--exclude=v5,v6 -- "+grid))
	waitFor(t, "records of each shard", func() bool { return done(t, "lost") >= 8 })
	before := []record.Record{}
	for shard := 1; shard <= 4; shard++ {
		before = append(before, lines(t, "lost", shard)...)
	}
	slurm(t, "scancel", "--batch", "--signal=TERM", job+"_3")
	node := slurm(t, "squeue", "--noheader", "--jobs="+job+"_2", "--format=%N")
	killNode(t, node)
	slurm(t, "scontrol", "update", "nodename="+node, "state=down", "reason=killed")
	waitFor(t, "the end of the other shards", func() bool {
		parts := partsOf(t, "lost")
		return parts[1].State == record.ShardDone && parts[4].State == record.ShardDone && parts[3].Exit != nil
	})
	if code := *partsOf(t, "lost")[3].Exit; code != exit.Interrupted {
		t.Errorf("the shard that was asked to end has exit code %d", code)
	}
	slurm(t, "scontrol", "update", "jobid="+job+"_2", "starttime=now") // Slurm holds a requeued job back for two minutes
	waitFor(t, "the end of the requeued shard", func() bool { return partsOf(t, "lost")[2].State == record.ShardDone })
	waitFor(t, "the state of the ended jobs", func() bool {
		o := rnnbench(t, "submit status lost")
		return o.code == exit.Failures && strings.Contains(o.errors, "4 shards: 3 done, 1 failed") && strings.Contains(o.out, "failed")
	})
	rnnbench(t, "submit status lost --retry").want(t, exit.Done, nil, []string{": 1 shard\n"})
	waitFor(t, "the end of the retry", func() bool { return ended(t, "lost", 4) })
	mergedBy(t, "lost", points)
	rnnbench(t, "submit status lost").want(t, exit.Done, nil, []string{"4 shards: 4 done"})
	slurm(t, "scontrol", "update", "nodename="+node, "state=resume")

	after := []record.Record{}
	for shard := 1; shard <= 4; shard++ {
		list := lines(t, "lost", shard)
		kept(t, nil, list)
		after = append(after, list...)
	}
	for _, r := range before {
		if !slices.ContainsFunc(after, func(x record.Record) bool { return x.Key() == r.Key() && x.Time.Equal(r.Time) }) {
			t.Errorf("a record of %s is lost", r.Point)
		}
	}
	if nodes := partsOf(t, "lost")[2].Nodes; len(nodes) != 2 || nodes[0] != node {
		t.Errorf("the shard of the killed node %s has records by %v", node, nodes)
	}
}

// limit runs a job on a node of its own and sets its time limit once it has a record. The returned function waits
// for the job's end and continues the job. Slurm looks for jobs near their limit every 30 seconds. It finds this one
// at once, since the job asks for a warning as long before the limit as the limit is away. The job has that
// time to end, and more points than it can measure within the time of all tests.
func limit(t *testing.T) (wait func()) {
	const points, warning = 1000, 10 * time.Minute
	late := submitted(t, rnnbench(t, fmt.Sprintf("submit slurm --shards 1 --time 1h --name late --sbatch=--nodelist=v6 --sbatch=--signal=B:TERM@%.0f -- %s",
		warning.Seconds(), sleepyGrid(points))))
	waitFor(t, "a record of the job with a time limit", func() bool { return done(t, "late") > 0 })
	before := lines(t, "late", 1)
	slurm(t, "scontrol", "update", "jobid="+late+"_1", fmt.Sprintf("endtime=now+%.0fseconds", warning.Seconds()))
	return func() {
		waitFor(t, "the end of the job after a warning", func() bool { return partsOf(t, "late")[1].Exit != nil })
		p := partsOf(t, "late")[1]
		if *p.Exit != exit.Interrupted || p.Done == points {
			t.Errorf("%+v", p)
		}
		warned := lines(t, "late", 1)
		t.Logf("the job had %d records when its limit was set, and %d at its end", len(before), len(warned))
		kept(t, before, warned)
		waitFor(t, "the state of the interrupted job", func() bool {
			o := rnnbench(t, "submit status late")
			return o.code == exit.Failures && strings.Contains(o.out, "failed") && strings.Contains(o.out, "interrupted")
		})
		again := submitted(t, rnnbench(t, "submit status late --retry"))
		waitFor(t, "a further record of the job", func() bool { return done(t, "late") > len(warned) })
		kept(t, warned, lines(t, "late", 1))
		slurm(t, "scancel", again)
	}
}

// done returns how many records the shards of a submission have.
func done(t *testing.T, name string) (n int) {
	t.Helper()
	for _, p := range partsOf(t, name) {
		n += p.Done
	}
	return n
}

// ended reports whether all shards of a submission are done.
func ended(t *testing.T, name string, shards int) bool {
	t.Helper()
	n := 0
	for _, p := range partsOf(t, name) {
		if p.State == record.ShardDone && p.Exit != nil {
			n++
		}
	}
	return n == shards
}

// partsOf returns the progress of a submission's shards, by index.
func partsOf(t *testing.T, name string) map[int]record.Part {
	t.Helper()
	parts, err := merge.Parts(filepath.Join("out", name))
	if err != nil {
		t.Fatal(err)
	}
	byIndex := map[int]record.Part{}
	for s, p := range parts {
		byIndex[s.Index] = p
	}
	return byIndex
}

// lines returns all lines of a shard's records.
func lines(t *testing.T, name string, shard int) []record.Record {
	t.Helper()
	found, err := filepath.Glob(fmt.Sprintf("out/%s/*-%d-of-*/records.jsonl", name, shard))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	recs, _, err := record.ReadRecords(bytes.NewReader(text), found[0])
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// mergedBy waits for the job that merges, and fails unless the run has every point.
func mergedBy(t *testing.T, name string, points int) {
	t.Helper()
	waitFor(t, "the merge of "+name, func() bool {
		m, recs, _, err := record.Read(filepath.Join("out", name))
		return err == nil && m.Merged != nil && m.Merged.Complete() && len(recs) == points
	})
}

// waitFor waits until so returns true; what names the condition.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	start := time.Now()
	for ; !so(); time.Sleep(100 * time.Millisecond) {
		if time.Since(start) > 240*time.Second {
			out, _ := exec.Command("squeue", "--array", "--states=all").CombinedOutput() // as much as it says
			t.Fatalf("%s did not come:\n%s", what, out)
		}
	}
	t.Logf("%s: after %.1f s", what, time.Since(start).Seconds())
}

// submitted returns the number of the submitted job array.
func submitted(t *testing.T, o outcomeOf) string {
	t.Helper()
	o.want(t, exit.Done, nil, []string{"job "})
	m := regexp.MustCompile(`job (\d+): `).FindStringSubmatch(o.errors)
	if m == nil {
		t.Fatalf("no job in %s", o.errors)
	}
	return m[1]
}

// slurm runs a command of Slurm.
func slurm(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// killNode kills the daemon of a node and all processes that it started, as a loss of power
// would. It kills only processes whose environment is of this cluster.
func killNode(t *testing.T, node string) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	of := func(dir, name string) string { text, _ := os.ReadFile(filepath.Join(dir, name)); return string(text) } // "": it has ended
	var daemons, jobs []int
	for _, dir := range found {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || !strings.Contains(of(dir, "environ"), "SLURM_TEST="+os.Getenv("SLURM_TEST")+"\x00") {
			continue
		}
		command := of(dir, "cmdline")
		switch {
		case strings.Contains(command, "slurmd") && strings.Contains(command, "\x00-N\x00"+node+"\x00"):
			daemons = append(daemons, pid)
		case strings.Contains(of(dir, "environ"), "SLURMD_NODENAME="+node+"\x00"):
			jobs = append(jobs, pid)
			stat := strings.Fields(of(dir, "stat"))
			parent := "0"
			if len(stat) > 3 {
				parent = stat[3]
			}
			if strings.Contains(of(filepath.Join("/proc", parent), "cmdline"), "slurmstepd") { // which would tell of the job's end
				if p, err := strconv.Atoi(parent); err == nil {
					daemons = append(daemons, p)
				}
			}
		}
	}
	if len(daemons) < 2 || len(jobs) == 0 {
		t.Fatalf("node %s has the daemons %v and the jobs %v", node, daemons, jobs)
	}
	for _, pid := range slices.Concat(daemons, jobs) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have gone with its parent
	}
}
