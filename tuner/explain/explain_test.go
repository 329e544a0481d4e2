package explain_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/explain"
	"rnnbench/tuner/grid"
)

// of explains a technique at a point on an H200. It also returns the tables as text.
func of(t *testing.T, name string, p record.Point) (*explain.Explanation, string) {
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
	p := record.Point{Cell: "gru", Pass: "forward", Hidden: 256, Input: 256, Batch: 8, Steps: 20, Layers: 3, Precision: "fp32"}
	e, text := of(t, "persistent", p)
	total := 0
	for _, c := range e.Choices {
		total += c.Count
	}
	if total != 3 && !strings.Contains(e.Choices[0].Layer, "stack") {
		t.Errorf("of three layers, choices are %+v", e.Choices)
	}
	for _, want := range []string{"a note", "lower bounds: ", "Kernels of one run", "Variants for a gru ", "predicted time of the persistent layers", "steps of ", " µs to start and end", "source of ", "floor: a run takes at least ", "floor: launch: ", "floor: bound by exchange: ", "registers and spills are unknown"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from %s", want, text)
		}
	}
	if e, text := of(t, "naive", p); len(e.Choices) != 0 || e.Expected != nil || e.Floor == nil || len(e.Kernels) == 0 || strings.Contains(text, "predicted") {
		t.Errorf("without persistent layers: %+v\n%s", e, text)
	}
	p.Streams = 4
	if e, _ := of(t, "naive", p); e.Declined == nil || e.Kernels != nil {
		t.Errorf("of what is declined: %+v", e)
	}
}

// TestCall: the explanation of calls says what the host moves, and that states stay on the device.
func TestCall(t *testing.T) {
	p := record.Point{Cell: "lstm", Pass: "forward", Hidden: 640, Input: 640, Batch: 16, Steps: 1, Calls: 4000, Layers: 2, Precision: "bf16"}
	for _, name := range []string{"naive", "cudnnstyle", "persistent", "scc"} {
		e, text := of(t, name, p)
		want := explain.Call{Written: 40960, Read: 40960, Kept: 4 * 40960}
		if e.Call == nil || *e.Call != want || !strings.Contains(text, "a call: the host writes 40.0 KiB, one run, the host reads 40.0 KiB; states of 160 KiB stay on the device") {
			t.Errorf("%s: %+v\n%s", name, e.Call, text)
		}
		if strings.Contains(text, "| pack ") || strings.Contains(text, "map_copy") || !strings.Contains(text, "copy_several") {
			t.Errorf("%s packs weights in each call, or copies each state by a launch of its own:\n%s", name, text)
		}
	}
	p.Calls = 0
	if e, text := of(t, "naive", p); e.Call != nil || strings.Contains(text, "a call") {
		t.Errorf("of a whole sequence: %+v", e.Call)
	}
}

// TestMeasure: measured operations have shares that add up to a run with what is outside them, and
// the table says how far the measurement disturbs.
func TestMeasure(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := record.Point{Cell: "lstm", Pass: "train", Hidden: 24, Input: 24, Batch: 2, Steps: 5, Layers: 1, Precision: "fp32"}
	for _, name := range []string{"naive", "persistent"} {
		l, err := tuner.LayOut(d, impl.All(), p, grid.Spec{Name: name, Label: name})
		if err != nil {
			t.Fatal(err)
		}
		e, err := explain.New(l, d, device.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if e.Measured != nil {
			t.Error("it was not run")
		}
		if err := e.Measure(context.Background(), d, l, config.Default()); err != nil {
			t.Fatal(err)
		}
		m, all := e.Measured, 0.0
		for i, op := range m.Operations {
			all += op.Share
			if op.Predicted == nil || !(op.Each > 0) || i > 0 && op.Seconds > m.Operations[i-1].Seconds {
				t.Errorf("%s: %+v", name, op)
			}
		}
		if all += m.Outside / m.Run; math.Abs(all-1) > 1e-6 {
			t.Errorf("%s: shares add up to %g", name, all)
		}
		var b strings.Builder
		for _, x := range e.Tables("title", nil) {
			if err := x.Write(&b, "table", table.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []string{"Measured time of operations", "outside", "with this measurement and ", "of a run without this measurement", "FLOP/s"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%q is missing from %s", want, b.String())
			}
		}
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "|") && utf8.RuneCountInString(line) > 81 {
				t.Errorf("a row is wider than 80 columns: %s", line)
			}
		}
		if strings.Contains(b.String(), "workers have nothing to do") {
			t.Errorf("one worker waits for others: %s", b.String())
		}
	}
}
