package merge

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/record"
)

// The tests divide an agenda of six points of one technique among three shards. The control point has 8
// units and belongs to the first shard. at is a point of that agenda.
func at(hidden int) record.Point {
	return record.Point{Cell: "lstm", Pass: "forward", Precision: "fp32", Hidden: hidden, Input: hidden, Batch: 1, Steps: 1, Layers: 1}
}

func newRecord(hidden int, seconds float64) record.Record {
	lo, hi := 0.99*seconds, 1.01*seconds
	return record.Record{
		Point: at(hidden), Impl: record.Impl{Name: "naive"}, Device: "cpu-x", Status: record.OK,
		Stats: &record.Stats{N: 6, Min: lo, Median: seconds, Max: hi, Lo: &lo, Hi: &hi},
	}
}

func manifest(index int) record.Manifest {
	p := record.Scope{Hash: "abc", Points: 3, Records: 3, Summary: "six points; shard " + fmt.Sprintf("%d/3", index)}
	if index == 1 {
		p.Points, p.Records = 2, 2
	}
	p.Shard = &record.Shard{Index: index, Count: 3, Of: "run", Points: 6, Records: 6, Own: 2, Control: at(8)}
	return record.Manifest{
		Argv: []string{"rnnbench", "sweep", "--shard", fmt.Sprintf("%d/3", index)}, Scope: p,
		Devices: []record.Device{{Key: "cpu-x", Facts: map[string]string{"simd": "avx2", "rival pytorch": "1"}}},
	}
}

