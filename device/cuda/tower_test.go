package cuda_test

import (
	"slices"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

func TestStacks(t *testing.T) {
	compiler, driver := emulation(t, 20)
	d := cuda.New(driver, compiler, t.TempDir())
	defer d.Close()
	cases := devicetest.Stacks("stack")
	if testing.Short() {
		cases = cases[:2]
	}
	devicetest.Layers(t, d, cases)
}

// TestTowers checks which layers run as one kernel.
func TestTowers(t *testing.T) {
	wide := devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 64, Steps: 100, Layers: 4, Precision: schedule.BF16}
	with := func(change func(l *devicetest.Layer)) devicetest.Layer {
		l := wide
		change(&l)
		return l
	}
	for _, test := range []struct {
		layer devicetest.Layer
		knobs knob.Params
		want  []int // blocks of each
	}{
		{wide, knob.Params{"stack": 1}, []int{128}},
		{wide, knob.Params{"stack": 2}, nil},
		{with(func(l *devicetest.Layer) { l.Layers = 6 }), knob.Params{"stack": 1}, []int{96, 96}},
		{with(func(l *devicetest.Layer) { l.Layers = 2 }), knob.Params{"stack": 1}, []int{128}}, // two groups
		{with(func(l *devicetest.Layer) { l.Layers = 1 }), knob.Params{"stack": 1}, nil},
		{with(func(l *devicetest.Layer) { l.Hidden = 1536 }), knob.Params{"stack": 1}, nil},
		{with(func(l *devicetest.Layer) { l.Steps = 1 }), knob.Params{"stack": 1}, nil},
	} {
		s, err := test.layer.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		launches, _, err := cuda.Sources(s, test.knobs, h200())
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, l := range launches {
			if l.Name == "tower" {
				got = append(got, l.Grid[0])
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v %v: towers of %v blocks, want %v", test.layer, test.knobs, got, test.want)
		}
	}
}
