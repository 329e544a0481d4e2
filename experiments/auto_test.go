package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
)

// TestRandomLayers: a seed alone decides the layers, and they lie within the bounds of their size.
func TestRandomLayers(t *testing.T) {
	e, err := experiments.Lookup("random-layers")
	if err != nil {
		t.Fatal(err)
	}
	draw := func(s study.Size, on study.Target, seed uint64) (all []record.Point) {
		on.Seed = seed
		for _, part := range e.Parts(s, on) {
			all = append(all, part.Points...)
		}
		return all
	}
	for _, c := range []struct {
		size   study.Size
		on     study.Target
		layers int
		hidden int
	}{{study.Full, gpu, 60, 3500}, {study.Quick, gpu, 20, 3500}, {study.Full, cpu, 60, 3500}, {study.Quick, cpu, 12, 700}} {
		all := draw(c.size, c.on, 5)
		if len(all) != c.layers || !slices.Equal(all, draw(c.size, c.on, 5)) || slices.Equal(all, draw(c.size, c.on, 6)) {
			t.Errorf("size %d, GPU %t: %d layers, or the seed does not decide them", c.size, c.on.GPU, len(all))
		}
		odd, training := 0, 0
		for _, p := range all {
			if p.Hidden < 16 || p.Hidden > c.hidden || p.Input != p.Hidden || p.Batch < 1 || p.Batch > 400 || p.Steps < 20 || p.Steps > 600 || p.Layers < 1 || p.Layers > 3 {
				t.Errorf("%+v", p)
			}
			if p.Hidden%32 != 0 {
				odd++
			}
			if p.Pass == "train" {
				training++
			}
		}
		if odd == 0 || odd == len(all) || training == 0 || training == len(all) {
			t.Errorf("size %d, GPU %t: of %d layers %d are odd and %d are trained", c.size, c.on.GPU, len(all), odd, training)
		}
	}
	quick := draw(study.Quick, gpu, 5)
	full := draw(study.Full, gpu, 5)
	for _, p := range quick {
		if !slices.Contains(full, p) {
			t.Errorf("the quick size has %v, which the full one lacks", p)
		}
	}
}

// TestSeedOfRecords: a report takes the seed from the records, so it knows the order and the size of
// their layers.
func TestSeedOfRecords(t *testing.T) {
	e, err := experiments.Lookup("random-layers")
	if err != nil {
		t.Fatal(err)
	}
	on := gpu
	on.Seed = 77
	recs := synthetic(e, on)
	for i := range recs {
		recs[i].Mode.Seed, recs[i].Device = 77, "cuda-synthetic"
	}
	d := record.Device{Key: "cuda-synthetic", Name: "synthetic"}
	rep, err := e.On(d, recs)
	if err != nil {
		t.Fatal(err)
	}
	if about(rep, "drawn from seed 77") == "" || !rep.Reduced || !e.Concerns(d, recs, false) {
		t.Errorf("reduced %t, findings %q", rep.Reduced, rep.Findings)
	}
	for i := range recs {
		recs[i].Mode.Seed = 78
	}
	if e.Concerns(d, recs, false) {
		t.Error("records of another seed's layers concern the experiment")
	}
}

// TestReportAuto: the worst layers come first, auto's choice under its own name is no rival, and
// each rival has its columns.
func TestReportAuto(t *testing.T) {
	e, err := experiments.Lookup("random-layers")
	if err != nil {
		t.Fatal(err)
	}
	newRecord := func(hidden int, label, name string, k knob.Params, seconds float64) record.Record {
		lo, hi := 0.99*seconds, 1.01*seconds
		r := record.Record{Point: record.Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Input: hidden, Batch: 1, Steps: 10, Layers: 1, Precision: "fp32"}, Device: "cuda-synthetic",
			Status: record.OK, Impl: record.Impl{Name: name, Label: label, Knobs: k}, Stats: &record.Stats{N: 6, Median: seconds, Lo: &lo, Hi: &hi}}
		if label == "auto" {
			r.Impl.Choice = &record.Choice{By: "auto", Match: "predicted", Impl: name + ":" + k.String()}
		}
		return r
	}
	graph := knob.Params{"graph": 1}
	recs := []record.Record{
		newRecord(64, "auto", "persistent", graph, 2), newRecord(64, "cudnnstyle", "cudnnstyle", graph, 4), newRecord(64, "persistent", "persistent", graph, 1.5),
		newRecord(64, "cudnn", "cudnn", graph, 8), newRecord(64, "cudnn static", "cudnn", knob.Params{"algorithm": 1, "graph": 1}, 6), newRecord(64, "pytorch", "pytorch", nil, 20),
		newRecord(96, "auto", "cudnnstyle", graph, 3), newRecord(96, "cudnnstyle", "cudnnstyle", graph, 3.3), newRecord(96, "persistent", "persistent", graph, 1.5), newRecord(96, "cudnn", "cudnn", graph, 2.7),
		newRecord(128, "auto", "persistent", graph, 1), newRecord(128, "cudnnstyle", "cudnnstyle", graph, 1.5), newRecord(128, "pytorch", "pytorch", nil, 5),
		newRecord(160, "persistent", "persistent", graph, 1),
	}
	recs[6].Floor = &record.Floor{Bound: "exchange", Share: 0.4}
	rep, err := e.Report(recs, gpu)
	if err != nil {
		t.Fatal(err)
	}
	text := func(tab *table.Table) (rows []string) {
		for _, row := range tab.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, c.Text)
			}
			rows = append(rows, strings.Join(cells, "; "))
		}
		return rows
	}
	for i, want := range [][]string{
		// 64: the twin is the fastest; 96: twice the fastest; 128: auto is the fastest.
		{"all; 3; 0.794; 0.50; 1; 1.64; 0.90; 0; 7.07; 5.00; 0", "forward; 3; 0.794; 0.50; 1; 1.64; 0.90; 0; 7.07; 5.00; 0", "fp32; 3; 0.794; 0.50; 1; 1.64; 0.90; 0; 7.07; 5.00; 0"},
		{"lstm forward H=96 B=1 T=10 L=1; cudnnstyle:graph=1; 3.00 s; persistent; 0.50; 0.90; –; exchange; 40 %",
			"lstm forward H=64 B=1 T=10 L=1; persistent:graph=1; 2.00 s; persistent; 1.00; 3.00; 10.0; –; –",
			"lstm forward H=128 B=1 T=10 L=1; persistent:graph=1; 1.00 s; auto; 1.00; –; 5.00; –; –"},
	} {
		if got := text(rep.Tables[i]); !slices.Equal(got, want) {
			t.Errorf("table %d:\n%s\nwant\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for _, want := range []string{"rests on: predicted at 3.", "auto is 0.794× (0.776 to 0.812) as fast as the fastest of rnnbench's techniques (geometric mean of 3 layers; lowest 0.50×; clearly below 0.90× at 1)", "auto is 1.64× (1.53 to 1.76) as fast as cuDNN's fastest algorithm (geometric mean of 2 layers; lowest 0.90×; clearly below 0.95× at 0, perhaps at 1 more)", "auto has no time at 1 layer"} {
		if about(rep, want) == "" {
			t.Errorf("no finding says %q: %q", want, rep.Findings)
		}
	}
	if len(rep.Claims) != 3 {
		t.Errorf("claims %+v", rep.Claims)
	}
}
