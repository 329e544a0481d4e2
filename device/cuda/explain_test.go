package cuda_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// explained explains how a described H200 would run a layer.
func explained(t *testing.T, l devicetest.Layer, k knob.Params) (device.Explanation, error) {
	t.Helper()
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	return d.Explain(s, k)
}

// variant returns the option of that name among those of a choice that do not run.
func variant(t *testing.T, c device.Choice, name string) device.Option {
	t.Helper()
	for _, o := range c.Others {
		if o.Variant == name {
			return o
		}
	}
	t.Fatalf("%s is not among %+v", name, c.Others)
	return device.Option{}
}

// TestExplain answers which kernel runs a layer, what else could have, and why it did not.
func TestExplain(t *testing.T) {
	layer := devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 100, Precision: schedule.BF16}
	e, err := explained(t, layer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Choices) != 1 || len(e.Passes) != 7 {
		t.Fatalf("choices are %+v, and passes %+v", e.Choices, e.Passes)
	}
	c := e.Choices[0]
	if c.Runs.Variant != "mma" || c.Count != 1 || c.Steps != 100 || !strings.Contains(c.Layer, "lstm layer of 512 units, 16 sequences") {
		t.Errorf("the choice is %+v", c)
	}
	last := e.Kernels[len(e.Kernels)-1]
	if last.Variant != c.Runs.Variant || last.Config == "" || last.Registers != 0 || last.Spills != 0 {
		t.Errorf("the kernel is %+v", last)
	}
	cycles := c.Runs.Cycles
	for _, o := range c.Others {
		if o.Cycles > 0 && o.Variant != "mma-stream" { // passed over
			if o.Cycles < cycles || o.Step <= 0 || o.Floor <= 0 || o.Floor >= o.Step || o.Why != "" {
				t.Errorf("after %v cycles comes %+v", cycles, o)
			}
			cycles = o.Cycles
		}
	}
	if o := variant(t, c, "wholerow"); o.Cycles != 0 || !strings.Contains(o.Why, "more registers than there are") {
		t.Errorf("wholerow: %+v", o)
	}
	if o := variant(t, c, "mma-stream"); !strings.Contains(o.Why, "keep all weights on chip") {
		t.Errorf("mma-stream: %+v", o)
	}
	if o := variant(t, c, "barrier"); !strings.Contains(o.Why, "resident=3") {
		t.Errorf("barrier: %+v", o)
	}
}

// TestExplainWhy: the explanation gives each reason for which a variant is passed over.
func TestExplainWhy(t *testing.T) {
	for _, x := range []struct {
		layer         devicetest.Layer
		knobs         knob.Params
		runs, of, why string
	}{
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 9, Precision: schedule.BF16, Backward: true}, nil, "backward-mma", "backward-bulk", ""},
		{devicetest.Layer{Cell: cell.RNNReLU, Hidden: 512, Batch: 16, Steps: 9, Precision: schedule.FP32}, nil, "simt", "mma", "states of rnn-relu may grow beyond what fp16 halves can hold"},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 256, Batch: 64, Steps: 9, Precision: schedule.BF16}, nil, "mma", "wholerow", "others were measured to be faster"},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 9, Precision: schedule.BF16}, knob.Params{"resident": 5}, "mma-poll", "mma", "resident=5 (mma-poll) rules it out"},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 9, Precision: schedule.BF16}, knob.Params{"tensor": 2}, "simt", "mma", "tensor=2 rules it out"},
		{devicetest.Layer{Cell: cell.GRU, Hidden: 256, Batch: 64, Steps: 9, Precision: schedule.BF16, Backward: true}, knob.Params{"samples": 64}, "backward-bulk", "backward-simt", "the knobs leave no way to form groups of blocks"},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 9, Layers: 2, Precision: schedule.BF16}, nil, "stack", "one kernel per layer", "stack=2"},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 2560, Batch: 16, Steps: 9, Precision: schedule.FP32}, nil, "mma-stream", "mma", "shared memory"},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 8192, Batch: 16, Steps: 9, Precision: schedule.FP32}, nil, "barrier", "mma-stream", "more registers than there are"},
	} {
		e, err := explained(t, x.layer, x.knobs)
		if err != nil && !errors.Is(err, schedule.ErrUnsupported) {
			t.Fatalf("%v: %v", x.layer, err)
		}
		if len(e.Choices) != 1 || e.Choices[0].Runs.Variant != x.runs {
			t.Errorf("%v %v: the choices are %+v, and %s must run", x.layer, x.knobs, e.Choices, x.runs)
			continue
		}
		if o := variant(t, e.Choices[0], x.of); !strings.Contains(o.Why, x.why) || x.why == "" && o.Why != "" {
			t.Errorf("%v %v: %s does not run because %q, want %q", x.layer, x.knobs, x.of, o.Why, x.why)
		}
	}
}

