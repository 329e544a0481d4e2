package campaign

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/search"
	"rnnbench/tuner/wisdom"
)

// points is an agenda of two small points.
func points() agenda.Agenda {
	at := record.Point{Cell: "lstm", Pass: "forward", Hidden: 8, Input: 8, Layers: 1, Batch: 2, Steps: 3, Precision: "fp32"}
	next := at
	next.Steps = 4
	return agenda.Agenda{Parts: []agenda.Part{{Points: []record.Point{at, next}, Specs: []grid.Spec{{Name: "naive", Label: "naive"}, {Name: "cudnnstyle", Label: "cudnnstyle"}}}}}
}

// campaign makes a campaign of two points in a folder. It also returns the verdicts it reported.
func campaign(t *testing.T, dir string) (*Campaign, *[]*tuner.Verdict) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	m := config.Default()
	m.MinTime, m.Warmup, m.MinIters = 0, 0, 1
	var told []*tuner.Verdict
	q := points()
	return &Campaign{
		Tune: &tuner.Tune{
			Sweep:  tuner.Sweep{Device: d, Techniques: impl.All(), Settings: m},
			Search: search.Options{Strategy: "racing", Rounds: 3, Tie: 0.01},
		},
		Agenda: q, Book: &wisdom.Book{}, Path: filepath.Join(dir, "w.toml"), Cache: "hot", Tool: "1",
		Begin: func() (*record.Run, error) {
			return record.Create(dir, record.Manifest{Devices: []record.Device{{Key: d.Info().Key, Facts: map[string]string{"workers": "1"}}}, Scope: q.Scope()})
		},
		Tuned: func(v *tuner.Verdict) { told = append(told, v) },
	}, &told
}

