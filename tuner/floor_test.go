package tuner_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// floorOnH200 is the floor of a technique at a point on an H200, launches included.
func floorOnH200(t *testing.T, name string, p record.Point, knobs knob.Params) *model.Floor {
	t.Helper()
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load("h200")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tuner.LayOut(d, impl.All(), p, grid.Spec{Name: name, Label: name, Knobs: knobs})
	if err != nil || l.Reason != "" {
		t.Fatal(err, l.Reason)
	}
	e, err := d.Explain(l.Schedule, l.DeviceKnobs)
	if err != nil {
		t.Fatal(err)
	}
	f, err := tuner.Floor(m, l, tuner.Kernels(e.Kernels), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// exchanges counts the steps that follow each other in f.
func exchanges(f *model.Floor) float64 {
	for _, p := range f.Parts {
		if p.Bound == model.BoundExchange {
			return p.Count
		}
	}
	return 0
}

// bytesOf is the bytes that pass through the L2: all of them.
func bytesOf(f *model.Floor) int64 { return f.Bytes()["L2"] }

// TestFloor compares floors of schedules on an H200 with counts by hand.
func TestFloor(t *testing.T) {
	p := record.Point{Cell: "lstm", Pass: "forward", Hidden: 256, Input: 128, Batch: 4, Steps: 50, Layers: 1, Precision: "fp32"}
	f := floorOnH200(t, "persistent", p, nil)
	if f.Bound != model.BoundExchange || math.Abs(f.Seconds-50*0.3e-6) > 1e-12 || exchanges(f) != 50 {
		t.Errorf("50 steps in clusters: %+v", f)
	}
	if want := int64(4 * (4*256*(128+256) + 4*50*(128+256))); bytesOf(f) != want {
		t.Errorf("weights, inputs and states are %d bytes: %+v", want, f)
	}
	p.Precision, p.OneHot, p.Output = "bf16", true, 10
	if f, want := floorOnH200(t, "persistent", p, nil), int64(2*(4*256*256+256*10)+4*4*50+2*4*50*256); bytesOf(f) != want {
		t.Errorf("with a look-up they are %d bytes: %+v", want, f)
	}
	p.Precision, p.OneHot, p.Output = "fp32", false, 0
	p.Pass = "train"
	if f := floorOnH200(t, "persistent", p, nil); exchanges(f) != 100 {
		t.Errorf("training has %v exchanges, want 50 forward and 50 back", exchanges(f))
	}
	p.Pass, p.Layers, p.Input = "forward", 4, 256
	alone, wave, stack := floorOnH200(t, "persistent", p, knob.Params{"stack": 2}), floorOnH200(t, "persistent", p, knob.Params{"streams": 8}), floorOnH200(t, "persistent", p, knob.Params{"stack": 1})
	if n := exchanges(alone); n != 200 {
		t.Errorf("four layers have %v exchanges, want 200", n)
	}
	for name, f := range map[string]*model.Floor{"a wave": wave, "a stack": stack} {
		if n := exchanges(f); math.Abs(n-53) > 1e-9 {
			t.Errorf("%s of four layers has %v exchanges one after another, want 53", name, n)
		}
	}
	headed := record.Point{Cell: "lstm", Pass: "forward", Hidden: 2048, Input: 128, Batch: 4, Steps: 50, Layers: 1, Precision: "fp32", Heads: 4}
	for streams, want := range map[int]float64{1: 200, 8: 50} {
		f := floorOnH200(t, "persistent", headed, knob.Params{"streams": streams})
		if exchanges(f) != want || bytesOf(f) != int64(4*(4*2048*(128+512)+4*50*(128+2048))) {
			t.Errorf("4 heads on %d streams: %v exchanges and %d bytes, want %v exchanges", streams, exchanges(f), bytesOf(f), want)
		}
	}
	scan := record.Point{Cell: "gilr", Pass: "forward", Hidden: 1024, Input: 512, Batch: 2, Steps: 4096, Layers: 1, Precision: "fp32"}
	f = floorOnH200(t, "scan", scan, knob.Params{"inputbatch": 256})
	values := 3*1024*2*4096 + 1024*2 // gates, states, and the first states
	if want := int64(4 * (2*1024*512 + 512*2*4096 + values)); math.Abs(float64(bytesOf(f)-want)) > 0.005*float64(want) || f.Bound != model.BoundLaunch {
		t.Errorf("a scan moves %d bytes by %s, want about %d", bytesOf(f), f.Bound, want)
	}
	if f := floorOnH200(t, "scan", scan, knob.Params{"inputbatch": 256, "graph": 1}); f.Bound != model.BoundProducts {
		t.Errorf("in a graph, a scan is bound by %s", f.Bound)
	}
}

// TestFoldedFloor: a persistent layer with a projection has H × H recurrent weights and one step fewer than the
// run.
func TestFoldedFloor(t *testing.T) {
	m, err := model.Load("xeon")
	if err != nil {
		t.Fatal(err)
	}
	floor := func(steps, projection int) *model.Floor {
		p := record.Point{Cell: "lstm", Pass: "forward", Hidden: 512, Input: 64, Batch: 1, Steps: steps, Layers: 1, Precision: "fp32", Projection: projection}
		l, err := tuner.LayOut(open(t), impl.All(), p, grid.Spec{Name: "persistent", Label: "persistent"})
		if err != nil || l.Reason != "" {
			t.Fatal(err, l.Reason)
		}
		f, err := tuner.Floor(m, l, nil, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if plain, folded := floor(50, 0), floor(51, 128); plain.Chain <= 0 || folded.Chain != plain.Chain {
		t.Errorf("51 steps with a projection take %v s, but 50 without take %v s", folded.Chain, plain.Chain)
	}
}

// TestRecordFloor: a record from a processor has a floor if the machine is known.
func TestRecordFloor(t *testing.T) {
	m, err := model.Load("xeon")
	if err != nil {
		t.Fatal(err)
	}
	p := small()
	p.Cell, p.Hidden = cell.GRU.Name, 64
	run := func(m *model.Machine) record.Record {
		recs, err := sweep(t, &tuner.Sweep{Device: open(t), Machine: m, Settings: quick()}, t.Context(), []record.Point{p}, specs(t, "persistent"))
		if err != nil || len(recs) != 1 || recs[0].Status != record.OK {
			t.Fatalf("records are %+v", recs)
		}
		return recs[0]
	}
	if f := run(nil).Floor; f != nil {
		t.Errorf("on an unknown machine, the floor is %+v", f)
	}
	rec := run(m)
	f := rec.Floor
	if f == nil || f.Seconds <= 0 || math.Abs(f.Share-f.Seconds/rec.Stats.Median) > 1e-12 || f.Bound == "" || f.Error != nil || len(f.Bytes) == 0 {
		t.Fatalf("the floor is %+v", f)
	}
	if largest := slices.Max(slices.Collect(maps.Values(f.Parts))); largest > f.Seconds {
		t.Errorf("a part takes %v s, and the floor is %v s", largest, f.Seconds)
	}
}

// TestFloorBelowRecords: recorded runs on an H200 took no less than their floors, apart from the error
// of the machine's measured rates. Small layers come near the floor of the exchange.
func TestFloorBelowRecords(t *testing.T) {
	type row struct {
		technique, point string // of cell, pass, precision, H, B, T, L, I
		seconds          float64
		least            float64 // share of the floor
	}
	for _, r := range []row{
		{"persistent", "lstm train bf16 512 1 256 1 512", 543e-6, 0.7}, // of cudnn-train
		{"persistent", "gru train fp32 1024 64 256 1 1024", 6532e-6, 0.3},
		{"persistent", "lstm forward bf16 128 32 256 1 128", 113e-6, 0.5}, // of cudnn-bf16
		{"persistent", "lstm forward bf16 128 1 256 1 128", 84.6e-6, 0.8},
		{"persistent", "gru forward bf16 1024 4 256 1 1024", 319e-6, 0.5},
		{"persistent", "rnn-tanh forward fp16 512 16 256 1 512", 146e-6, 0.4}, // of cudnn-fp16
		{"persistent", "lstm forward fp32 1024 64 256 1 1024", 2446e-6, 0.3},  // of cudnn-fp32
		{"persistent", "lstm forward bf16 512 64 100 4 512", 339e-6, 0.3},     // of cudnn-stacks
		{"scan", "gilr forward fp32 1024 1 65536 1 1", 406e-6, 0.3},           // of martin-kernel
	} {
		p := record.Point{}
		if _, err := fmt.Sscan(r.point, &p.Cell, &p.Pass, &p.Precision, &p.Hidden, &p.Batch, &p.Steps, &p.Layers, &p.Input); err != nil {
			t.Fatal(err)
		}
		knobs := knob.Params{"graph": 1}
		if r.technique == "scan" {
			knobs["inputbatch"] = p.Steps
		}
		f := floorOnH200(t, r.technique, p, knobs)
		share := f.Seconds / r.seconds
		t.Logf("%s: %.2f of the floor by %s", r.point, share, f.Bound)
		if share > 1+f.Error || share < r.least {
			t.Errorf("%s took %v s, which is %.2f of its floor by %s", r.point, r.seconds, share, f.Bound)
		}
	}
}
