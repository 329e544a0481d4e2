package cuda_test

import (
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// h200 has the room of an H200.
func h200() cuda.Properties {
	return cuda.Properties{Capability: 90, SMs: 132, Shared: 227 << 10, Clusters: map[int]int{1: 132, 2: 66, 4: 32, 8: 15, 16: 7}}
}

// wave is a layer of c on each of so many streams.
func wave(t *testing.T, c *cell.Cell, streams, hidden, batch int, p schedule.Precision) *schedule.Schedule {
	b := schedule.NewBuilder(streams)
	b.SetPrecision(p)
	gh := len(c.Gates) * hidden
	for i := range streams {
		op := schedule.Persistent{Sequence: schedule.Sequence{
			Cell: c, Steps: 3, X: b.Matrix("x", 3*batch, gh).All(), BX: b.Matrix("bx", 1, gh).All(), BR: b.Matrix("br", 1, c.Recurrent*hidden).All(),
		}}
		for range c.States {
			op.State = append(op.State, b.Matrix("h", 4*batch, hidden).All())
		}
		for range c.Recurrent {
			op.R = append(op.R, b.Packed("r", hidden, hidden).All())
		}
		b.Do(i, op)
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestShare has the groups of layers on several streams fit the GPU together,
// and go before what else waits for room; alone a layer may have all of it.
func TestShare(t *testing.T) {
	for _, test := range []struct {
		streams, hidden, batch int
		precision              schedule.Precision
		knobs                  knob.Params
		together               bool
	}{
		{4, 512, 64, schedule.BF16, nil, true},
		{4, 512, 64, schedule.FP32, nil, true},
		{2, 512, 16, schedule.BF16, nil, true},
		{8, 256, 64, schedule.BF16, nil, true},
		{3, 200, 1, schedule.FP32, nil, true},
		{4, 512, 64, schedule.BF16, knob.Params{"share": 1}, false},
		{4, 1536, 64, schedule.FP32, nil, false}, // a quarter of the GPU does not hold a layer
	} {
		launches, _, err := cuda.Sources(wave(t, cell.LSTM, test.streams, test.hidden, test.batch, test.precision), test.knobs, h200())
		if err != nil {
			t.Fatal(err)
		}
		blocks := 0
		for _, l := range launches {
			blocks += l.Grid[0]
			if !l.Urgent && l.Cluster > 0 {
				t.Errorf("%+v: a launch that waits behind others", test)
			}
		}
		if len(launches) != test.streams || (blocks <= h200().SMs) != test.together {
			t.Errorf("%+v: %d launches of %d blocks", test, len(launches), blocks)
		}
	}
	launches, _, err := cuda.Sources(wave(t, cell.LSTM, 1, 512, 64, schedule.BF16), nil, h200())
	if err != nil || launches[0].Grid[0] <= h200().SMs/2 || launches[0].Urgent {
		t.Errorf("a layer alone: %+v, %v", launches, err)
	}
}
