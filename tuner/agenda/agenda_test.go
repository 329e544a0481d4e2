package agenda

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// target is a processor on which the technique "open" stands for naive at 8 units and for cudnnstyle
// at other sizes.
func target() Target {
	return Target{
		Device: device.Info{Name: "cpu", Precision: []string{"fp32"}},
		Vocabulary: grid.Vocabulary{
			Words: grid.Words([]string{"lstm", "gilr"}),
			Impls: []string{"naive", "cudnnstyle", "scan", "open"}, All: []string{"naive", "cudnnstyle", "scan"},
		},
		Decide: func(p record.Point, s grid.Spec) (grid.Spec, error) {
			if s.Name == "open" {
				s.Name = "cudnnstyle"
				if p.Hidden == 8 {
					s.Name = "naive"
				}
			}
			return s, nil
		},
	}
}

// request is a grid of sizes and techniques.
func request(hidden, techniques string) grid.Request {
	return grid.Request{Axes: map[string]string{"hidden": hidden, "batch": "2", "steps": "3"}, Impl: []string{techniques}}
}

func TestNew(t *testing.T) {
	p, err := New(request("8,16,32", "naive,open"), target())
	if err != nil {
		t.Fatal(err)
	}
	if p.Points() != 3 || p.Records() != 6 || len(p.Specs()) != 6 || len(p.Tasks()) != 3 || !slices.Equal(p.Labels(), []string{"naive", "open"}) {
		t.Errorf("%d points, %d records, techniques %v", p.Points(), p.Records(), p.Labels())
	}
	if len(p.Parts) != 2 { // open stands for different techniques
		t.Errorf("%d parts: %+v", len(p.Parts), p.Parts)
	}
	r := request("8", "naive")
	r.Axes["precision"] = "bf16"
	if _, err := New(r, target()); err == nil || !strings.Contains(err.Error(), "device cpu supports only fp32") {
		t.Errorf("a precision that the device lacks: %v", err)
	}
}