// shard writes a shard from a node that is slower by the factor slow. It is finished unless exit is
// negative.
func shard(t *testing.T, dir string, index int, slow float64, exit int, change func(*record.Manifest)) *record.Run {
	t.Helper()
	m := manifest(index)
	if change != nil {
		change(&m)
	}
	r, err := record.Claim(dir, record.ShardFolder(*m.Scope.Shard), m)
	if err != nil {
		t.Fatal(err)
	}
	word := m.Scope.Shard.String()
	r.On(record.Node{Name: fmt.Sprintf("v%d", index), Shard: &word})
	sizes := []int{8, 8 + 100*index, 9 + 100*index}
	if index == 1 {
		sizes = sizes[:2]
	}
	for _, h := range sizes {
		rec := newRecord(h, slow*1e-3)
		if err := r.Append(&rec); err != nil {
			t.Fatal(err)
		}
	}
	if exit >= 0 {
		if err := r.Finish(exit); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func write(t *testing.T, dir string) (string, record.Manifest) {
	t.Helper()
	g, err := Read([]string{dir}, iterations)
	if err != nil {
		t.Fatal(err)
	}
	path, m, err := g.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	return path, m
}

// contents returns the contents of all files in a folder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all bytes.Buffer
	for _, name := range []string{"manifest.json", "records.jsonl", "control.jsonl"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestMerge merges before all shards exist, and again. Missing shards are named, and every record
// occurs once. A second merge changes nothing, and the records of a deleted shard stay.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	shard(t, dir, 1, 1, 0, nil)
	running := shard(t, dir, 3, 1.5, -1, nil)
	_, m := write(t, dir)
	if gaps := m.Merged.Gaps(); m.Merged.Complete() || m.Finished != nil || len(gaps) != 2 || gaps[0] != "no run was given of 1 of 3 shards: 2" ||
		gaps[1] != "shard 3/3 is being measured: it has 3 of 3 records" {
		t.Errorf("%q", gaps)
	}
	if err := running.Finish(0); err != nil {
		t.Fatal(err)
	}
	shard(t, dir, 2, 1, 0, nil)
	path, m := write(t, dir)
	if !m.Merged.Complete() || m.Merged.Gaps() != nil || m.Scope.Records != 6 || m.Scope.Summary != "six points" || m.Scope.Shard != nil || *m.Exit != 0 || !slices.Equal(m.Argv, []string{"rnnbench", "sweep"}) {
		t.Errorf("%+v", m)
	}
	_, recs, warnings, err := record.Read(dir) // the merged run is the latest
	if err != nil || warnings != nil || len(recs) != 6 {
		t.Errorf("%d records, %v, %v", len(recs), warnings, err)
	}
	for i, r := range recs {
		if r.Run != "run" || r.Seq != i || r.Node == nil || r.Point.Hidden == 8 && r.Node.Name != "v1" {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	if got := m.Merged.Differ(); !slices.Equal(got, []string{"v3"}) {
		t.Errorf("%v differ: %v", got, m.Merged.Lines())
	}
	before := contents(t, path)
	if write(t, dir); contents(t, path) != before {
		t.Error("a second merge changed the run")
	}
	if err := os.RemoveAll(filepath.Join(dir, "run-2-of-3")); err != nil {
		t.Fatal(err)
	}
	if write(t, dir); contents(t, path) != before {
		t.Error("a merge without a shard of before changed the run")
	}
	again, err := record.Resume(path)
	if err != nil {
		t.Fatalf("a merged run cannot be resumed: %v", err)
	}
	g, err := Read([]string{dir}, iterations)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := g.Write(dir); err == nil || !strings.Contains(err.Error(), "is being written by process") {
		t.Errorf("merged into a run that is being written: %v", err)
	}
	if err := again.Finish(0); err != nil {
		t.Fatal(err)
	}
}

// TestRefused: shards that do not belong together are refused.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*record.Manifest){
		"the plan is abc (six points; shard 1/3) in one and def": func(m *record.Manifest) { m.Scope.Hash = "def" },
		"the device is cpu-x in one and cpu-y in the other":      func(m *record.Manifest) { m.Devices[0].Key = "cpu-y" },
		"rival pytorch is 1 in one and 2 in the other":           func(m *record.Manifest) { m.Devices[0].Facts["rival pytorch"] = "2" },
		"the instruction set is avx2 in one and avx512":          func(m *record.Manifest) { m.Devices[0].Facts["simd"] = "avx512" },
		"the version of rnnbench is  in one and 2 in the other":  func(m *record.Manifest) { m.Environment.Tool.Version = "2" },
		"the number of shards is 3 in one and 4 in the other":    func(m *record.Manifest) { m.Scope.Shard.Count = 4 },
		"are both shard 1/3: omit one":                           func(m *record.Manifest) { m.Scope.Shard.Index, m.Scope.Shard.Of = 1, "other" },
		"is no shard: its manifest is damaged":                   func(m *record.Manifest) { m.Scope.Shard.Of = "a" + string(filepath.Separator) + "b" },
	} {
		dir := t.TempDir()
		if strings.Contains(want, "damaged") {
			if err := os.MkdirAll(filepath.Join(dir, "a"), 0o777); err != nil {
				t.Fatal(err)
			}
			r := shard(t, dir, 2, 1, 0, change)
			if _, err := Read([]string{r.Dir()}, iterations); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			continue
		}
		shard(t, dir, 1, 1, 0, nil)
		shard(t, dir, 2, 1, 0, change)
		if _, err := Read([]string{dir}, iterations); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	dir := t.TempDir()
	whole, err := record.Create(dir, record.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{whole.Dir(): "is no shard: its plan was not divided", dir: "is no shard and holds none", filepath.Join(dir, "x"): "nothing to read at"} {
		if _, err := Read([]string{path}, iterations); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestOverlap: shards that both measured a point are refused.
func TestOverlap(t *testing.T) {
	dir := t.TempDir()
	shard(t, dir, 1, 1, 0, nil)
	r := shard(t, dir, 2, 1, -1, nil)
	rec := newRecord(108, 1e-3)
	if err := r.Append(&rec); err != nil {
		t.Fatal(err)
	}
	if _, err := Read([]string{dir}, iterations); err == nil || !strings.Contains(err.Error(), "overlap: both measured lstm forward H=108") {
		t.Error(err)
	}
}

// TestStates says how far shards are.
func TestStates(t *testing.T) {
	more := func(m *record.Manifest) { m.Scope.Records++ }
	for want, s := range map[string]struct {
		exit   int
		change func(*record.Manifest)
	}{
		"":                     {0, nil},
		"ended with exit code": {1, more},
		"ended early":          {0, more},
	} {
		dir := t.TempDir()
		shard(t, dir, 2, 1, s.exit, s.change)
		_, m := write(t, dir)
		gaps := m.Merged.Gaps()[1:]
		if want == "" && len(gaps) > 0 || want != "" && (len(gaps) != 1 || !strings.Contains(gaps[0], want)) {
			t.Errorf("%q, want %q", gaps, want)
		}
	}
}

// TestNodes: a difference on which techniques disagree is noise. A machine without the control point is
// named.
func TestNodes(t *testing.T) {
	on := func(node string, impl string, seconds float64) record.Record {
		r := newRecord(8, seconds)
		word := "1/3"
		r.Impl.Name, r.Node = impl, &record.Node{Name: node, Shard: &word}
		return r
	}
	controls := []record.Record{on("a", "x", 1), on("b", "x", 1.4), on("c", "x", 1), on("a", "y", 1), on("b", "y", 0.7), on("c", "y", 1)}
	list := Nodes(append(controls, on("d", "x", 1)), controls)
	if len(list) != 4 || list[1].Differs() || list[3].Ratio != nil || !strings.Contains(list[3].String(), "no control point") {
		t.Errorf("%v", list)
	}
	controls[4].Stats.Median = 1.4
	if list = Nodes(controls, controls); !list[1].Differs() || list[0].Differs() {
		t.Errorf("%v", list)
	}
}

// iterations reads a checkpoint of these tests: a number of iterations and a word.
func iterations(path string) (n int, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		_, err = fmt.Sscan(string(text), &n)
	}
	return n, err
}

// TestCheckpoints: a merged run takes the shards' checkpoints, whatever the times of files. It keeps one of
// its own that was saved after more iterations, and leaves out one that is ahead of the records.
func TestCheckpoints(t *testing.T) {
	dir := t.TempDir()
	a, b := shard(t, dir, 1, 1, 0, nil), shard(t, dir, 2, 1, 0, nil)
	file := func(run string, number int, text string, age time.Duration) {
		t.Helper()
		path := record.Checkpoint(run, number)
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) { // checkpoints are replaced, not changed
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if when := time.Now().Add(-age); os.Chtimes(path, when, when) != nil {
			t.Fatal("the time of a file cannot be set")
		}
	}
	file(a.Dir(), 1, "10 first", time.Minute)
	file(a.Dir(), 3, "10 by a clock that is ahead", -time.Hour)
	file(b.Dir(), 2, "10 second", time.Minute)
	file(b.Dir(), 4, "10 before", time.Minute)
	file(b.Dir(), 6, "damaged", time.Minute)
	g, err := Read([]string{dir}, iterations)
	if err != nil || len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0].String(), "checkpoint-6.npz: the checkpoint is left out") {
		t.Fatal(g, err)
	}
	file(b.Dir(), 4, "20 ahead of the records", time.Minute)
	file(b.Dir(), 5, "10 new", time.Minute)
	path, _, err := g.Write(dir)
	if want := []string{record.Checkpoint(b.Dir(), 4), record.Checkpoint(b.Dir(), 5)}; err != nil || !slices.Equal(g.Ahead, want) {
		t.Errorf("%v is ahead, %v; want %v", g.Ahead, err, want)
	}
	want := func(number int, text string) {
		t.Helper()
		if got, err := os.ReadFile(record.Checkpoint(path, number)); string(got) != text || text == "" && !os.IsNotExist(err) {
			t.Errorf("checkpoint %d is %q, want %q: %v", number, got, text, err)
		}
	}
	want(1, "10 first")
	want(2, "10 second")
	want(3, "10 by a clock that is ahead")
	for _, number := range []int{4, 5, 6} {
		want(number, "")
	}
	file(path, 2, "30 trained on", time.Hour) // by a clock that is behind
	file(a.Dir(), 1, "20 first, again", 2*time.Hour)
	write(t, dir)
	want(1, "20 first, again")
	want(2, "30 trained on")
	want(4, "20 ahead of the records")
	want(5, "10 new")
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 8 {
		t.Errorf("%v, %v: want 3 files and 5 checkpoints", entries, err)
	}
}
