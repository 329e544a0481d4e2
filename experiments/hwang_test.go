package experiments_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/record"
)

// TestSerialSteps: where 64 streams are slow since their steps run one after the other, the report says
// so, with the times that a fit of the graph gives.
func TestSerialSteps(t *testing.T) {
	e, err := experiments.Lookup("hwang-fig3")
	if err != nil {
		t.Fatal(err)
	}
	for each, want := range map[float64]string{
		20e-6: "steps run one after the other: as a graph, a minibatch takes 1.00 ms and 20.0 µs for each of h steps, by a fit, with which 64 streams reach 77 %; measured as a graph, they reach 77 %",
		1e-7:  "the cause is not known",
	} {
		recs := withTimes(recordsOf(e.Parts(study.Full, gpu)), func(r record.Record) float64 {
			if r.Impl.Label == "scc" && r.Point.Batch < 1024 {
				return 1e-2
			}
			return 1e-3 + each*float64(r.Point.Steps)
		})
		if c := claimOn(t, report(t, "hwang-fig3", recs, gpu), "Elman network: almost the maximum speed"); c.Outcome != study.Differs || c.Why != want {
			t.Errorf("%g s a step: %+v", each, c)
		}
	}
}

// TestSplitPeak: on a GPU, Figure 4 has the rate of split products as its limit, not that of
// multiply-adds in single precision.
func TestSplitPeak(t *testing.T) {
	on := gpu
	on.Halves = 741e12
	recs := planned(t, "hwang-fig4", on)
	for i := range recs {
		peak := 60e12
		recs[i].Rate = &record.Rate{Flops: 100e12, Peak: &peak, Source: record.PeakMultiplyAdds}
	}
	rep := report(t, "hwang-fig4", recs, on)
	for _, p := range rep.Figures[0].Figure.(*plots.Chart).Panels {
		if len(p.Guides) != 1 || p.Guides[0].Label != "split products 247 TFLOP/s" {
			t.Errorf("%s: %+v", p.Title, p.Guides)
		}
	}
	if s := about(rep, "Throughput at the most streams"); !strings.Contains(s, "Percentages are of 247 TFLOP/s, a third") {
		t.Errorf("%q", s)
	}
}

// TestLayersAtEqualStreams: layers of Figure 4 are compared at a number of streams that both were measured with. A
// small layer that lacks the larger numbers would look worse than it is.
func TestLayersAtEqualStreams(t *testing.T) {
	recs := slices.DeleteFunc(planned(t, "hwang-fig4", gpu), func(r record.Record) bool {
		return r.Point.Hidden == 128 && r.Point.Batch > 16
	})
	recs = withTimes(recs, func(r record.Record) float64 {
		rate := 1e9 * float64(r.Point.Batch) // the same for all layers but for the second, which is slower
		if r.Point.Hidden == 256 {
			rate /= 2
		}
		return float64(r.Work.Flops) / rate
	})
	c := claimOn(t, report(t, "hwang-fig4", recs, gpu), "utilization grows with the layer")
	if c.Outcome != study.Differs || !strings.Contains(c.Here, "16.0 GFLOP/s with 128 units and 8.00 GFLOP/s with 256, at 16 streams") {
		t.Errorf("%+v", c)
	}
}
