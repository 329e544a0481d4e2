package record

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/rnn/axis"
)

func line(t testing.TB, change func(*Record)) string {
	t.Helper()
	rec := sample(1)
	rec.Schema, rec.Run = Schema, "run"
	complete(&rec)
	change(&rec)
	data, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}

func TestBadLines(t *testing.T) {
	good := line(t, func(*Record) {})
	for _, c := range []struct{ name, text, want string }{
		{"garbage", "hello\n", "f:2: this line is not a record"},
		{"another object", `{"a":1}` + "\n", "f:2: this line is not a record and is ignored: it has no schema"},
		{"an array", "[1]\n", "f:2: this line is not a record"},
		{"binary", "\x00\xff\x00\n", "f:2: this line is not a record"},
		{"two on a line", strings.TrimSpace(good) + good, "f:2: this line is not a record"},
		{"a type", strings.Replace(good, `"seq":0`, `"seq":"x"`, 1), "f:2: this line is not a record"},
		{"a status", line(t, func(r *Record) { r.Status = "fine" }), `"fine" is not a status`},
		{"a size", line(t, func(r *Record) { r.Point.Hidden = -1 }), "invalid size"},
		{"calls", line(t, func(r *Record) { r.Point.Calls = -1 }), "invalid size"},
		{"symbols", line(t, func(r *Record) { r.Point.Symbols = -1 }), "invalid size"},
		{"an embedding", line(t, func(r *Record) { r.Point.Embedding = -1 }), "invalid size"},
		{"groups", line(t, func(r *Record) { r.Point.Groups = -1 }), "invalid size"},
		{"no cell", line(t, func(r *Record) { r.Point.Cell = "" }), "has no cell"},
		{"no technique", line(t, func(r *Record) { r.Impl.Name = "" }), "names no technique"},
		{"statistics", line(t, func(r *Record) { r.Stats.Min = 5 }), "contradict"},
		{"a median of other samples", line(t, func(r *Record) { r.Stats.Min, r.Stats.Median = 1e-12, 1e-12 }), "contradicts itself: its smallest is 1e-12 s, but that of its samples is 0.001 s; it is ignored"},
		{"a negative sample", line(t, func(r *Record) { r.Samples.Wall[0] = -1 }), "contradicts itself: a sample is negative"},
		{"a sample without runs", line(t, func(r *Record) { r.Samples.Iters[0] = 0 }), "contradicts itself: a sample has no runs"},
		{"negative work", line(t, func(r *Record) { r.Work.Bytes = -1 }), "contradicts itself: its work is negative"},
		{"a negative cost", line(t, func(r *Record) { r.Cost.Verify = -1 }), "contradicts itself: its cost is negative"},
		{"a wrong answer that is ok", line(t, func(r *Record) { r.Verify.OK = false }), "contradicts itself: its status is ok, but its answer was wrong"},
		{"less than no training", line(t, func(r *Record) { r.Training = &Training{Iterations: -5} }), "contradicts itself: it counts less than nothing of training"},
		{"cut short", good[:len(good)/2], "f:2: the last line is incomplete"},
	} {
		records, warnings, err := ReadRecords(strings.NewReader(good+c.text), "f")
		if err != nil || len(records) != 1 || len(warnings) != 1 || !strings.Contains(warnings[0].String(), c.want) {
			t.Errorf("%s: got %d records, %v, %v", c.name, len(records), warnings, err)
		}
		records, warnings, err = ReadRecords(strings.NewReader(c.text+"\n"+good), "f")
		if err != nil || len(records) != 1 || len(warnings) != 1 {
			t.Errorf("%s in front: got %d records, %v, %v", c.name, len(records), warnings, err)
		}
	}
}

func TestForgivingReader(t *testing.T) {
	good := line(t, func(*Record) {})
	for name, text := range map[string]string{
		"unknown keys": strings.Replace(good, `{"schema"`, `{"new":{"x":[1]},"schema"`, 1),
		"CRLF":         strings.Replace(good, "\n", "\r\n", 1),
		"empty lines":  "\n\n" + good + "\n  \n",
		"no newline":   strings.TrimSpace(good),
	} {
		records, warnings, err := ReadRecords(strings.NewReader(text), "f")
		if err != nil || len(records) != 1 || len(warnings) != 0 {
			t.Errorf("%s: got %d records, %v, %v", name, len(records), warnings, err)
		}
	}
}

