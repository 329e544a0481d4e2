package experiments_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/record"
)

// TestBaseIsNotThePart: without passes of more than 32 sequences, the part of each of 16 devices would
// be compared with itself. With them, one claim a technique is answered, of the library's products.
func TestBaseIsNotThePart(t *testing.T) {
	for _, c := range []struct {
		leave func(record.Record) bool
		none  bool
	}{
		{func(r record.Record) bool { return r.Point.Batch > 32 && !strings.Contains(r.Impl.Label, "replica") }, true},
		{func(record.Record) bool { return false }, false},
	} {
		rep := reportWithout(t, "diamos-fig5", c.leave)
		for _, words := range []string{"products scale well", "persistent kernels scale"} {
			got := outcomes(rep, words)
			if len(got) != 1 || (got[0] == study.Unmeasured) != c.none {
				t.Errorf("%s: %v, not measured must be %t", words, got, c.none)
			}
		}
	}
}

// TestFormsOfFigure3: the fastest form of each technique counts, and the report says which form is
// missing.
func TestFormsOfFigure3(t *testing.T) {
	const form = "persistent, tensor cores"
	recs := planned(t, "diamos-fig3", gpu)
	simt := "simt"
	for i, r := range recs {
		if r.Impl.Label == "persistent" {
			recs[i].Kernels = []record.Kernel{{Name: "k", Variant: &simt, Launches: 1}}
		}
	}
	at64 := func(recs []record.Record) string {
		return about(report(t, "diamos-fig3", recs, gpu), "At minibatch 64")
	}
	if s := at64(faster(without(recs, form), "persistent", 9)); !strings.Contains(s, "not the technique at its best") {
		t.Errorf("without the form: %q", s)
	}
	if s := at64(faster(recs, form, 8)); !strings.HasPrefix(s, "At minibatch 64, the fastest form of the persistent layer is ") || strings.Contains(s, "tensor cores") {
		t.Errorf("with the form: %q", s)
	}
	slow, fast := at64(without(recs, form)), at64(faster(recs, form, 8))
	if slow == fast {
		t.Errorf("the form on tensor cores does not count: %q", slow)
	}
}

// TestTrainedIsMeasured: stacks that trained answer how deep they can be. Without them, the answer is
// computed, and says so.
func TestTrainedIsMeasured(t *testing.T) {
	const hundred = "over 100 layers"
	if got := outcomes(report(t, "diamos-memory", nil, gpu), hundred); !slices.Equal(got, []study.Outcome{study.ComputedDiffers}) {
		t.Errorf("without records: %v", got)
	}
	p := record.Point{Cell: "rnn-relu", Pass: "train", Hidden: 1152, Input: 1152, Layers: 42, Batch: 4, Steps: 3000, Precision: "fp32"}
	for memory, want := range map[int64]study.Outcome{12_390_000_000: study.Differs, 4_900_000_000: study.Agrees} {
		r := record.Record{Status: record.OK, Device: "cuda-synthetic", Impl: record.Impl{Name: "persistent", Label: "persistent"}, Point: p,
			Stats: &record.Stats{N: 6, Median: 1}, Work: record.Work{Memory: memory}}
		if got := outcomes(report(t, "diamos-memory", []record.Record{r}, gpu), hundred); !slices.Equal(got, []study.Outcome{want}) {
			t.Errorf("42 layers in %d bytes: %v, want %s", memory, got, want)
		}
	}
}

// TestModelOnOtherPoints: layers to which the model was not fitted are planned, and the report counts
// them apart from those to which it was.
func TestModelOnOtherPoints(t *testing.T) {
	e, err := experiments.Lookup("diamos-fig6")
	if err != nil {
		t.Fatal(err)
	}
	var full []record.Point
	for _, part := range e.Parts(study.Full, gpu) {
		full = append(full, part.Points...)
	}
	m, err := model.Load("h200")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	measured := func(hidden int, seconds float64) record.Record {
		i := slices.IndexFunc(full, func(p record.Point) bool { return p.Cell == "gru" && p.Hidden == hidden && p.Batch == 4 })
		if i < 0 {
			t.Fatalf("gru with %d units is not planned", hidden)
		}
		return record.Record{Point: full[i], Device: "cuda-synthetic", Status: record.OK, Impl: record.Impl{Name: "persistent", Label: "persistent"},
			Samples: &record.Samples{Wall: []float64{seconds}}, Stats: &record.Stats{Median: seconds}}
	}
	for _, c := range []struct {
		recs []record.Record
		want string
	}{
		{[]record.Record{measured(1024, 1)}, "at 0 of 1 points; its constants were fitted to such layers"},
		{[]record.Record{measured(1280, 1), measured(1792, 1), measured(1024, 1)}, "at 0 of 2 points to which its constants were not fitted, and at 0 of 1 like those"},
		{[]record.Record{measured(1280, 1)}, "at 0 of 1 points."},
	} {
		rep, err := e.On(record.Device{Key: "cuda-synthetic", Machine: json.RawMessage(text)}, c.recs)
		if err != nil {
			t.Fatal(err)
		}
		if said := about(rep, "within 25 %"); !strings.Contains(said, c.want) {
			t.Errorf("%q; want %q", said, c.want)
		}
		if about(rep, "the ranking too: no TitanX was measured here") == "" {
			t.Errorf("no finding says what is predicted: %q", rep.Findings)
		}
	}
}
