package table

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/synthetic"
	"rnnbench/record"
)

// TestFit: no line is wider than the terminal, and every word of every cell is printed.
func TestFit(t *testing.T) {
	for name, table := range tables(t) {
		for _, width := range []int{40, 60, 80, 100, 132} {
			for _, ascii := range []bool{false, true} {
				var b bytes.Buffer
				if err := table.Write(&b, "table", Options{TTY: true, ASCII: ascii, Width: width}); err != nil {
					t.Fatalf("%s at %d columns: %v", name, width, err)
				}
				for line := range strings.Lines(b.String()) {
					if n := columns(strings.TrimSuffix(line, "\n")); n > width {
						t.Errorf("%s at %d columns has a line of %d: %s", name, width, n, line)
					}
				}
				if missing := unsaid(table.shown().withoutEmpty(), b.String(), Options{ASCII: ascii}); missing != "" {
					t.Errorf("%s at %d columns lacks %q:\n%s", name, width, missing, b.String())
				}
			}
		}
	}
}

// unsaid returns a word of a cell of t that text lacks, both in its full and its brief form; "": none.
// It ignores optional columns if text says that columns were left out.
func unsaid(t *Table, text string, o Options) string {
	for _, row := range t.Rows {
		for i, c := range row {
			if t.Columns[i].Spare > 0 && strings.Contains(text, "Columns left out here") {
				continue
			}
			short := c.Brief
			if short == "" {
				short = c.Text
			}
			for word := range strings.FieldsSeq(cellText(short, o)) {
				if !strings.Contains(text, word) && !strings.Contains(text, cellText(c.Text, o)) {
					return word
				}
			}
		}
	}
	return ""
}

// TestNarrowTerminalsSayWhatIsMissing: a table on a narrow terminal names the columns that it
// leaves out.
func TestNarrowTerminalsSayWhatIsMissing(t *testing.T) {
	recs := synthetic.Sweep([]int{512, 4096}, []int{64, 128})
	table, err := Records(recs, "naive")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := table.Write(&b, "table", Options{TTY: true, Width: 62}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "Columns left out here: % of peak\n") || strings.Contains(got, "58 %") {
		t.Errorf("got\n%s", got)
	}
}

func TestConstantColumns(t *testing.T) {
	table := &Table{
		Title:   "title",
		Columns: []Column{{Name: "point"}, {Name: "device"}, {Name: "why"}, {Name: "empty"}},
		Rows: [][]Cell{
			{Text("one"), Text("a device with a long name"), Text("it is the fastest of all that were tried"), {}},
			{Text("two"), Text("a device with a long name"), Text("others are slower"), {}},
		},
	}
	for width, want := range map[int]string{
		0:  "| one   | a device with a long name | it is the fastest of all that were tried |",
		60: "title · device a device with a long name\n╭───────┬─",
		30: "title ·\n  device a device with a long\n  name\npoint  why\n",
	} {
		var b bytes.Buffer
		if err := table.Write(&b, "table", Options{TTY: width > 0, Width: width}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, want) || strings.Contains(got, "empty") {
			t.Errorf("%d columns: got\n%s, want\n%s", width, got, want)
		}
	}
}

