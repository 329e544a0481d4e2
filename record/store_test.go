package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func ptr[T any](v T) *T { return &v }

// sample is a record with every part set.
func sample(hidden int) Record {
	r := Record{
		Point: Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Input: hidden, Batch: 2, Steps: 3, Layers: 1, Precision: "fp32"},
		Impl:  Impl{Name: "naive", Label: "naive", Knobs: map[string]int{"fused": 1}, Streams: 1}, Device: "cpu-test",
		Mode:   Mode{Order: "interleaved", Cache: "hot", Timer: "wall", Data: "normal", Seed: math.MaxUint64},
		Status: OK, Warnings: []string{WarnNoisy},
		Work:    Work{Model: "products", Flops: 48, Executed: 60, Bytes: 100, Memory: 200, Ops: 5, Waits: 1},
		Samples: &Samples{Iters: []int{3, 3}, Wall: []float64{1e-3, 2e-3}},
		Rate:    &Rate{Flops: 32e3, Bytes: 66e3, Peak: ptr(1e9), Percent: ptr(0.0032), Source: "measured"},
		Verify:  &Verify{Reference: "float64", Tensor: "y", MaxAbs: 1e-7, Error: 1e-7, Tolerance: 1e-5, Sequences: 2, Steps: 3, OK: true, Method: VerifyPeer, Share: 1, Peer: "naive", Partial: []string{"c_l0"}},
		Cost:    Cost{Setup: 1, Verify: 2, Warmup: 3, Measure: 4},
	}
	s, _ := Summarize(r.Samples.Wall, 0.01)
	s.Stop = "max_rounds"
	r.Stats = &s
	return r
}

func skipped(hidden int) Record {
	return Record{
		Point: Point{Cell: "gru", Pass: "train", Hidden: hidden, Input: hidden, Batch: 2, Steps: 3, Layers: 1, Precision: "bf16"},
		Impl:  Impl{Name: "scan", Label: "scan"}, Device: "cpu-test", Mode: Mode{Order: "random", Cache: "cold", Timer: "event"},
		Status: Skipped, ReasonCode: ptr(ReasonShape), Reason: ptr("a gru is not linear"),
		Work: Work{Model: "products"},
	}
}

