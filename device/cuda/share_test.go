package cuda_test

import (
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// h200 returns the properties of an H200.
func h200() driver.Properties {
	return driver.Properties{Capability: 90, Hopper: true, SMs: 132, Shared: 227 << 10, L2: 60 << 20, Clusters: map[int]int{1: 132, 2: 66, 4: 31, 8: 15, 16: 7}}
}

// wave returns a layer of c on each of so many streams.
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

// TestLayersShareTheGPU: the groups of layers on several streams fit the GPU together if each can
// have a part of it. They are launched before other work that waits for room. A layer alone waits
// for none.
func TestLayersShareTheGPU(t *testing.T) {
	for _, test := range []struct {
		streams, hidden, batch, share int
		precision                     schedule.Precision
		together                      bool
	}{
		{4, 512, 64, 4, schedule.BF16, true},
		{4, 512, 64, 5, schedule.FP32, true},
		{2, 512, 16, 2, schedule.BF16, true},
		{8, 256, 64, 9, schedule.BF16, true},
		{3, 200, 1, 3, schedule.FP32, true},
		{4, 512, 64, 1, schedule.BF16, false},
		{4, 512, 64, 0, schedule.BF16, false},
		{4, 1536, 64, 0, schedule.FP32, false}, // a quarter of the GPU does not hold a layer
		{1, 512, 64, 0, schedule.BF16, false},
	} {
		launches, _, err := cuda.Sources(wave(t, cell.LSTM, test.streams, test.hidden, test.batch, test.precision), knob.Params{"share": test.share}, h200())
		if err != nil {
			t.Fatal(err)
		}
		blocks := 0
		for _, l := range launches {
			blocks += l.Grid[0]
			if l.Urgent != (test.streams > 1) {
				t.Errorf("%+v: %+v", test, l)
			}
		}
		if len(launches) != test.streams || test.together && blocks > h200().SMs {
			t.Errorf("%+v: %d launches of %d blocks", test, len(launches), blocks)
		}
	}
}

// TestGroupsStartTogether: with persistent layers on several streams, blocks that wait for each
// other start together: they are a cluster, if only of one, or the launch is cooperative. Otherwise
// two kernels could each hold part of the GPU and wait for the rest for ever.
func TestGroupsStartTogether(t *testing.T) {
	cases := []int{64, 128, 256, 512, 768, 1024, 1536, 2048}
	for i, hidden := range sample(cases, 3) {
		for j, batch := range []int{1, 5, 64} {
			for _, streams := range []int{2, 3} {
				c := []*cell.Cell{cell.LSTM, cell.GRU, cell.RNNTanh}[(i+j)%3]
				p := []schedule.Precision{schedule.BF16, schedule.FP32}[(i+j+streams)%2]
				launches, _, err := cuda.Sources(wave(t, c, streams, hidden, batch, p), nil, h200())
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range launches {
					alone := l.Grid[0] == 1 || strings.HasPrefix(l.Name, "persistent_block_") // blocks wait for no other
					if !l.Cooperative && l.Cluster == 0 && !alone {
						t.Errorf("%v of %d units, batch %d, on %d streams: blocks of %s may start one by one: %+v", c, hidden, batch, streams, l.Name, l)
					}
				}
			}
		}
	}
}
