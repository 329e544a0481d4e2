package experiments_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
	"rnnbench/rnn/cell"
)

// TestRivalsAtTheirBest: at full size on a GPU, the experiments that quote cuDNN run each of its
// algorithms, as a graph and launched by the host. The one that is compiled for each layer may be
// missing where its weights do not fit on chip.
func TestRivalsAtTheirBest(t *testing.T) {
	for _, id := range []string{"appleyard-table1", "appleyard-fig1", "appleyard-fig2", "diamos-fig3", "diamos-speech", "cudnn-stacks", "cudnn-fp32", "cudnn-bf16", "cudnn-fp16", "cudnn-train"} {
		e, err := experiments.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		quoted := 0
		for _, part := range e.Parts(study.Full, gpu) {
			forms := map[[2]int]bool{}
			for _, s := range part.Specs {
				if s.Name == "cudnn" {
					forms[[2]int{s.Knobs["algorithm"], s.Knobs["graph"]}] = true
				}
			}
			if len(forms) == 0 {
				continue // of products of a large layer, or of one layer
			}
			quoted++
			for algorithm := range 4 {
				for graph := range 2 {
					p := part.Points[0]
					large := 4*cell.Lookup(p.Cell).Recurrent*p.Hidden*p.Hidden > 32<<20
					if !forms[[2]int{algorithm, graph}] && !(algorithm == 2 && large) {
						t.Errorf("%s: %v: algorithm %d with graph=%d is missing", id, p, algorithm, graph)
					}
				}
			}
		}
		if quoted == 0 {
			t.Errorf("%s does not measure cuDNN", id)
		}
	}
}

// TestPlain: fp32, and no other precision, is also measured by multiply-adds alone. The report
// compares both with cuDNN. Without such records it says nothing of them.
func TestPlain(t *testing.T) {
	for _, id := range []string{"cudnn-stacks", "cudnn-fp32", "cudnn-bf16", "cudnn-train"} {
		e, err := experiments.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range e.Parts(study.Full, gpu) {
			n := 0
			for _, s := range part.Specs {
				if strings.HasSuffix(s.Label, "plain FMA") {
					n++
					if s.Knobs["split"] != 2 || s.Knobs["narrow"] != 2 || s.Name == "persistent" && s.Knobs["tensor"] != 2 {
						t.Errorf("%s: %s has %v", id, s.Label, s.Knobs)
					}
				}
			}
			for _, p := range part.Points {
				if (n > 0) != (p.Precision == "fp32") {
					t.Errorf("%s: %v has %d forms by multiply-adds alone", id, p, n)
				}
			}
		}
	}
	all := planned(t, "cudnn-fp32", gpu)
	const words = "fp32 by multiply-adds alone"
	if s := about(report(t, "cudnn-fp32", all, gpu), words); !strings.Contains(s, "as fast as cuDNN's fastest algorithm") {
		t.Errorf("%q", s)
	}
	old := slices.DeleteFunc(slices.Clone(all), func(r record.Record) bool { return strings.HasSuffix(r.Impl.Label, "plain FMA") })
	if s := about(report(t, "cudnn-fp32", old, gpu), words); s != "" {
		t.Errorf("without such records: %q", s)
	}
}

// TestBarrierAlone: the latencies of a barrier and of a launch are compared if the device has both.
// Else the claim is not measured.
func TestBarrierAlone(t *testing.T) {
	e, err := experiments.Lookup("diamos-barrier")
	if err != nil {
		t.Fatal(err)
	}
	recs := synthetic(e, gpu)
	claim := func(facts map[string]string) study.Claim {
		rep, err := e.On(record.Device{Key: "cuda-synthetic", Facts: facts}, recs)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(rep.Claims, func(c study.Claim) bool { return strings.HasPrefix(c.Paper, "a barrier has about a tenth") })
		if i < 0 {
			t.Fatalf("%+v", rep.Claims)
		}
		return rep.Claims[i]
	}
	if c := claim(map[string]string{"barrier": "500 ns", "launches": "5.00 µs", "in a graph": "1.00 µs"}); c.Outcome != study.Agrees || !strings.Contains(c.Here, "10.0×") {
		t.Errorf("%+v", c)
	}
	far := 9e-6
	recs[0].Launch = &far
	if c := claim(map[string]string{"barrier": "500 ns", "launches": "5.00 µs"}); c.Outcome != study.CannotTell || !strings.Contains(c.Here, "10.0× (9.52 to 18.9)") {
		t.Errorf("with launches far apart: %+v", c)
	}
	if c := claim(nil); c.Outcome != study.Unmeasured || c.Verdict() != "not measured" {
		t.Errorf("%+v", c)
	}
}

