package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// TestReportFloors: a report tells the time of the fastest techniques over their floors by pass, precision and family,
// the furthest first. A family of few layers is not named in the finding.
func TestReportFloors(t *testing.T) {
	e, err := experiments.Lookup("random-layers")
	if err != nil {
		t.Fatal(err)
	}
	layer := func(hidden, batch int, pass, precision, bound string, share float64) record.Record {
		r := record.Record{Point: record.Point{Cell: "gru", Pass: pass, Hidden: hidden, Input: hidden, Batch: batch, Steps: 10, Layers: 1, Precision: precision}, Device: "cpu-synthetic",
			Status: record.OK, Impl: record.Impl{Name: "persistent", Label: "auto", Choice: &record.Choice{By: "auto", Match: "predicted", Impl: "persistent"}}, Stats: &record.Stats{N: 6, Median: 1}}
		if share > 0 {
			r.Floor = &record.Floor{Seconds: share, Bound: bound, Share: share}
		}
		return r
	}
	rep, err := e.Report([]record.Record{
		layer(64, 1, "forward", "fp32", "exchange", 0.5), layer(64, 2, "forward", "fp32", "memory", 0.5), layer(64, 3, "forward", "bf16", "memory", 0.125),
		layer(512, 16, "train", "fp32", "multiply-adds", 0.1), layer(2048, 15, "forward", "bf16", "", 0),
	}, cpu)
	if err != nil {
		t.Fatal(err)
	}
	row := func(cells []table.Cell) string {
		var words []string
		for _, c := range cells {
			words = append(words, c.Text)
		}
		return strings.Join(words, "; ")
	}
	for i, want := range [][]string{
		{"all; 4; 4.2; 2.0; 10.0; memory", "training, fp32; 1; 10.0; 10.0; 10.0; multiply-adds", "forward, 16 bits; 1; 8.0; 8.0; 8.0; memory", "forward, fp32; 2; 2.0; 2.0; 2.0; exchange"},
		{"256 to 1,023 units, 16 sequences and more, training; 1; 10.0; 10.0; 10.0; multiply-adds", "under 256 units, under 16 sequences, forward; 3; 3.2; 2.0; 8.0; memory"},
	} {
		var got []string
		for _, r := range rep.Tables[2+i].Rows {
			got = append(got, row(r))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%s", rep.Tables[2+i].Title, strings.Join(got, "\n"))
		}
	}
	if said := about(rep, "takes 4.2 times its floor (geometric mean of 4 layers)"); !strings.Contains(said, "from their floors: under 256 units, under 16 sequences, forward (3.2×, by memory).") {
		t.Errorf("findings are %q", rep.Findings)
	}
}
