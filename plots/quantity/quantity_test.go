package quantity

import (
	"math"
	"strings"
	"testing"

	"rnnbench/internal/synthetic"
	"rnnbench/record"
)

func TestSpelling(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{SI(2.31e12, "FLOP/s"), "2.31 TFLOP/s"},
		{SI(777e-6, "s"), "777 µs"},
		{SI(999.7e-6, "s"), "1.00 ms"},
		{SI(0, "s"), "0 s"},
		{SI(-1.5e3, "B/s"), "-1.50 kB/s"},
		{SI(1e-15, "s"), "0.00100 ps"},
		{SI(1e21, "B"), "1000 EB"},
		{SI(math.NaN(), "s"), "n/a"},
		{SI(math.Inf(1), "s"), "n/a"},
		{SI(12, ""), "12.0"},
		{Short(2.5e11), "250G"},
		{Tick(1.5e12), "1.5T"},
		{Tick(5e11), "500G"},
		{Tick(2e12), "2T"},
		{Tick(math.NaN()), "n/a"},
		{Bytes(41e6), "39.1 MiB"},
		{Bytes(1024), "1.00 KiB"},
		{Bytes(1023.9), "1.00 KiB"},
		{Bytes(0), "0 B"},
		{Bytes(math.Inf(1)), "n/a"},
		{Size(256), "256"},
		{Size(1000), "1000"},
		{Size(1152), "1152"},
		{Size(4096), "4k"},
		{Size(1 << 20), "1M"},
		{Size(1.5), "1.5"},
		{Factor(0.931), "0.93×"},
		{Factor(11.14), "11.1×"},
		{Factor(174.9), "175×"},
		{Factor(math.NaN()), "n/a"},
		{OneLine("a\tb\n c\x00"), "a b c"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestNatural(t *testing.T) {
	for _, c := range [][2]string{{"stage 2", "stage 10"}, {"a", "b"}, {"a", "a1"}, {"1 grouped", "6 overlapped"}, {"x02", "x3"}} {
		if natural(c[0], c[1]) >= 0 || natural(c[1], c[0]) <= 0 {
			t.Errorf("%q does not come before %q", c[0], c[1])
		}
	}
}

// TestSuggest: an error suggests a near name, or none if no name is near.
func TestSuggest(t *testing.T) {
	recs := synthetic.Sweep([]int{256}, []int{32})
	recs[0].Impl.Knobs = map[string]int{"streams": 2, "tile": 8}
	for name, want := range map[string]string{
		"hiden": `unknown axis "hiden": did you mean "hidden"? Choose among cell, `,
		"til":   `did you mean "tile"? Choose among cell, `,
		"foo":   `unknown axis "foo": choose among cell, `,
	} {
		if _, err := AxisOf(name, recs); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "streams") != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCompare: numbers of streams that techniques choose are one place, whatever they are.
// Techniques keep their order there.
func TestCompare(t *testing.T) {
	recs := synthetic.Sweep([]int{256}, []int{32})
	streams, err := AxisOf("streams", nil)
	if err != nil {
		t.Fatal(err)
	}
	x, y := recs[0], recs[1]
	x.Point.Streams, y.Point.Streams, x.Impl.Streams, y.Impl.Streams = 0, 0, 2, 1
	if c := streams.Compare(&x, &y); c != 0 {
		t.Errorf("two techniques' own choices of streams compare as %d", c)
	}
	if x.Point.Streams, y.Point.Streams = 4, 2; streams.Compare(&x, &y) <= 0 {
		t.Error("four streams do not come after two")
	}
}

func TestSpeedup(t *testing.T) {
	recs := synthetic.Sweep([]int{256}, []int{32})
	m, err := MeasureOf("speedup")
	if err != nil {
		t.Fatal(err)
	}
	base := NewBaseline(recs, "naive")
	if v, ok := m.Of(&recs[0], base.For(&recs[0])); !ok || v != (Interval{1, 1, 1}) {
		t.Errorf("the baseline over itself is %v", v)
	}
	replayed := recs[1]
	replayed.Mode.Graph = true
	if b := base.For(&replayed); b == nil || b.Seconds() != recs[0].Seconds() {
		t.Errorf("the baseline of a graph is %v, want what was launched directly", b)
	}
	v, ok := m.Of(&recs[1], base.For(&recs[1]))
	want := recs[0].Seconds() / recs[1].Seconds()
	if !ok || v.Value != want || !(v.Lo < want && want < v.Hi) {
		t.Errorf("got %v, want about %v", v, want)
	}
	zeros := recs[1]
	zeros.Mode.Data = "zeros"
	if base.For(&zeros) != nil {
		t.Error("a baseline with other inputs")
	}
	// A baseline without streams also serves points with streams.
	r := recs[1]
	r.Point.Streams = 4
	if base.For(&r) == nil {
		t.Error("no baseline for four streams")
	}
	r.Point.Batch++
	if base.For(&r) != nil {
		t.Error("the baseline of another point")
	}
	if _, ok := m.Of(&r, nil); ok {
		t.Error("a speed-up over nothing")
	}
}

// TestMeasures: a measure of a broken record has no value, rather than NaN or infinity.
func TestMeasures(t *testing.T) {
	good := synthetic.Sweep([]int{256}, []int{32})[1]
	good.Floor = &record.Floor{Seconds: good.Stats.Median / 4, Bound: "exchange", Share: 0.25}
	good.Training = &record.Training{Iterations: 3, Wall: 2, Frames: 96, Loss: 1.5, HeldOut: &record.Score{Loss: 2, Top1: 0.1, Top5: 0.3, Top20: 0.9}}
	good.Rate.SetCopies(1e11)
	joules, watts := 0.4, 300.0
	good.Energy = &record.Energy{Joules: &joules, Watts: &watts, Windows: []float64{0.39, 0.4, 0.41}}
	good.Latency = synthetic.Calls([]int{256}, []int{1})[0].Latency
	if m, err := MeasureOf("floor"); err != nil {
		t.Error(err)
	} else if v, ok := m.Of(&good, nil); !ok || math.Abs(v.Value-25) > 1e-9 || v.Lo > v.Value {
		t.Errorf("a run that takes four times its floor reached %v %% of it, %t", v, ok)
	}
	rate := 0.3
	for _, m := range Measures() {
		if m.Name == "label-errors" {
			good.Training.HeldOut = &record.Score{Loss: 2, LabelErrors: &rate}
		}
		v, ok := m.Of(&good, &good)
		if !ok || v.Value <= 0 || v.Lo > v.Value || v.Hi < v.Value {
			t.Errorf("%s of a good record is %v, %t", m.Name, v, ok)
		}
		for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), 5e-324} {
			r := good
			s := *good.Stats
			s.Median, s.Lo, s.Hi = bad, &bad, &bad
			r.Stats = &s
			if v, ok := m.Of(&r, &good); ok && (math.IsInf(v.Value, 0) || math.IsNaN(v.Value) || math.IsInf(v.Hi, 0)) {
				t.Errorf("%s of a median of %v is %v", m.Name, bad, v)
			}
		}
		r := record.Record{Status: record.OK}
		if v, ok := m.Of(&r, &good); ok {
			t.Errorf("%s of an empty record is %v", m.Name, v)
		}
	}
}

func TestAxes(t *testing.T) {
	recs := synthetic.Ladder(512, 64)
	for name, want := range map[string]string{"hiden": `"hidden"`, "HIDDEN": `"hidden"`, "minibatch": `"batch"`, "stag": `"stage"`, "time": `"impl"`} {
		_, err := AxisOf(name, recs)
		if err == nil {
			t.Errorf("%q is an axis", name)
		} else if name != "time" && !strings.Contains(err.Error(), "did you mean "+want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if a, err := AxisOf("stage", recs); err != nil || a.Tag(&recs[3]) != "stage=3" {
		t.Errorf("a knob is no axis: %v", err)
	}
	all := Latest(recs)
	if left := Left(all); len(left) != 1 || left[0].Name != "impl" {
		t.Errorf("the stages differ in %v", left)
	}
	if got, want := Common(all), "lstm · forward · H=512 · B=64 · T=100 · L=4 · fp32"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	impl, err := AxisOf("impl", nil)
	if err != nil {
		t.Fatal(err)
	}
	launch, err := AxisOf("graph", nil)
	if err != nil {
		t.Fatal(err)
	}
	both := []Axis{impl, launch}
	launched := synthetic.Ladder(512, 64)
	for i := range launched {
		launched[i].Mode.Graph = i%2 == 0
	}
	if few := Fewest(Latest(launched), both); len(few) != 1 || few[0].Name != "impl" {
		t.Errorf("a label says how each is launched, and %v is wanted", few)
	}
	again := synthetic.Ladder(512, 64)
	again[0].Mode.Graph = !launched[0].Mode.Graph
	if few := Fewest(Latest(append(launched, again[0])), both); len(few) != 2 {
		t.Errorf("one is launched both ways, and %v is wanted", few)
	}
	chosen, tuned := Choose(all, impl)
	if len(chosen) != 7 || tuned || Label(chosen[6]) != "6 layers overlapped" {
		t.Errorf("%d stages, tuned %t", len(chosen), tuned)
	}
	hidden, err := AxisOf("hidden", nil)
	if err != nil {
		t.Fatal(err)
	}
	best, tuned := Choose(all, hidden)
	if len(best) != 1 || !tuned || Label(best[0]) != "6 layers overlapped" {
		t.Errorf("the best is %v", best)
	}
}

// TestSeconds: Seconds parses times that SI formats, and nothing else.
func TestSeconds(t *testing.T) {
	for text, want := range map[string]float64{"1.26 µs": 1.26e-6, "552 ns": 552e-9, "3.00 ms": 3e-3, "2.00 s": 2, "": 0, "1.26": 0, "9.14.0": 0, "51.1 TFLOP/s": 0, "-1 s": 0, "NaN s": 0, "n/a": 0} {
		if got := Seconds(text); got < 0.999999*want || got > 1.000001*want {
			t.Errorf("%q is %g, want %g", text, got, want)
		}
	}
	for text, want := range map[string]float64{"53.1 GB/s": 53.1e9, "4.00 TB/s": 4e12, "9.00 B/s": 9, "1.26 µs": 0, "": 0, "1.00 XB/s": 0, "5.00 FLOP/s": 0} {
		if got := BytesPerSecond(text); got < 0.999999*want || got > 1.000001*want {
			t.Errorf("%q is %g, want %g", text, got, want)
		}
	}
}
