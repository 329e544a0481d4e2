package explain_test

import (
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/explain"
	"rnnbench/tuner/grid"
)

// of explains a technique at a point on an H200.
func of(t *testing.T, name string, p results.Point) (*explain.Explanation, string) {
	t.Helper()
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tuner.LayOut(d, impl.All(), p, grid.Spec{Name: name, Label: name})
	if err != nil {
		t.Fatal(err)
	}
	e, err := explain.New(l, d, device.Limits{FLOPS: 1e12, Copy: 1e12})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load("h200")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.AddFloor(m, l); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, x := range append(e.Tables("title", []string{"a note"}), e.PassTable()) {
		if err := x.Write(&b, "markdown", table.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	return e, b.String()
}

func TestNew(t *testing.T) {
	p := results.Point{Cell: "gru", Pass: "forward", Hidden: 256, Input: 256, Batch: 8, Steps: 20, Layers: 3, Precision: "fp32"}
	e, text := of(t, "persistent", p)
	total := 0
	for _, c := range e.Choices {
		total += c.Count
	}
	if total != 3 && !strings.Contains(e.Choices[0].Layer, "stack") {
		t.Errorf("of three layers, choices are %+v", e.Choices)
	}
	for _, want := range []string{"a note", "lower bounds: ", "Kernels of one run", "Variants for a gru ", "predicted time of the persistent layers", "steps of ", " µs to start and end", "source of ", "floor: a run takes at least ", "floor: launch: ", "registers and spills are unknown"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from %s", want, text)
		}
	}
	if e, text := of(t, "naive", p); len(e.Choices) != 0 || e.Expected != nil || e.Floor != nil || len(e.Kernels) == 0 || strings.Contains(text, "predicted") {
		t.Errorf("without persistent layers: %+v\n%s", e, text)
	}
	p.Streams = 4
	if e, _ := of(t, "naive", p); e.Declined == nil || e.Kernels != nil {
		t.Errorf("of what is declined: %+v", e)
	}
}
