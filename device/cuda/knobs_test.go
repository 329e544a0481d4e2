package cuda_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestKnobsReachTheKernel: each setting of a knob is in the kernel that runs, or is declined in a
// sentence that says why. None is ignored.
func TestKnobsReachTheKernel(t *testing.T) {
	layer := func(c *cell.Cell, hidden, batch, layers int, p schedule.Precision) devicetest.Layer {
		return devicetest.Layer{Cell: c, Hidden: hidden, Batch: batch, Steps: 20, Layers: layers, Precision: p}
	}
	one, many := layer(cell.LSTM, 512, 16, 1, schedule.FP32), layer(cell.LSTM, 512, 64, 4, schedule.BF16)
	back := devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 20, Backward: true}
	large := layer(cell.LSTM, 1536, 16, 1, schedule.FP32)
	for _, test := range []struct {
		devicetest.Layer
		knobs string
		want  string // of the last kernel's constants, or of the reason
	}{
		{one, "cluster=8", "!cluster=8: unsupported: no configuration"},
		{one, "cluster=16", "SPREAD = 0, CLUSTER = 16,"},
		{one, "groups=1", "SPREAD = 1, CLUSTER ="},
		{one, "groups=4", "SPREAD = 1, CLUSTER = 32,"},
		{one, "samples=2:tensor=2", "SAMPLES = 2,"},
		{one, "tile=2:lanes=32:tensor=2", "TILE = 2, LANES = 32,"},
		{one, "tile=8:lanes=16:tensor=1", "BAND = 8, SPLIT = 4,"},
		{one, "resident=2", "SPREAD = 1,"},
		{one, "resident=4", "SLOTS ="},
		{one, "resident=5", "PARTS ="},
		{one, "resident=4:tensor=2", "!resident=4 (mma-bulk): unsupported: no configuration"},
		{one, "resident=5:tensor=2", "!resident=5 (mma-poll): unsupported: no configuration"},
		{one, "resident=1:groups=2", "!groups=2: unsupported: no configuration"},
		{one, "resident=2:cluster=8", "!cluster=8: unsupported: no configuration"},
		{one, "cluster=8:groups=2", "!unsupported: no configuration"},
		{one, "tile=5:tensor=1", "!tensor=1: unsupported: no configuration"},
		{one, "resident=3", "enum { GATES = 4, ROWS = 4,"},
		{one, "resident=3:tensor=2", "enum { GATES = 4, ROWS = 4,"},
		{one, "resident=3:functions=1", "enum { GATES = 4, ROWS = 4,"},
		{one, "resident=3:functions=2", "!functions=2: unsupported: the barrier kernel"},
		{one, "resident=3:clocks=1", "!clocks=1: unsupported"},
		{one, "resident=3:tensor=1", "!tensor=1: unsupported: the barrier kernel"},
		{one, "resident=3:groups=1", "!groups=1: unsupported: the barrier kernel"},
		{one, "resident=3:samples=4", "!samples=4: unsupported: the barrier kernel"},
		{one, "resident=3:share=2", "!share=2: unsupported: the barrier kernel"},
		{one, "back=1", "!back=1: unsupported: no gradient"},
		{one, "clocks=1:functions=2", "CLOCKS = 1"},
		{layer(cell.RNNReLU, 512, 16, 1, schedule.FP32), "resident=4", "!resident=4 (mma-bulk): unsupported"},
		{layer(cell.RNNReLU, 512, 16, 1, schedule.FP32), "resident=4:tensor=1", "SLOTS ="},
		{layer(cell.LSTM, 256, 128, 1, schedule.FP32), "", "SPLIT = 2,"},
		{layer(cell.LSTM, 256, 128, 1, schedule.FP32), "samples=24:tile=8:lanes=16:tensor=1:resident=1", "!the 24 sequences cannot be shared evenly by the 4 warps of a band"},
		{one, "samples=3:tensor=2", "!3 sequences are not a power of two"},
		{large, "", "SPREAD = 1, CLUSTER = 128,"},
		{large, "tensor=1", "PASSING ="},
		{large, "share=2", "CLUSTER = 64, UNITS = 24, BAND = 24,"},
		{large, "resident=2:share=2", "!threads, of at most 1024"},

		{one, "resident=7", "PASSING ="},
		{one, "resident=7:ring=3:stage=2:near=1:lanes=8", "SPLIT = 2, CHUNKS = 16, NEAR = 1, PASSING = 2, STAGE = 2, RING = 3,"},
		{one, "ring=3", "!ring=3: unsupported: no configuration"},
		{one, "resident=7:groups=2", "!resident=7 (stream): unsupported: no configuration"},
		{one, "resident=7:tensor=2", "!resident=7 (stream): unsupported: no configuration"},

		{many, "stack=1", "SAMPLES = 16,"},
		{many, "stack=1:samples=8", "SAMPLES = 8,"},
		{many, "stack=1:samples=24", "SAMPLES = 24,"},
		{many, "stack=1:samples=5", "!stack=1: unsupported: no layers run as one kernel: 5 sequences are not a multiple of 8"},
		{many, "stack=1:groups=1", "SEQUENCES = 64,"},
		{many, "stack=1:groups=2", "LAYERS = 2, BLOCKS = 32, SEQUENCES = 32,"},
		{many, "stack=1:groups=8", "!stack=1: unsupported: no layers run as one kernel: 8 groups of 2 layers do not fit, at most 2 do"},
		{many, "stack=1:tensor=1", "SAMPLES = 16,"},
		{many, "stack=1:functions=1", "Quick"},
		{many, "stack=1:clocks=1", "CLOCKS = 1"},
		{many, "stack=1:tensor=2", "!tensor=2: unsupported: layers that run as one kernel have"},
		{many, "stack=1:resident=5", "!resident=5 (mma-poll): unsupported: layers that run as one kernel have"},
		{many, "stack=1:cluster=2", "!cluster=2: unsupported: layers that run as one kernel have"},
		{many, "stack=1:tile=8", "!tile=8: unsupported: layers that run as one kernel have"},
		{many, "stack=1:lanes=8", "!lanes=8: unsupported: layers that run as one kernel have"},
		{many, "stack=1:share=2", "!share=2: unsupported: layers that run as one kernel have"},
		{many, "stack=3", "STAGES ="},
		{many, "stack=3:samples=16", "SAMPLES = 16,"},
		{many, "stack=3:samples=8", "!stack=3: unsupported: no layers run as one kernel: the kernel that copies all of h multiplies 16 or 32"},
		{many, "stack=3:cluster=2", "!cluster=2: unsupported: layers that run as one kernel have"},
		{many, "stack=3:lanes=8", "!lanes=8: unsupported: layers that run as one kernel have"},
		{many, "stack=2:cluster=8", "CLUSTER = 8,"},
		{layer(cell.LSTM, 512, 64, 4, schedule.FP32), "stack=3", "!set bf16 or fp16, or stack=1"},
		{layer(cell.RNNTanh, 512, 64, 4, schedule.BF16), "stack=3", "!three or four sums"},
		{layer(cell.LSTM, 1024, 64, 2, schedule.BF16), "stack=3", "!up to 512 units, not 1024"},
		{layer(cell.LSTM, 1536, 64, 4, schedule.BF16), "stack=1", "!2 layers of 96 blocks are more than the GPU's 132 multiprocessors"},
		{one, "stack=1", "!stack=1: unsupported: no layers run as one kernel: no two layers are stacked"},

		{back, "resident=1:cluster=16", "SPREAD = 0, CLUSTERS = 1, CLUSTER = 16,"},
		{back, "resident=2:cluster=2", "CLUSTER = 2,"},
		{back, "groups=2:resident=2", "SPREAD = 1,"},
		{back, "resident=4", "HEIGHT ="},
		{back, "tensor=2", "LANES ="},
		{back, "samples=4:tensor=2", "SAMPLES = 4,"},
		{back, "back=4096", "!back=4096: unsupported: there are"},
		{back, "resident=3:back=1", "!back=1: unsupported: no gradient"},
		{back, "resident=3:cluster=2", "!cluster=2: unsupported: the barrier kernel"},
		{back, "resident=1:groups=2", "!groups=2: unsupported: no configuration"},
		{back, "lanes=8", "!lanes=8: unsupported: no configuration"},
	} {
		k, err := knob.Parse(test.knobs)
		if err != nil {
			t.Fatal(err)
		}
		s, err := test.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		_, texts, err := cuda.Sources(s, k, h200())
		reason, declined := strings.CutPrefix(test.want, "!")
		switch {
		case declined && (!errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), reason)):
			t.Errorf("%v %s: %v, not because %s", test.Layer, test.knobs, err, reason)
		case !declined && err != nil:
			t.Errorf("%v %s: %v", test.Layer, test.knobs, err)
		case !declined && !strings.Contains(texts[len(texts)-1], test.want):
			t.Errorf("%v %s: the kernel is not of %s", test.Layer, test.knobs, test.want)
		}
	}
}

