package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// older turns a run into one of version 1 of the schema.
func older(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{manifestFile, recordsFile} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for line := range strings.Lines(strings.ReplaceAll(string(text), Schema, "rnnbench.record/1")) {
			if before, _, ok := strings.Cut(line, `,"kernels":`); ok {
				line = before + "}\n"
			}
			out.WriteString(line)
		}
		if err := os.WriteFile(path, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// contents returns the contents of a folder's files by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(text)
	}
	return all
}

// TestVersion1: a run of version 1 is read, but not resumed. Nothing on disk changes, not even an
// incomplete last line.
func TestVersion1(t *testing.T) {
	run := create(t, 2)
	if err := run.Finish(0); err != nil {
		t.Fatal(err)
	}
	older(t, run.Dir())
	m, records := mustRead(t, run.Dir(), 0)
	if len(records) != 2 || records[0].Schema != "rnnbench.record/1" || records[0].Seconds() == 0 || records[0].Kernels != nil || records[0].Predicted != nil {
		t.Errorf("read %+v", records)
	}
	if err := m.Resumable(); err == nil || strings.Count(err.Error(), ". ") > 0 || !strings.Contains(err.Error(), "without --resume") {
		t.Errorf("resumable: %v", err)
	}
	f, err := os.OpenFile(filepath.Join(run.Dir(), recordsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"schema":"rnnbe`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	before := contents(t, run.Dir())
	if again, err := Resume(run.Dir()); again != nil || err == nil || !strings.Contains(err.Error(), "older form rnnbench.record/1") {
		t.Errorf("resumed: %v, %v", again, err)
	}
	after := contents(t, run.Dir())
	if len(before) != len(after) {
		t.Errorf("files were %d and are %d", len(before), len(after))
	}
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s was changed", name)
		}
	}
}

// TestVersionsMix reads records of both versions from one file.
func TestVersionsMix(t *testing.T) {
	text := line(t, func(r *Record) { r.Schema = "rnnbench.record/1" }) + line(t, func(r *Record) { r.Seq = 1 })
	records, warnings, err := ReadRecords(strings.NewReader(text), "f")
	if err != nil || len(records) != 2 || len(warnings) != 0 {
		t.Errorf("got %d records, %v, %v", len(records), warnings, err)
	}
}

// TestRecordedRunsRead reads every run that is committed, without a warning.
func TestRecordedRunsRead(t *testing.T) {
	found, err := filepath.Glob("../results/*/*/" + recordsFile)
	if err != nil || len(found) == 0 {
		t.Fatalf("%d runs, %v", len(found), err)
	}
	all := 0
	for _, path := range found {
		_, records, warnings, err := Read(path)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", path, warnings, err)
		}
		if m, err := os.Stat(path); err == nil && m.Size() > 0 && len(records) == 0 {
			t.Errorf("%s has lines, and no record was read", path)
		}
		all += len(records)
	}
	if all == 0 {
		t.Error("no record was read")
	}
}

// TestNewKeys checks the keys of version 2, all set, against the schema and reads them back.
func TestNewKeys(t *testing.T) {
	s := parseSchema(t)
	rec := sample(1)
	rec.Schema, rec.Run = Schema, "run"
	complete(&rec)
	rec.Kernels = []Kernel{{Name: "k", Variant: ptr("mma"), Config: ptr("words"), Grid: &[3]int{96, 1, 1}, Block: &[3]int{256, 1, 1},
		Cluster: ptr(16), Registers: ptr(168), Shared: ptr(44688), Spills: ptr(0), Launches: 1, Group: &Group{Blocks: 16, Samples: 8, Tensor: true, Steps: 50}}, {Name: "product", Launches: 3}}
	rec.Predicted = &Predicted{Seconds: 1e-4, Part: PartPersistent, Model: "m", Error: ptr(0.1)}
	rec.Floor = &Floor{Seconds: 1e-5, Bound: "memory", Parts: map[string]float64{"memory L2": 1e-5}, Bytes: map[string]int64{"L2": 7}, Share: 0.1, Error: ptr(0.08)}
	rec.Node = &Node{Name: "n", Shard: ptr("3/16")}
	rec.Energy = &Energy{Joules: ptr(1.0), Net: ptr(-0.1), Watts: ptr(300.0), Idle: ptr(70.0), Polled: ptr(290.0), Clock: ptr(1.9e9),
		Temperature: ptr(41.0), Windows: []float64{1, 1.1}, Source: "nvml", Reason: ptr("words")}
	rec.Rival = &Rival{Name: "r", Version: "1"}
	rec.Verify = &Verify{OK: true, Partial: []string{}, Kinks: &Kinks{Units: 300, Near: 4, Other: 1}}
	rec.Lengths = &Lengths{Distribution: "uniform", Mean: 2.5, Max: 3}
	data, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	tree := func() map[string]any {
		var v map[string]any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if err := validate("record", tree(), s); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"kernels", "predicted", "floor", "node", "energy", "rival", "lengths"} {
		v := tree()
		if v[name] = nil; validate("record", v, s) != nil {
			t.Errorf("%s cannot be null: %v", name, validate("record", v, s))
		}
		if delete(v, name); validate("record", v, s) == nil {
			t.Errorf("a record without %s is valid", name)
		}
	}
	old := tree()
	delete(old["verify"].(map[string]any), "kinks")
	if err := validate("record", old, s); err != nil {
		t.Errorf("a record from before kinks were counted: %v", err)
	}
	back, _, err := ReadRecords(strings.NewReader(string(data)), "f")
	if err != nil || len(back) != 1 || back[0].Verify.Kinks.Near != 4 || *back[0].Kernels[0].Registers != 168 || !slices.Equal(back[0].Kernels[0].Grid[:], []int{96, 1, 1}) || back[0].Lengths.Max != 3 {
		t.Errorf("read back %+v, %v", back, err)
	}
}