// TestFold: text formats have a line for all skipped rows of one cause; data formats have all rows.
func TestFold(t *testing.T) {
	recs := synthetic.Sweep([]int{512, 1024, 2048, 4096}, []int{64})
	for i := range recs {
		r := &recs[i]
		switch {
		case r.Impl.Name == "scan":
			*r = synthetic.Fail(*r, record.Skipped, record.ReasonCell, "scan: unsupported: lstm is not a linear recurrence")
		case r.Impl.Name == "naive" && r.Point.Hidden > 512:
			*r = synthetic.Fail(*r, record.Skipped, record.ReasonMemory, fmt.Sprintf("needs %d GiB", r.Point.Hidden))
		}
	}
	table, err := Records(recs, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"table", "markdown"} {
		var b bytes.Buffer
		if err := table.Write(&b, format, Options{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"scan: 4 skipped: lstm is not a linear recurrence\n",
			"naive: 3 skipped: out of memory, for example: needs 1024 GiB (H=1024; H=2048; H=4096)\n",
		} {
			if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "skipped (") {
				t.Errorf("%s lacks %q:\n%s", format, want, b.String())
			}
		}
	}
	var b bytes.Buffer
	if err := table.Write(&b, "csv", Options{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(recs)+1 || !slices.Contains(rows[0], "reason_code") {
		t.Errorf("%d rows of CSV, %v", len(rows), err)
	}
}

// TestAllSkipped: if all records were skipped, only notes are printed.
func TestAllSkipped(t *testing.T) {
	recs := synthetic.Sweep([]int{512}, []int{64})[:1]
	recs[0] = synthetic.Fail(recs[0], record.Skipped, record.ReasonCell, "it cannot")
	table, err := Records(recs, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"table", "markdown"} {
		var b bytes.Buffer
		if err := table.Write(&b, format, Options{}); err != nil || strings.Contains(b.String(), "status") || !strings.Contains(b.String(), "1 skipped: it cannot") {
			t.Errorf("%s: %v\n%s", format, err, b.String())
		}
	}
}

// TestChoice: a table says what auto chose, by which match and why.
func TestChoice(t *testing.T) {
	recs := synthetic.Sweep([]int{512, 1024}, []int{64})
	for i := range recs {
		r := &recs[i]
		if r.Impl.Name != "cudnnstyle" {
			continue
		}
		r.Impl.Label, r.Impl.Knobs = "auto", map[string]int{"fused": 1, "streams": r.Point.Hidden / 512}
		r.Impl.Choice = &record.Choice{By: "auto", Match: "nearest", Octaves: 1, Why: "the fastest at H=256", Impl: "cudnnstyle:graph=1"}
		if r.Point.Hidden == 1024 { // an older record
			r.Impl.Choice.Impl = ""
		}
	}
	table, err := Records(recs, "")
	if err != nil {
		t.Fatal(err)
	}
	var text, data bytes.Buffer
	if err := table.Write(&text, "table", Options{}); err != nil {
		t.Fatal(err)
	}
	if err := table.Write(&data, "csv", Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"auto chose", "| cudnnstyle:graph=1 [1] |", "| cudnnstyle [1] ", "[1] auto, nearest tuned point: the fastest at H=256\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	for _, match := range []string{"exact", "nearest", "predicted", "raced", "default"} { // the values of record.Choice.Match
		if note := choiceNote(&record.Choice{By: "auto", Match: match, Why: "why"}); strings.Contains(note, ", :") {
			t.Errorf("%s has no words: %q", match, note)
		}
	}
	if strings.Contains(text.String(), "streams=") {
		t.Errorf("settings that the technique chose from point to point are shown:\n%s", text.String())
	}
	if !strings.Contains(data.String(), ",cudnnstyle:graph=1,nearest,the fastest at H=256,") {
		t.Errorf("the data has no choice:\n%s", data.String())
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 5, ""},
		{"one two three", 20, "one two three"},
		{"one two three", 7, "one two/three"},
		{"cudnnstyle:fused=0:overlap=0", 20, "cudnnstyle:fused=0:/overlap=0"},
		{"abcdefghij", 4, "abcd/efgh/ij"},
		{"世界世界", 5, "世界/世界"},
		{"世", 1, "世"},
		{"a  b", 2, "a/b"},
	} {
		if got := strings.Join(wrap(c.text, c.width), "/"); got != c.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestSentence: sentences are wrapped, but a path wider than a line stays whole.
func TestSentence(t *testing.T) {
	const path = "out/a-long-folder/a-long-name.svg"
	for _, c := range []struct{ from, want string }{
		{"wrote " + path, "wrote " + path},
		{path, path},
		{"wrote out/short.svg", "wrote out/short.svg"},
		{"the records are saved in " + path + " and are read again", "the records are\n  saved in " + path + "\n  and are read again"},
		{"the plots " + path + " and " + path + " are there", "the plots " + path + "\n  and " + path + "\n  are there"},
		{"some words that go on to another line", "some words that go\n  on to another line"},
	} {
		if got := Sentence(c.from, 20, 2); got != c.want {
			t.Errorf("%q: got\n%s\nwant\n%s", c.from, got, c.want)
		}
	}
	if s := "one " + path + " line"; Sentence(s, 0, 2) != s {
		t.Error("a sentence was wrapped where there is no terminal")
	}
}