// TestProductKnobsReachTheKernel is the same for knobs of products and of scans.
func TestProductKnobsReachTheKernel(t *testing.T) {
	product := func(rows int, p schedule.Precision) *schedule.Schedule {
		b := schedule.NewBuilder(1)
		b.SetPrecision(p)
		packed := b.Packed("packed", 512, 512).All()
		b.Do(0, schedule.Pack{Src: b.Matrix("w", 512, 512).All(), Dst: packed, Trans: true})
		b.Do(0, schedule.Gemm{A: b.Matrix("a", rows, 512).All(), B: packed, C: b.Matrix("c", rows, 512).All()})
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	scan := func(c *cell.Cell, steps int) *schedule.Schedule {
		b := schedule.NewBuilder(1)
		all := func(rows, vectors int) schedule.View { return b.Matrix("m", rows, 32*vectors).All() }
		op := schedule.Scan{Sequence: schedule.Sequence{Cell: c, Steps: steps, X: all(steps, len(c.Gates)), BX: all(1, len(c.Gates))}}
		for range c.States {
			op.State = append(op.State, all(steps+1, 1))
		}
		b.Do(0, op)
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := h200()
	before.Capability, before.Hopper, before.Clusters = 70, false, nil
	after := h200()
	after.Capability, after.Hopper = 100, false
	for _, test := range []struct {
		name   string
		s      *schedule.Schedule
		knobs  string
		p      driver.Properties
		reason string // "": it is taken
	}{
		{"few", product(16, schedule.FP32), "narrow=1", h200(), ""},
		{"few", product(16, schedule.FP32), "narrow=3:narrowwidth=64:narrowrows=16", h200(), ""},
		{"few", product(16, schedule.BF16), "narrowwidth=192:narrowrows=64", h200(), "narrowwidth=192: unsupported"},
		{"few", product(16, schedule.FP32), "narrow=2:narrowwidth=64", h200(), "narrowwidth=64: unsupported"},
		{"few", product(16, schedule.FP32), "narrow=1", before, "narrow=1: unsupported"},
		{"few", product(16, schedule.FP32), "narrow=1:split=1", h200(), "split=1: unsupported"},
		{"few", product(16, schedule.FP32), "narrow=1:split=2", h200(), ""},
		{"many", product(512, schedule.FP32), "narrow=1", h200(), "narrow=1: unsupported"},
		{"many", product(512, schedule.FP32), "split=1", h200(), ""},
		{"many", product(512, schedule.FP32), "split=1", before, "split=1: unsupported"},
		{"many", product(512, schedule.FP32), "split=3", h200(), ""},
		{"many", product(512, schedule.FP32), "split=3", before, "split=3: unsupported"},
		{"many", product(512, schedule.FP32), "split=3", after, "split=3: unsupported"},
		{"many", product(512, schedule.FP32), "split=1", after, ""},
		{"long", scan(cell.GILR, 1<<20), "scansteps=4", h200(), ""},
		{"long", scan(cell.GILR, 1<<20), "scansteps=32", h200(), ""},
		{"long", scan(cell.SRU, 1<<20), "scansteps=32", h200(), "a thread of a scan of sru has room for"},
		{"short", scan(cell.GILR, 9), "scansteps=16", h200(), ""},
		{"short", scan(cell.GILR, 9), "", before, "capability 8.0"},
		{"short", scan(cell.GILR, 9), "scansteps=32", h200(), "a thread of a scan of gilr has room for"},
	} {
		k, err := knob.Parse(test.knobs)
		if err != nil {
			t.Fatal(err)
		}
		_, texts, err := cuda.Sources(test.s, k, test.p)
		switch n := k["scansteps"]; {
		case test.reason != "" && (!errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), test.reason)):
			t.Errorf("%s %s: %v, not because %s", test.name, test.knobs, err, test.reason)
		case test.reason == "" && err != nil:
			t.Errorf("%s %s: %v", test.name, test.knobs, err)
		case err == nil && n > 0 && !strings.Contains(texts[0], fmt.Sprintf("K = %d,", n)):
			t.Errorf("%s %s: the kernel has other steps", test.name, test.knobs)
		}
	}
}

// TestDeclinedKnobsAreToldAhead: Memory, which a tune calls first, declines such settings too.
func TestDeclinedKnobsAreToldAhead(t *testing.T) {
	d, driver := emulated(t)
	driver.Dry = true
	s, err := devicetest.Layer{Cell: cell.GRU, Hidden: 20, Batch: 2, Steps: 2}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Memory(s, knob.Params{"resident": 3, "lanes": 8}); !errors.Is(err, schedule.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := d.Memory(s, knob.Params{"resident": 1, "lanes": 8}); err != nil {
		t.Error(err)
	}
}