// TestExplainUnderKnobs: options that knobs allow come first. Options that they rule out come after
// them.
func TestExplainUnderKnobs(t *testing.T) {
	layer := devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 9, Precision: schedule.BF16}
	e, err := explained(t, layer, knob.Params{"resident": 2})
	if err != nil {
		t.Fatal(err)
	}
	c := e.Choices[0]
	if first := c.Others[0]; c.Runs.Variant != "simt" || first.Variant != "mma" || first.Why != "" || !strings.HasPrefix(first.Group, "spread ") || first.Cycles < c.Runs.Cycles {
		t.Errorf("resident=2 runs %+v, and %+v is next", c.Runs, c.Others[0])
	}
	if o := variant(t, c, "mma-poll"); o.Why != "resident=2 (grid) rules it out" || o.Cycles == 0 {
		t.Errorf("mma-poll: %+v", o)
	}
	layer.Backward = true
	if e, err = explained(t, layer, knob.Params{"resident": 2}); err != nil || len(e.Choices) != 1 {
		t.Fatal(e, err)
	}
	c = e.Choices[0]
	for _, o := range c.Others {
		if o.Why == "" && o.Cycles < c.Runs.Cycles {
			t.Errorf("%+v does not run, and %+v does", o, c.Runs)
		}
	}
	if o := variant(t, c, "backward-bulk"); o.Why != "resident=2 (grid) rules it out" {
		t.Errorf("backward-bulk: %+v", o)
	}
}

// TestExplainSource: the source of an option is a file that has the function.
func TestExplainSource(t *testing.T) {
	for _, x := range []struct {
		layers, batch int
		backward      bool
		resident      int
	}{{layers: 1, batch: 16}, {layers: 1, batch: 16, backward: true}, {layers: 2, batch: 16}, {layers: 4, batch: 64}, {layers: 1, batch: 16, resident: 3}, {layers: 1, batch: 16, backward: true, resident: 3}} {
		e, err := explained(t, devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: x.batch, Steps: 9, Layers: x.layers, Precision: schedule.BF16, Backward: x.backward}, knob.Params{"resident": x.resident})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range append(e.Choices[0].Others, e.Choices[0].Runs) {
			if o.Variant == "one kernel per layer" {
				continue
			}
			path, function, _ := strings.Cut(o.Source, ", ")
			text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(path)))
			if err != nil || !strings.Contains(string(text), function) || function == "" && !strings.HasSuffix(path, ".tpl") {
				t.Errorf("the source of %s is %q: %v", o.Variant, o.Source, err)
			}
		}
	}
}

// TestExplainCompiled: with a GPU, an explanation has the kernels' resources, and the kernels are
// those that a program then launches.
func TestExplainCompiled(t *testing.T) {
	none, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { none.Close() })
	r := &loaded{recorder{Driver: none, properties: h200()}}
	d := cuda.New(r, r, "")
	s, err := devicetest.Layer{Cell: cell.GRU, Hidden: 256, Batch: 8, Steps: 5, Precision: schedule.FP32}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.Explain(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(e.Kernels, p.Kernels()) || e.Kernels[0].Registers != 168 {
		t.Errorf("explained are %+v, launched %+v", e.Kernels, p.Kernels())
	}
}

// TestMachine: a described GPU explains schedules and runs nothing.
func TestMachine(t *testing.T) {
	if _, err := cuda.Machine("h9000"); err == nil || !strings.Contains(err.Error(), "h200") {
		t.Errorf("an unknown machine: %v", err)
	}
	for _, name := range cuda.Machines() {
		d, err := cuda.Machine(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := devicetest.Layer{Cell: cell.LSTM, Hidden: 64, Batch: 2, Steps: 3, Precision: schedule.BF16}.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		if bytes, err := d.Memory(s, nil); err != nil || bytes == 0 {
			t.Errorf("%s: %d bytes, %v", name, bytes, err)
		}
		if _, err := d.Compile(s, nil); err == nil || !strings.Contains(err.Error(), "only described") {
			t.Errorf("%s: compiling: %v", name, err)
		}
		if _, err := d.Limits(); err == nil {
			t.Errorf("%s has limits", name)
		}
		if err := d.Evict(); err == nil {
			t.Errorf("%s has caches", name)
		}
		if d.Info().Key != "cuda-nvidia-"+name {
			t.Errorf("its key is %s, which records of %s do not have", d.Info().Key, name)
		}
		if d.Close() != nil {
			t.Error("it does not close")
		}
	}
}
