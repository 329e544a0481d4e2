package lower

import (
	"fmt"
	"strings"
	"testing"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

func h200() driver.Properties {
	return driver.Properties{Capability: 90, Hopper: true, SMs: 132, Shared: 227 << 10, L2: 60 << 20, Clusters: map[int]int{1: 132, 2: 66, 4: 31, 8: 15, 16: 7}}
}

// schedules returns schedules in which each pass finds something.
func schedules(t *testing.T) []*schedule.Schedule {
	var all []*schedule.Schedule
	for _, c := range []devicetest.Case{
		{Layer: devicetest.Layer{Cell: cell.LSTM, Hidden: 64, Batch: 8, Steps: 4, Layers: 2, Precision: schedule.BF16}},
		{Layer: devicetest.Layer{Cell: cell.GRU, Hidden: 512, Batch: 16, Steps: 4, Train: true, Precision: schedule.FP32}},
		{Layer: devicetest.Layer{Cell: cell.GRU, Hidden: 512, Batch: 16, Steps: 4, Backward: true, Precision: schedule.FP32}},
		{Layer: devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 4, Precision: schedule.FP32}, Stepwise: true},
	} {
		s, err := c.Build()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// TestPassesKeepLowerings: a pass does not change the lowering that it was given, down to the elements of
// maps and slices.
func TestPassesKeepLowerings(t *testing.T) {
	for _, s := range schedules(t) {
		p := Lowering{schedule: s, Knobs: knob.Params{"stack": 0}, properties: h200()}
		for _, pass := range passes {
			before := fmt.Sprintf("%+v", p)
			next, err := pass.run(p)
			if err != nil {
				t.Fatal(err)
			}
			if after := fmt.Sprintf("%+v", p); after != before {
				t.Errorf("%s has changed the lowering that it was given, from\n%s\nto\n%s", pass.name, before, after)
			}
			p = next
		}
	}
}

// TestTrace: each pass tells what it has found.
func TestTrace(t *testing.T) {
	var all strings.Builder
	for i, s := range schedules(t) {
		k := knob.Params{}
		if i == 0 {
			k["stack"] = 1
		}
		if _, err := Trace(s, k, h200(), nil, func(pass string, found []string) {
			for _, f := range found {
				fmt.Fprintf(&all, "%s: %s\n", pass, f)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"elements: matrices stored as bf16", "2 layers of 64 units by stack", "products by skinny kernel", "is packed for skinny products",
		"layers: operation", "bytes, of which", "packed weights lie by",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("nothing tells of %q in\n%s", want, all.String())
		}
	}
	t.Log(all.String())
}