func TestForeignSchema(t *testing.T) {
	text := line(t, func(*Record) {}) + line(t, func(r *Record) { r.Schema = "rnnbench.record/3" })
	_, _, err := ReadRecords(strings.NewReader(text), "f")
	if err == nil || !strings.Contains(err.Error(), `f:2: unknown schema "rnnbench.record/3"`) {
		t.Errorf("got %v", err)
	}
}

func TestRunsDoNotMixOnReading(t *testing.T) {
	text := line(t, func(*Record) {}) + line(t, func(r *Record) { r.Run = "other" }) + line(t, func(r *Record) { r.Seq = 7 })
	records, _, err := ReadRecords(strings.NewReader(text), "f")
	if err != nil {
		t.Fatal(err)
	}
	records = newest(records)
	if len(records) != 2 || records[0].Run != "other" || records[1].Seq != 7 {
		t.Errorf("got %+v", records)
	}
}

func TestReadAll(t *testing.T) {
	a, b := create(t, 1), create(t, 2)
	odd := filepath.Join(t.TempDir(), "x=y")
	if err := os.CopyFS(odd, os.DirFS(b.Dir())); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(odd, manifestFile)); err != nil {
		t.Fatal(err)
	}
	sets, warnings, err := ReadAll([]string{"base=" + a.Dir(), b.Dir(), odd})
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Text, "environment is unknown") {
		t.Errorf("got %v", warnings)
	}
	if sets[0].Label != "base" || sets[1].Label != "test" || sets[2].Label != b.Manifest().Run || len(sets[2].Records) != 2 {
		t.Errorf("got %+v", sets)
	}
	if sets[0].Dir != a.Dir() || sets[1].Dir != b.Dir() || sets[2].Dir != "" {
		t.Errorf("their folders are %q, %q and %q", sets[0].Dir, sets[1].Dir, sets[2].Dir)
	}
	for _, path := range []string{"nowhere", t.TempDir()} {
		if _, _, err := ReadAll([]string{path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestLatestStaysInside(t *testing.T) {
	run := create(t, 1)
	for _, name := range []string{"", "..", "../" + filepath.Base(run.Dir()), "gone"} {
		dir := filepath.Dir(run.Dir())
		if err := os.WriteFile(filepath.Join(dir, latestFile), []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := Read(dir); err == nil {
			t.Errorf("%q is read as a run", name)
		}
	}
}

func FuzzReadRecords(f *testing.F) {
	good := line(f, func(*Record) {})
	f.Add([]byte(good + good[:40]))
	f.Add([]byte(good + "x\n" + good))
	f.Add([]byte(`{"schema":"rnnbench.record/1"}`))
	f.Add([]byte(`{"schema":"rnnbench.record/1","point":null,"stats":{},"samples":{"wall_s":[1e308]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, warnings, err := ReadRecords(bytes.NewReader(data), "f")
		if err != nil {
			return
		}
		if lines := bytes.Count(data, []byte("\n")) + 1; len(records)+len(warnings) > lines {
			t.Fatalf("%d lines give %d records and %d warnings", lines, len(records), len(warnings))
		}
		for i := range newest(records) {
			records[i].FLOPS()
			text, err := json.Marshal(records[i])
			if err != nil {
				t.Fatal(err)
			}
			again, err := parseRecord(text)
			if err != nil {
				t.Fatal(err)
			}
			if text2, _ := json.Marshal(again); !bytes.Equal(text, text2) {
				t.Fatalf("%s\nreads back as\n%s", text, text2)
			}
		}
	})
}

// TestKey: records from before and after a knob was added have the same key while the knob is 0.
func TestKey(t *testing.T) {
	key := func(knobs map[string]int) string {
		rec := sample(1)
		rec.Impl.Knobs = knobs
		return rec.Key()
	}
	if a, b := key(map[string]int{"streams": 2}), key(map[string]int{"stack": 0, "streams": 2}); a != b {
		t.Errorf("%s and %s differ", a, b)
	}
	if a, b := key(map[string]int{"streams": 2}), key(map[string]int{"stack": 1, "streams": 2}); a == b {
		t.Errorf("both are %s", a)
	}
}

// TestKeyOfLongLengths: points whose lists of lengths differ behind what texts show are different.
func TestKeyOfLongLengths(t *testing.T) {
	a, b := sample(1), sample(1)
	list := strings.Repeat("5+", 30)
	a.Point.Lengths, b.Point.Lengths = axis.SequenceLengths(list+"6"), axis.SequenceLengths(list+"7")
	if a.Key() == b.Key() {
		t.Errorf("both have the key %s", a.Key())
	}
}
