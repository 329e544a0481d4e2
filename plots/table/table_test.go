package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/internal/synthetic"
	"rnnbench/plots/internal/golden"
	"rnnbench/record"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func special() *Table {
	return &Table{
		Title:   "Rates | times",
		Columns: []Column{{Name: "impl", Key: "impl"}, {Name: "TFLOP/s ± CI", Key: "flops", Right: true}, {Name: "text only"}, {Key: "data_only"}},
		Rows: [][]Cell{
			{Text("a|b <c>"), Number(1.5e12, "1.50 T"), {Text: "x"}, {Value: true}},
			{Text("two\nlines, \"quoted\""), Number(math.NaN(), "NaN"), {Text: strings.Repeat("long ", 30)}, {}},
			{Text("naïve µ×²"), {Text: "777 µs", Value: 777e-6, Grade: Near}, {}, Int(3)},
		},
		Notes: []string{"[1] a note"},
	}
}

func tables(t *testing.T) map[string]*Table {
	t.Helper()
	recs := synthetic.Sweep([]int{512, 4096}, []int{64, 128})
	knobs := synthetic.Ladder(512, 64)
	for i := range knobs {
		knobs[i].Impl.Label = "cudnnstyle"
		if i%2 == 1 {
			knobs[i].Stats.Lo, knobs[i].Stats.Hi = nil, nil
		}
	}
	failed := slices.Clone(recs)
	for i := range failed {
		failed[i] = synthetic.Fail(failed[i], record.Failed, record.ReasonCUDA, "CUDA error 700: an illegal memory access was encountered")
	}
	beyond := slices.Clone(recs[:2])
	rate := *beyond[0].Rate
	peak := rate.Flops / 2
	rate.Peak = &peak
	beyond[0].Rate = &rate
	floor := slices.Clone(recs[:2])
	floor[0].Floor = &record.Floor{Seconds: floor[0].Stats.Median / 4, Bound: "exchange", Share: 0.25}
	out := map[string]*Table{"special": special()}
	for _, c := range []struct {
		name string
		make func() (*Table, error)
	}{
		{"records", func() (*Table, error) { return Records(recs, "naive") }},
		{"records-one", func() (*Table, error) { return Records(recs[:1], "") }},
		{"records-failed", func() (*Table, error) { return Records(failed, "naive") }},
		{"records-beyond-peak", func() (*Table, error) { return Records(beyond, "") }},
		{"records-floor", func() (*Table, error) { return Records(floor, "") }},
		{"records-calls", func() (*Table, error) { return Records(synthetic.Calls([]int{512}, []int{1, 16}), "naive") }},
		{"pivot-p99", func() (*Table, error) {
			return Pivot(synthetic.Calls([]int{512, 1024}, []int{1}), "hidden", "impl", "p99", "")
		}},
		{"records-knobs", func() (*Table, error) { return Records(knobs, "naive") }},
		{"pivot", func() (*Table, error) { return Pivot(recs, "hidden", "impl", "flops", "") }},
		{"pivot-speedup", func() (*Table, error) { return Pivot(recs, "impl", "hidden", "speedup", "naive") }},
		{"pivot-tuned", func() (*Table, error) { return Pivot(knobs, "hidden", "impl", "time", "") }},
		{"pivot-memory", func() (*Table, error) { return Pivot(recs, "batch", "hidden", "memory", "") }},
	} {
		table, err := c.make()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		out[c.name] = table
	}
	return out
}