// TestMismatch: the reason names what prevents resuming a run.
func TestMismatch(t *testing.T) {
	p, err := New(request("8,16", "naive"), target())
	if err != nil {
		t.Fatal(err)
	}
	d := record.Device{Key: "cpu-x", Facts: map[string]string{"simd": "avx2"}}
	m := record.Manifest{Scope: p.Scope(), Devices: []record.Device{d}}
	if why := p.Mismatch(m, d); why != "" {
		t.Errorf("its own run: %s", why)
	}
	sized, err := New(request("8,24", "naive"), target())
	if err != nil {
		t.Fatal(err)
	}
	tuned := p
	tuned.Kind = "tune"
	for want, why := range map[string]string{
		"differs from the requested plan of the same size": sized.Mismatch(m, d),
		"its plan differs":         tuned.Mismatch(m, d),
		"its device is not cpu-y":  p.Mismatch(m, record.Device{Key: "cpu-y"}),
		"its instruction set is":   p.Mismatch(m, record.Device{Key: "cpu-x"}),
		"its plan () differs from": p.Mismatch(record.Manifest{}, d),
	} {
		if !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// TestForecast: a forecast lays out what can run, says why the rest cannot, and stops at its limit.
func TestForecast(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x := &Estimator{
		Device: d.Info(), Measure: config.Default(), Free: 1 << 20, Others: "1.1 of 2 processors",
		LayOut: func(p record.Point, s grid.Spec) (*tuner.Layout, error) { return tuner.LayOut(d, impl.All(), p, s) },
	}
	p, err := New(request("8,512", "naive,scan"), target())
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	f, err := x.Forecast(t.Context(), p, 0, func(int) { told++ })
	if err != nil {
		t.Fatal(err)
	}
	if told != 4 || len(f.Entries) != 4 || !f.Whole || f.Seconds <= 0 {
		t.Fatalf("told of %d: %+v", told, f)
	}
	for i, code := range []string{"", record.ReasonCell, record.ReasonMemory, record.ReasonCell} {
		if e := f.Entries[i]; e.Code != code || !e.Known() || (e.Seconds > 0) != (code == "") {
			t.Errorf("entry %d: %+v, want the reason %q", i, e, code)
		}
	}
	if line := f.Line("a plan"); !strings.HasPrefix(line, "a plan; 3 of them skipped (cell: 2, memory: 1); about ") || !strings.HasSuffix(line, ", and longer while other programs use 1.1 of 2 processors") {
		t.Error(line)
	}
	lines := f.Lines("a plan", time.Hour, x.Free)
	if len(lines) != 5 || !strings.HasPrefix(lines[2], "memory: at most ") || !strings.HasSuffix(lines[2], "1.00 MiB available") {
		t.Errorf("%q", lines)
	}
	if m := f.Most; m.Bytes != f.Entries[0].Memory || m.Point.Hidden != 8 || len(m.Labels) != 1 {
		t.Errorf("the most memory is %+v", m)
	}
	if rows := f.Table().Rows; len(rows) != 4 || rows[0][5].Text != "planned" || rows[1][5].Text != "skipped" {
		t.Errorf("%v", rows)
	}
	if f, err = x.Forecast(t.Context(), p, 1, func(int) {}); err != nil || f.Whole || f.Entries[2].Known() || len(f.Entries) != 4 {
		t.Errorf("in a nanosecond: %+v, %v", f, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Forecast(ctx, p, 0, func(int) {}); err == nil {
		t.Error("an interrupted forecast went on")
	}
	if p, err = New(request("8", "cudnnstyle,cudnnstyle:fused=1"), target()); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Forecast(t.Context(), p, 0, func(int) {}); err == nil || !strings.Contains(err.Error(), "have the same settings") {
		t.Errorf("one technique twice: %v", err)
	}
}

func TestBudget(t *testing.T) {
	f := &Forecast{}
	for range 5 {
		f.Entries = append(f.Entries, Entry{Point: record.Point{Hidden: 8}, Spec: grid.Spec{Name: "naive", Label: "naive"}, Seconds: 10})
	}
	f.Entries[1].Seconds, f.Entries[1].Declined = 0, "it cannot"
	for budget, want := range map[time.Duration]string{
		25 * time.Second: "budget: 25s covers about the first 3 of 5 records",
		5 * time.Second:  "budget: 5s covers about the first 0 of 5 records",
		time.Minute:      "budget: 1m0s covers all of 5 records",
	} {
		if got := f.Budget(budget); got != want {
			t.Errorf("%v: %s", budget, got)
		}
	}
}

// TestDecided: an agenda with an open technique is decided at each point. It keeps its hash, and a shard keeps its control
// point.
func TestDecided(t *testing.T) {
	p := Agenda{Parts: []Part{{Specs: []grid.Spec{{Name: "naive", Label: "naive"}, {Name: "open", Label: "open"}}}}}
	whole, err := New(request("8,16,32,48", "naive"), target())
	if err != nil {
		t.Fatal(err)
	}
	p.Parts[0].Points = whole.Parts[0].Points
	d, err := p.Decided(target().Decide)
	if err != nil || len(d.Parts) != 2 || d.Points() != 4 || d.Records() != p.Records() || d.Parts[0].Specs[1].Name != "naive" || d.Parts[1].Specs[1].Name != "cudnnstyle" || d.Parts[1].Specs[1].Label != "open" {
		t.Errorf("%v: %+v", err, d.Parts)
	}
	if len(p.Parts) != 1 || p.Parts[0].Specs[1].Name != "open" {
		t.Errorf("the plan itself changed: %+v", p.Parts)
	}
	division, err := p.Divide(2, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		shard := division.Shard(record.Shard{Index: i + 1, Count: 2}, "x")
		decided, err := shard.Decided(target().Decide)
		if err != nil || decided.Hash() != p.Hash() || decided.Own().Points() != shard.Own().Points() || decided.Control().Points() != shard.Control().Points() {
			t.Errorf("shard %d: %v: %+v of %+v", i+1, err, decided, shard)
		}
	}
	if _, err := p.Decided(func(record.Point, grid.Spec) (grid.Spec, error) { return grid.Spec{}, context.Canceled }); err == nil {
		t.Error("a failed decision is lost")
	}
	trained := p.Trained(record.TrainingPlan{Data: "x"})
	if d, err = trained.Decided(target().Decide); err != nil || len(d.Networks()) != len(trained.Networks()) {
		t.Fatalf("%v: %d networks of %d", err, len(d.Networks()), len(trained.Networks()))
	}
	for i, n := range d.Networks() {
		if was := trained.Networks()[i]; n.Number != was.Number || n.Point != was.Point || n.Spec.Label != was.Spec.Label {
			t.Errorf("network %d is %+v, was %+v", i, n, was)
		}
	}
}

// TestLoad: techniques side by side take the memory of the check once. If they do not fit in free
// memory together, they run in groups, and in sequence each runs alone.
func TestLoad(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := record.Point{Cell: "lstm", Pass: "train", Hidden: 64, Input: 64, Batch: 32, Steps: 10, Layers: 1, Precision: "fp32"}
	var m Load
	var own, shared, one int64
	for _, name := range []string{"naive", "cudnnstyle", "persistent"} {
		l, err := tuner.LayOut(d, impl.All(), p, grid.Spec{Name: name, Label: name})
		if err != nil || l.Reason != "" {
			t.Fatal(l.Reason, err)
		}
		m.add(l)
		own, shared, one = own+l.Own(), max(shared, l.Shared()), max(one, l.Need())
	}
	for _, c := range []struct {
		free       int64
		sequential bool
		want       int64
	}{{0, false, own + shared}, {1 << 40, false, own + shared}, {own + shared - 1, false, own + shared - 1}, {1, false, one}, {0, true, one}, {1 << 40, true, one}} {
		if got := m.total(c.free, c.sequential); got != c.want || one >= own+shared {
			t.Errorf("with %d bytes free, in sequence: %v: %d bytes, want %d", c.free, c.sequential, got, c.want)
		}
	}
	m.Point, m.Bytes = p, own+shared
	if line := m.line(0); !strings.Contains(line, "by 3 techniques; free memory is unknown") {
		t.Error(line)
	}
}