// create makes a run with n records in a new folder.
func create(t *testing.T, n int) *Run {
	t.Helper()
	run, err := Create(t.TempDir(), Manifest{Label: "test", Devices: []Device{{Key: "CPU Xeon®/2t"}}, Config: json.RawMessage(`{"a":[1,2]}`)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		rec := sample(i + 1)
		if err := run.Append(&rec); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

func mustRead(t *testing.T, path string, wantWarnings int) (Manifest, []Record) {
	t.Helper()
	m, records, warnings, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != wantWarnings {
		t.Fatalf("got %d warnings, want %d: %v", len(warnings), wantWarnings, warnings)
	}
	return m, records
}

func TestRoundTrip(t *testing.T) {
	run := create(t, 0)
	want := []Record{sample(1), skipped(2), sample(3)}
	for i := range want {
		if err := run.Append(&want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := run.Update(func(m *Manifest) { m.Scope = Scope{Hash: "abc", Points: 3, Records: 3, Summary: "3 points"} }); err != nil {
		t.Fatal(err)
	}
	if err := run.Finish(3); err != nil {
		t.Fatal(err)
	}
	if err := run.Append(&want[0]); err == nil {
		t.Error("a finished run takes records")
	}
	for _, path := range []string{run.Dir(), filepath.Join(run.Dir(), "records.jsonl"), filepath.Dir(run.Dir()), filepath.Join(run.Dir(), "manifest.json")} {
		m, got := mustRead(t, path, 0)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", path, got, want)
		}
		if !reflect.DeepEqual(m, run.Manifest()) {
			t.Errorf("%s: got %+v\nwant %+v", path, m, run.Manifest())
		}
		if *m.Exit != 3 || m.Counts[OK] != 2 || m.Counts[Skipped] != 1 || string(m.Config) != `{"a":[1,2]}` {
			t.Errorf("got %+v", m)
		}
	}
	if id := run.Manifest().Run; !regexp.MustCompile(`^\d{8}T\d{6}Z-cpu-xeon-2t-[0-9a-f]{4}$`).MatchString(id) {
		t.Errorf("the run is called %s", id)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(run.Dir()), "*tmp*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestCutAnywhere cuts the last line at every byte: the records before it are read, the run can be
// resumed, and only the lost point is measured again.
func TestCutAnywhere(t *testing.T) {
	run := create(t, 3)
	if err := run.Finish(0); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(run.Dir(), recordsFile)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	for cut := whole; cut <= len(data); cut++ {
		if err := os.WriteFile(file, data[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		wantRecords, wantWarnings := 2, 1
		if cut == whole {
			wantWarnings = 0
		} else if cut >= len(data)-1 {
			wantRecords, wantWarnings = 3, 0
		}
		if _, records := mustRead(t, run.Dir(), wantWarnings); len(records) != wantRecords {
			t.Fatalf("cut at %d: %d records", cut, len(records))
		}
		if cut > whole+1 && cut < len(data)-1 && cut%16 != 0 {
			continue // Resume waits for the disk
		}
		again, err := Resume(run.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if len(again.Warnings()) != wantWarnings {
			t.Fatalf("cut at %d: %v", cut, again.Warnings())
		}
		for i := range 3 {
			rec := sample(i + 1)
			if again.Done(rec.Key()) {
				continue
			}
			if i != 2 || wantRecords == 3 {
				t.Fatalf("cut at %d: record %d is lost", cut, i)
			}
			if err := again.Append(&rec); err != nil {
				t.Fatal(err)
			}
			if rec.Seq != 2 {
				t.Fatalf("cut at %d: seq is %d", cut, rec.Seq)
			}
		}
		if err := again.file.Close(); err != nil { // as if killed: without Finish
			t.Fatal(err)
		}
		if m, records := mustRead(t, run.Dir(), 0); len(records) != 3 || m.Finished != nil {
			t.Fatalf("cut at %d: %d records after Resume", cut, len(records))
		}
	}
}

// TestRetries: a record of a lost worker is measured again at every resumption. Other failed ones are
// measured again only on request, and once.
func TestRetries(t *testing.T) {
	run := create(t, 1)
	lost, failed := sample(7), sample(8)
	lost.Status, lost.ReasonCode = Failed, ptr(ReasonLost)
	failed.Status, failed.ReasonCode = Failed, ptr(ReasonError)
	if err := errors.Join(run.Append(&lost), run.Append(&failed), run.Finish(3)); err != nil {
		t.Fatal(err)
	}
	again, err := Resume(run.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if again.Done(lost.Key()) || !again.Done(failed.Key()) {
		t.Errorf("resumed: lost done %v, failed done %v", again.Done(lost.Key()), again.Done(failed.Key()))
	}
	again.RetryFailed()
	first := sample(1)
	if again.Done(failed.Key()) || !again.Done(first.Key()) {
		t.Error("what failed is not measured again, or what did not is")
	}
	if again.MeasureAgain([]string{first.Key()}); again.Done(first.Key()) {
		t.Error("a point that is to be measured again is done")
	}
	if err := again.Append(&first); err != nil || !again.Done(first.Key()) {
		t.Error("a point that was measured again is measured without end")
	}
	if err := again.Append(&failed); err != nil {
		t.Fatal(err)
	}
	if !again.Done(failed.Key()) {
		t.Error("what failed again is measured without end")
	}
	if err := again.Finish(3); err != nil {
		t.Fatal(err)
	}
}

func TestResume(t *testing.T) {
	run := create(t, 2)
	if _, err := Resume(run.Dir()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("a run that is being written is resumed: %v", err)
	}
	rec := sample(9)
	rec.Status, rec.ReasonCode = Failed, ptr(ReasonInterrupted)
	if err := run.Append(&rec); err != nil {
		t.Fatal(err)
	}
	if err := run.Finish(130); err != nil {
		t.Fatal(err)
	}
	again, err := Resume(filepath.Dir(run.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	if m := again.Manifest(); len(m.Resumed) != 1 || m.Exit != nil || m.Run != run.Manifest().Run {
		t.Errorf("got %+v", m)
	}
	if first := sample(1); !again.Done(first.Key()) || again.Done(rec.Key()) || again.Measured()[rec.Key()] != Failed {
		t.Errorf("got %v", again.Measured())
	}
	rec = sample(9)
	if err := again.Append(&rec); err != nil {
		t.Fatal(err)
	}
	if err := again.Finish(0); err != nil {
		t.Fatal(err)
	}
	m, records := mustRead(t, run.Dir(), 0)
	if len(records) != 3 || records[2].Status != OK || records[2].Seq != 3 || m.Counts[OK] != 3 {
		t.Errorf("the newest record does not win: %+v", records)
	}
}

func TestResumeRefuses(t *testing.T) {
	finished := func() (*Run, string) {
		run := create(t, 1)
		if err := run.Finish(0); err != nil {
			t.Fatal(err)
		}
		return run, filepath.Join(run.Dir(), recordsFile)
	}
	edit := func(file, old, new string) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte(old), []byte(new)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		want string
		harm func(run *Run, file string)
	}{
		{"rnnbench.record/3", func(_ *Run, file string) { edit(file, "record/2", "record/3") }},
		{"cannot be resumed, because its records have the older form rnnbench.record/1: start a new run without --resume", func(run *Run, file string) {
			edit(filepath.Join(run.Dir(), manifestFile), "record/2", "record/1")
			edit(file, "record/2", "record/1")
		}},
		{"rnnbench.manifest/7", func(run *Run, _ string) { edit(filepath.Join(run.Dir(), manifestFile), "manifest/1", "manifest/7") }},
		{"runs must not be mixed", func(run *Run, file string) { edit(file, run.Manifest().Run, "another-run") }},
		{"manifest.json", func(run *Run, _ string) { os.Remove(filepath.Join(run.Dir(), manifestFile)) }},
		{"neither a run", func(_ *Run, file string) { os.Remove(file) }},
	} {
		run, file := finished()
		c.harm(run, file)
		before, _ := os.ReadFile(file)
		again, err := Resume(run.Dir())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error about %s, got %v", c.want, err)
		}
		if again != nil {
			t.Errorf("%s: a run is returned with the error", c.want)
		}
		if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
			t.Errorf("%s: the records were changed", c.want)
		}
	}
}

func TestTwoRunsAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	runs := make([]*Run, 20)
	for i := range runs {
		wg.Go(func() {
			var err error
			if runs[i], err = Create(dir, Manifest{}); err != nil {
				t.Error(err)
				return
			}
			rec := sample(i + 1)
			if err := errors.Join(runs[i].Append(&rec), runs[i].Finish(0)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for i, run := range runs {
		m, records := mustRead(t, run.Dir(), 0)
		if seen[m.Run] || len(records) != 1 || records[0].Point.Hidden != i+1 {
			t.Errorf("run %s holds %+v", m.Run, records)
		}
		seen[m.Run] = true
	}
	mustRead(t, dir, 0)
}

func TestAppendFromGoroutines(t *testing.T) {
	run := create(t, 0)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			rec := sample(i + 1)
			if err := run.Append(&rec); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, records := mustRead(t, run.Dir(), 0); len(records) != 50 {
		t.Errorf("%d records", len(records))
	}
	if err := run.Finish(0); err != nil {
		t.Fatal(err)
	}
}

func TestUnwritable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "deeper")} {
		if _, err := Create(dir, Manifest{}); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v", dir, err)
		}
	}
	dir := t.TempDir() // "latest" cannot be replaced: nothing is left of the run
	if err := os.MkdirAll(filepath.Join(dir, latestFile, "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir, Manifest{}); err == nil {
		t.Error("a folder in place of the file was accepted")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// smallDisk is a file on a disk with few bytes left.
type smallDisk struct {
	file
	left  int
	stuck bool // Truncate fails too
}

func (d *smallDisk) WriteAt(p []byte, at int64) (int, error) {
	n, err := d.file.WriteAt(p[:min(len(p), d.left)], at)
	d.left -= n
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (d *smallDisk) Truncate(size int64) error {
	if d.stuck {
		return syscall.EIO
	}
	return d.file.Truncate(size)
}

func TestFullDisk(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		run := create(t, 2)
		disk := &smallDisk{file: run.file, left: 100, stuck: stuck}
		run.file = disk
		rec := sample(3)
		err := run.Append(&rec)
		if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "earlier records are safe") {
			t.Fatalf("got %v", err)
		}
		wantWarnings := 0
		if stuck {
			wantWarnings = 1
		}
		if _, records := mustRead(t, run.Dir(), wantWarnings); len(records) != 2 {
			t.Errorf("%d records are left", len(records))
		}
		disk.left = 1 << 20 // somebody made room
		if err := run.Append(&rec); (err != nil) != stuck {
			t.Errorf("with room again: %v", err)
		}
		if err := run.Finish(1); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFullDevice(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	run := create(t, 1)
	run.file.Close()
	run.file = full
	rec := sample(2)
	if err := run.Append(&rec); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	full.Close()
	if _, records := mustRead(t, run.Dir(), 0); len(records) != 1 {
		t.Errorf("%d records are left", len(records))
	}
}

func TestNotANumber(t *testing.T) {
	run := create(t, 0)
	for path, harm := range map[string]func(*Record){
		"stats.median":          func(r *Record) { r.Stats.Median = math.NaN() },
		"samples.wall_s[1]":     func(r *Record) { r.Samples.Wall[1] = math.Inf(1) },
		"rate.peak_flops_per_s": func(r *Record) { *r.Rate.Peak = math.Inf(-1) },
		"cost.setup_s":          func(r *Record) { r.Cost.Setup = math.NaN() },
	} {
		rec := sample(1)
		harm(&rec)
		if err := run.Append(&rec); err == nil || !strings.Contains(err.Error(), path+" is not a finite number") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if err := run.Finish(0); err != nil {
		t.Fatal(err)
	}
	mustRead(t, run.Dir(), 0)
}