func TestTables(t *testing.T) {
	for name, table := range tables(t) {
		var all bytes.Buffer
		for _, c := range []struct {
			format string
			o      Options
		}{{"table", Options{TTY: true, Color: true}}, {"table", Options{}}, {"table", Options{TTY: true, ASCII: true}}, {"table", Options{TTY: true, Width: 80}}, {"table", Options{TTY: true, ASCII: true, Width: 40}}, {"markdown", Options{}}, {"csv", Options{}}, {"json", Options{}}} {
			var b bytes.Buffer
			if err := table.Write(&b, c.format, c.o); err != nil {
				t.Errorf("%s as %s: %v", name, c.format, err)
			}
			got := b.String()
			fmt.Fprintf(&all, "== %s %+v\n%s", c.format, c.o, strings.ReplaceAll(got, "\x1b", "<esc>"))
			if c.o.ASCII && strings.ContainsFunc(got, func(r rune) bool { return r > 126 }) {
				t.Errorf("%s: %q is not ASCII", name, got)
			}
			switch c.format {
			case "csv":
				rows, err := csv.NewReader(&b).ReadAll()
				if err != nil || len(rows) != len(table.Rows)+1 {
					t.Errorf("%s: %d rows of CSV, %v", name, len(rows), err)
				}
			case "json":
				var v []map[string]any
				if err := json.Unmarshal(b.Bytes(), &v); err != nil || len(v) != len(table.Rows) {
					t.Errorf("%s: %d rows of JSON, %v", name, len(v), err)
				}
			}
		}
		golden.Check(t, "synthetic-"+name+".txt", all.Bytes(), *update)
	}
}

// TestAlignment: colours do not move the borders.
func TestAlignment(t *testing.T) {
	var plain, colored bytes.Buffer
	table, err := Records(synthetic.Sweep([]int{512}, []int{64}), "naive")
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Write(&plain, "table", Options{TTY: true}); err != nil {
		t.Fatal(err)
	}
	if err := table.Write(&colored, "table", Options{TTY: true, Color: true}); err != nil {
		t.Fatal(err)
	}
	bare := strings.NewReplacer("\x1b[0m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "").Replace(colored.String())
	if bare == colored.String() || bare != plain.String() {
		t.Errorf("colour moves the text:\n%s\n%s", plain.String(), bare)
	}
}

func TestWriteErrors(t *testing.T) {
	if err := special().Write(&bytes.Buffer{}, "xml", Options{}); err == nil || !strings.Contains(err.Error(), "markdown") {
		t.Errorf("unknown format: %v", err)
	}
	ragged := special()
	ragged.Rows[1] = ragged.Rows[1][:2]
	if err := ragged.Write(&bytes.Buffer{}, "table", Options{}); err == nil {
		t.Error("a ragged table was written")
	}
	recs := synthetic.Sweep([]int{512}, []int{64})
	for want, err := range map[string]error{
		"no records":                second(Records(nil, "")),
		`did you mean "hidden"`:     second(Pivot(recs, "hid", "impl", "flops", "")),
		`did you mean "speedup"`:    second(Pivot(recs, "hidden", "impl", "speed", "")),
		"both hidden":               second(Pivot(recs, "hidden", "hidden", "time", "")),
		"no result to compare with": second(Pivot(recs, "hidden", "impl", "speedup", "cudnn")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func second(_ *Table, err error) error { return err }

func TestJSONL(t *testing.T) {
	recs := synthetic.Sweep([]int{512, 4096}, []int{128})
	var b bytes.Buffer
	if err := JSONL(&b, recs); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(recs) {
		t.Fatalf("%d lines of %d records", len(lines), len(recs))
	}
	var back record.Record
	if err := json.Unmarshal([]byte(lines[3]), &back); err != nil || back.Key() != recs[3].Key() {
		t.Errorf("%v, %s", err, back.Key())
	}
}

// TestOrderOfRecordsDoesNotMatter: a table does not depend on the order of the records. The later of
// two records of one key counts.
func TestOrderOfRecordsDoesNotMatter(t *testing.T) {
	recs := synthetic.Sweep([]int{512, 4096}, []int{64})
	old := recs[0]
	stats := *old.Stats
	stats.Median *= 100
	old.Stats, old.Time = &stats, old.Time.Add(-time.Hour)
	write := func(recs []record.Record) string {
		table, err := Records(recs, "naive")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := table.Write(&b, "csv", Options{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := write(recs)
	more := append(slices.Clone(recs), old)
	slices.Reverse(more)
	if got := write(more); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
