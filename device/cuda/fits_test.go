package cuda_test

import (
	"errors"
	"slices"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestInt8: a GPU neither lists int8 nor compiles it.
func TestInt8(t *testing.T) {
	none, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { none.Close() })
	r := &recorder{Driver: none, properties: h200()}
	d := cuda.New(r, r, "")
	s, err := devicetest.Layer{Cell: cell.LSTM, Hidden: 8, Batch: 1, Steps: 2, Precision: schedule.INT8}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Compile(s, nil); !errors.Is(err, schedule.ErrPrecision) || slices.Contains(d.Info().Precision, "int8") {
		t.Errorf("it has %v, and compiles: %v", d.Info().Precision, err)
	}
}

// TestMemoryDeclines: Memory declines what Compile declines, with the same reason.
func TestMemoryDeclines(t *testing.T) {
	none, err := emulator.New(8, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { none.Close() })
	r := &recorder{Driver: none, properties: h200()}
	d := cuda.New(r, r, "")
	for _, l := range []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 8192, Batch: 8, Steps: 2, Precision: schedule.BF16},
		{Cell: cell.RNNReLU, Hidden: 4000, Batch: 300, Steps: 2, Precision: schedule.FP32},
		{Cell: cell.LSTM, Hidden: 4000, Batch: 8, Steps: 2, Precision: schedule.BF16},
	} {
		s, err := l.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		_, asked := d.Memory(s, nil)
		p, compiled := d.Compile(s, nil)
		if compiled == nil {
			p.Close()
		}
		if (asked == nil) != (compiled == nil) || asked != nil && (!errors.Is(asked, schedule.ErrUnsupported) || asked.Error() != compiled.Error()) {
			t.Errorf("%v: Memory says %v, and Compile %v", l, asked, compiled)
		}
	}
}

// TestStepwiseGradient: a gradient whose weights no kernel can hold runs step by step.
func TestStepwiseGradient(t *testing.T) {
	compiler, driver := emulation(t, 2)
	d := cuda.New(tight{driver, 1 << 10}, compiler, t.TempDir())
	for _, l := range sample([]devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 230, Batch: 3, Steps: 4, Precision: schedule.FP32},
		{Cell: cell.GRU, Hidden: 230, Batch: 2, Steps: 3, Precision: schedule.FP32},
		{Cell: cell.LSTM, Hidden: 330, Batch: 3, Steps: 2, Precision: schedule.BF16},
	}, 3) {
		l.Backward = true
		s, err := l.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		e, err := d.Explain(s, nil)
		if err != nil || len(e.Choices) != 1 || e.Choices[0].Runs.Variant != "stepwise" {
			t.Errorf("%v: %+v, %v", l, e.Choices, err)
		}
		devicetest.Layers(t, d, []devicetest.Case{{Layer: l}})
	}
}