// TestLongBeatsMany: one long sequence is compared with many short ones if both were measured.
func TestLongBeatsMany(t *testing.T) {
	newRecord := func(label, cell string, steps, batch int, seconds float64) record.Record {
		lo, hi := 0.99*seconds, 1.01*seconds
		return record.Record{Status: record.OK, Device: "cuda-synthetic", Impl: record.Impl{Name: "scan", Label: label}, Stats: &record.Stats{N: 6, Median: seconds, Lo: &lo, Hi: &hi},
			Point: record.Point{Cell: cell, Pass: "train", Layers: 2, Steps: steps, Batch: batch, Precision: "fp32"}}
	}
	scan, lstm := newRecord("LS-LSTM, scan", "ls-lstm", 8192, 1, 8.192e-3), newRecord("LSTM", "lstm", 256, 256, 131.072e-3)
	for _, c := range []struct {
		recs []record.Record
		want study.Outcome
	}{{[]record.Record{scan, lstm}, study.Agrees}, {[]record.Record{scan}, study.Unmeasured}} {
		rep := report(t, "martin-fig1", c.recs, gpu)
		i := slices.IndexFunc(rep.Claims, func(c study.Claim) bool { return strings.Contains(c.Paper, "8192 events") })
		if i < 0 || rep.Claims[i].Outcome != c.want {
			t.Errorf("%d records: %+v, want %s", len(c.recs), rep.Claims, c.want)
		}
	}
}

// TestBarrierNamesKernels: if more units take less time, the report names the kernels of both sizes.
func TestBarrierNamesKernels(t *testing.T) {
	recs := faster(planned(t, "diamos-barrier", gpu), "product and cell per step", 1)
	largest := recs[len(recs)-1].Point
	for i, r := range recs {
		if r.Impl.Label != "product and cell per step" {
			continue
		}
		recs[i].Kernels = []record.Kernel{{Name: "once", Launches: 1}, {Name: "product", Launches: r.Point.Steps}}
		if r.Point == largest {
			recs[i].Stats.Median /= 1000
			recs[i].Kernels[1].Name = "narrow"
		}
	}
	want := fmt.Sprintf("and narrow at %d.", largest.Hidden)
	if s := about(report(t, "diamos-barrier", recs, gpu), "falls from"); !strings.Contains(s, "A step launches product at ") || !strings.HasSuffix(s, want) {
		t.Errorf("%q, want the kernels, and %q at the end", s, want)
	}
	for i := range recs {
		recs[i].Kernels = nil
	}
	if s := about(report(t, "diamos-barrier", recs, gpu), "falls from"); !strings.HasSuffix(s, "the cause is not known.") {
		t.Errorf("without kernels: %q", s)
	}
}

// TestLaunchesLimit: where graphs alone reach the paper's factor, the report names launches as the cause.
func TestLaunchesLimit(t *testing.T) {
	recs := planned(t, "hwang-fig3", gpu)
	for i, r := range recs {
		s := *r.Stats
		s.Median = map[string]float64{"baseline": 1, "baseline, graph": 0.9, "scc": 0.2, "scc, graph": 0.05}[r.Impl.Label]
		recs[i].Stats = &s
	}
	const words = "Elman network, one stream: parallelism across steps makes training"
	if s := about(report(t, "hwang-fig3", recs, gpu), words); !strings.Contains(s, "They disagree because launches limit it here: replayed as a graph, it is 20.0 times") {
		t.Errorf("%q", s)
	}
	if s := about(report(t, "hwang-fig3", without(recs, "scc, graph"), gpu), words); !strings.HasSuffix(s, "the cause is not known.") {
		t.Errorf("without a graph: %q", s)
	}
}

// TestOneFormOfVendor: the figure of LSTMs draws the fastest form of NVIDIA's library alone, in one panel.
func TestOneFormOfVendor(t *testing.T) {
	for _, f := range report(t, "martin-fig1", planned(t, "martin-fig1", gpu), gpu).Figures {
		if f.Name != "martin-fig1-lstm" {
			continue
		}
		panels := f.Figure.(*plots.Chart).Panels
		if len(panels) != 1 {
			t.Fatalf("%d panels", len(panels))
		}
		var vendors []string
		for _, s := range panels[0].Series {
			if strings.HasPrefix(s.Label, "cudnn ") {
				vendors = append(vendors, s.Label)
			}
		}
		if !slices.Equal(vendors, []string{"cudnn fastest form"}) {
			t.Errorf("%q", vendors)
		}
		return
	}
	t.Error("the figure is missing")
}
