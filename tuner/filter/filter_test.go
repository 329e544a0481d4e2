package filter

import (
	"strings"
	"testing"

	"rnnbench/record"
)

// records returns records of two techniques, one with a label that is not a technique's name.
func records() []record.Record {
	at := record.Point{Cell: "lstm", Pass: "forward", Hidden: 8, Input: 8, Layers: 1, Batch: 1, Steps: 2, Precision: "fp32"}
	wide := at
	wide.Hidden, wide.Input = 16, 16
	return []record.Record{
		{Point: at, Device: "cpu-x", Impl: record.Impl{Name: "naive"}, Status: record.OK, Work: record.Work{Memory: 1000, Flops: 100, Bytes: 10}},
		{Point: wide, Device: "cpu-x", Impl: record.Impl{Name: "naive"}, Status: record.OK, Work: record.Work{Memory: 3000, Flops: 100, Bytes: 100}},
		{Point: wide, Device: "cpu-y", Impl: record.Impl{Name: "cudnnstyle", Label: "3 fused", Knobs: map[string]int{"fused": 3}}, Status: record.OK},
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		where, expression string
		want              int // selected records, as bits
	}{
		{"", "", 0b111},
		{"hidden>8", "", 0b110},
		{"impl=3 fused", "", 0b100},
		{"impl!=3 fused", "", 0b011},
		{"mem<=1000", "", 0b101},
		{"intensity>5", "", 0b001},
		{"flops>1e4", "", 0b000},
		{"", "/impl:naive", 0b011},
		{"", "/impl:(naive OR 3_fused) -/hidden:8", 0b110},
		{"", "device:cpu-y", 0b100},
		{"hidden=16", "/fused:3", 0b100},
	} {
		recs := records()
		var where []string
		if c.where != "" {
			where = []string{c.where}
		}
		f, err := New(where, c.expression, recs)
		if err != nil {
			t.Errorf("%s %s: %v", c.where, c.expression, err)
			continue
		}
		kept, err := f.Choose(recs)
		if err != nil {
			t.Errorf("%s %s: %v", c.where, c.expression, err)
		}
		n := 0
		for i := range recs {
			if ok, _ := f(&recs[i]); ok != (c.want>>i&1 > 0) {
				t.Errorf("%s %s: record %d is selected: %v", c.where, c.expression, i, ok)
			} else if ok {
				n++
			}
		}
		if len(kept) != n {
			t.Errorf("%s %s: %d records are kept, %d are selected", c.where, c.expression, len(kept), n)
		}
	}
}

// TestMistakes names what is wrong with a condition or an expression.
func TestMistakes(t *testing.T) {
	for _, c := range [][3]string{
		{"hiden=8", "", "did you mean hidden?"},
		{"impl=3 fusd", "", "did you mean 3 fused?"},
		{"", "/impl:(", "--filter: "},
	} {
		var where []string
		if c[0] != "" {
			where = []string{c[0]}
		}
		recs := records()
		f, err := New(where, c[1], recs)
		if err == nil {
			_, err = f.Choose(recs)
		}
		if err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s %s: %v, want %q", c[0], c[1], err, c[2])
		}
	}
}

// FuzzFilter: an expression of --filter is refused or can be evaluated for a record.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"/impl:(naive OR scan) -/batch:1", "*", "device:cpu", "/hidden:/.*/", "-(", "a:b:c"} {
		f.Add(text, "naive")
	}
	f.Fuzz(func(t *testing.T, text, label string) {
		recs := []record.Record{{Impl: record.Impl{Name: "naive", Label: label, Knobs: map[string]int{label: 1}}, Device: "cpu", Status: record.OK}}
		wanted, err := New(nil, text, recs)
		if err != nil {
			return
		}
		_, _ = wanted(&recs[0])
	})
}