// TestCampaign: a campaign saves records, winners and wisdom, and a second one measures nothing again.
func TestCampaign(t *testing.T) {
	dir := t.TempDir()
	s, told := campaign(t, dir)
	if err := s.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(*told) != 2 || s.Winners.Tuned() != 2 || !s.Winners.Complete() || !s.Kept || s.Run == nil || len(s.Records) != 4 {
		t.Fatalf("%d verdicts, %d records: %+v", len(*told), len(s.Records), s.Winners)
	}
	if m := s.Run.Manifest(); len(m.Winners) != 2 || m.Winners[0].Run != m.Run {
		t.Errorf("winners of the manifest: %+v", m.Winners)
	}
	b, err := wisdom.Read(s.Path)
	if err != nil || len(b.Entries) != 2 {
		t.Fatalf("wisdom: %+v, %v", b, err)
	}
	if err := s.Run.Finish(0); err != nil {
		t.Fatal(err)
	}

	again, _ := campaign(t, dir)
	y := &Memory{Measure: again.Tune.Settings, Device: s.Run.Manifest().Devices[0].Key, Libraries: map[string]string{"workers": "1"}, Tool: s.Run.Manifest().Environment.Tool, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	y.ReadAll(dir)
	again.Known, again.Path = y.Records(), ""
	if err := again.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again.Run != nil || again.Kept || again.Winners.Tuned() != 2 {
		t.Errorf("measured again: %+v", again.Winners)
	}
	if rows := again.Winners.Table().Rows; len(rows) != 2 || !strings.Contains(rows[0][12].Text, "known before") {
		t.Errorf("%v", rows)
	}
}

// TestCampaignStops: a campaign stops at a budget and at an interruption. Winners of Instead are no wisdom.
func TestCampaignStops(t *testing.T) {
	s, _ := campaign(t, t.TempDir())
	s.Budget = 1
	if err := s.Do(t.Context()); err != tuner.ErrBudget {
		t.Errorf("a budget of 1ns: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s.Budget = time.Hour; s.Do(ctx) != context.Canceled {
		t.Error("an interrupted campaign went on")
	}
	s.Instead = func(ctx context.Context, at record.Point, specs []grid.Spec) (*tuner.Verdict, error) {
		return s.Tune.Tune(ctx, at, specs, record.Impl{})
	}
	if err := s.Do(t.Context()); err != nil || s.Kept || s.Winners.Tuned() != 2 {
		t.Errorf("%v: %+v", err, s.Winners)
	}
	if _, err := os.Stat(s.Path); err == nil {
		t.Error("wisdom was kept of what is none")
	}
	n := 0
	list, err := s.Candidates(t.Context(), func(int) { n++ })
	if err != nil || n != 2 || list.Points() != 2 {
		t.Errorf("%d points of %d, %v", list.Points(), n, err)
	}
}

// TestMemory: only records from the same environment, measured in the same way, are known.
func TestMemory(t *testing.T) {
	m := record.Manifest{Devices: []record.Device{{Key: "cpu-x", Facts: map[string]string{"workers": "2"}}}}
	y := &Memory{Measure: config.Default(), Device: "cpu-x", Libraries: map[string]string{"workers": "2"}}
	if !y.holds(m) {
		t.Error("its own environment is another")
	}
	for what, change := range map[string]func(*Memory){
		"device":   func(y *Memory) { y.Device = "cpu-y" },
		"library":  func(y *Memory) { y.Libraries = map[string]string{"workers": "3"} },
		"version":  func(y *Memory) { y.Tool.Version = "2" },
		"revision": func(y *Memory) { y.Tool.Revision = "abc" },
	} {
		other := *y
		if change(&other); other.holds(m) {
			t.Errorf("another %s is the same environment", what)
		}
	}
	rec := func(hidden int, status record.Status, seed uint64) record.Record {
		return record.Record{Point: record.Point{Hidden: hidden}, Status: status, Mode: record.Mode{Cache: y.Measure.Cache, Data: y.Measure.Data, Seed: seed}}
	}
	y.RetryFailed = true
	y.add([]record.Record{rec(8, record.OK, y.Measure.Seed), rec(16, record.OK, y.Measure.Seed+1), rec(24, record.Failed, y.Measure.Seed)})
	if len(y.Records()) != 1 {
		t.Errorf("%d records are known", len(y.Records()))
	}
}

// TestReplay searches among records of a run, and puts the winners into the book.
func TestReplay(t *testing.T) {
	rec := func(name string, hidden int, seconds float64) record.Record {
		wall := []float64{seconds, seconds, seconds, seconds}
		st, _ := record.Summarize(wall, 0)
		return record.Record{
			Point: record.Point{Hidden: hidden}, Device: "cpu-x", Impl: record.Impl{Name: name, Label: name}, Status: record.OK,
			Mode: record.Mode{Cache: "hot"}, Samples: &record.Samples{Wall: wall}, Stats: &st, Verify: &record.Verify{OK: true}, Run: "r",
		}
	}
	recs := []record.Record{rec("naive", 8, 2), rec("scan", 8, 1), rec("naive", 16, 1), rec("scan", 16, 2), rec("naive", 24, 1)}
	recs[4].Verify = nil
	if n := Unverified(recs); n != 1 {
		t.Errorf("%d are unverified", n)
	}
	list, candidates := Recorded(recs)
	if list.Points() != 3 || candidates != 5 {
		t.Errorf("%d candidates at %d points", candidates, list.Points())
	}
	y := &Replay{
		Sets:   []record.Set{{Manifest: record.Manifest{Run: "other"}}, {Manifest: record.Manifest{Run: "r", Devices: []record.Device{{Key: "cpu-x", Facts: map[string]string{"simd": "avx2"}}}}}},
		Book:   &wisdom.Book{},
		Search: search.Options{Strategy: "exhaustive", Rounds: 4},
	}
	if err := y.Do(t.Context(), recs); err != nil {
		t.Fatal(err)
	}
	if len(y.Found) != 2 || y.Found[0].Impl != "scan" || y.Found[1].Impl != "naive" || y.Found[0].Libraries["simd"] != "avx2" || len(y.Book.Entries) != 2 {
		t.Errorf("found %+v", y.Found)
	}
	if notes := y.Winners.Table().Notes; len(notes) == 0 || !strings.HasPrefix(notes[0], "exhaustive: within 3 % of the fastest at 2 of 2 points (100.0 %)") {
		t.Errorf("%q", notes)
	}
}
