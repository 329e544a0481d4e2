package model_test

import (
	"math"
	"strings"
	"testing"

	"rnnbench/model"
	"rnnbench/rnn/cell"
)

// chain is so many steps of w by g.
func chain(steps float64, w model.Work, g model.Group) []model.Chain {
	return []model.Chain{{Steps: steps, Work: w, Group: g}}
}

// TestFloor compares floors with ones worked out by hand, one for each bound.
func TestFloor(t *testing.T) {
	gpu, xeon := load(t, "h200"), load(t, "xeon")
	small, large := work(t, cell.RNNTanh, 256, 1, 4), work(t, cell.LSTM, 2048, 4, 4)
	cluster := model.Group{Blocks: 16, Groups: 1, Samples: 1}
	all := model.Group{Blocks: 128, Groups: 1, Samples: 4, Spread: true}
	product := 2 * 256 * 256 / 61e12 * 132 / 16 // of a step of the small layer by 16 of 132 multiprocessors
	for _, c := range []struct {
		name    string
		m       *model.Machine
		run     model.Run
		bound   string
		seconds float64
		parts   string
	}{
		{"a cluster", gpu, model.Run{Bytes: 4, FLOPs: 1e6, Launches: 2, Chains: chain(100, small, cluster)},
			model.BoundExchange, 100 * 0.3e-6, "exchange, multiply-adds, launch"},
		{"spread", gpu, model.Run{Bytes: 4, Chains: chain(100, small, model.Group{Blocks: 132, Groups: 1, Samples: 1, Spread: true})},
			model.BoundExchange, 100 * 0.85e-6, "exchange"},
		{"one block", gpu, model.Run{Bytes: 4, Chains: chain(100, work(t, cell.RNNTanh, 128, 1, 4), model.Group{Blocks: 1, Groups: 1, Samples: 1})},
			model.BoundProducts, 100 * product * 16 / 4, "exchange"},
		{"a small block", gpu, model.Run{Bytes: 4, Chains: chain(100, work(t, cell.RNNTanh, 16, 1, 4), model.Group{Blocks: 1, Groups: 1, Samples: 1})},
			model.BoundExchange, 100 * 25e-9, "exchange"},
		{"weights beyond registers", gpu, model.Run{Bytes: 4, Chains: chain(100, small, model.Group{Blocks: 1, Groups: 1, Samples: 1})},
			model.BoundMemory, 100 * (256*256*4 - 332*512) / 253e9, "exchange, memory SM"},
		{"half precision", gpu, model.Run{Bytes: 2, Tensor: true, FLOPs: 12.8 * 61e12}, model.BoundProducts, 1, "multiply-adds"},
		{"split single precision", gpu, model.Run{Bytes: 4, Tensor: true, FLOPs: 12.8 * 61e12}, model.BoundProducts, 3, "multiply-adds"},
		{"a measured peak", gpu, model.Run{Bytes: 4, Peak: 122e12, FLOPs: 122e12}, model.BoundProducts, 1, "multiply-adds"},
		{"the cache of all", gpu, model.Run{Bytes: 4, Moved: 49e6, FLOPs: 1}, model.BoundMemory, 49e6 / 8.9e12, "multiply-adds, memory L2"},
		{"main memory", gpu, model.Run{Bytes: 4, Moved: 500e6, FLOPs: 1}, model.BoundMemory, 450e6 / 4.2e12, "multiply-adds, memory L2, memory DRAM"},
		{"empty caches", gpu, model.Run{Bytes: 4, Moved: 49e6, Cold: true, FLOPs: 1}, model.BoundMemory, 49e6 / 4.2e12, "multiply-adds, memory L2, memory DRAM"},
		{"weights beyond the chip", gpu, model.Run{Bytes: 4, FLOPs: 1, Chains: chain(10, large, all)},
			model.BoundMemory, 10 * 128 * (4*2048*2048*4/128 - 332*512 - 200e3) / 8.9e12, "exchange, multiply-adds, memory L2"},
		{"launches", gpu, model.Run{Bytes: 4, Launches: 1000, FLOPs: 1}, model.BoundLaunch, 2.9e-3, "multiply-adds, launch"},
		{"launches of a graph", gpu, model.Run{Bytes: 4, Launches: 1000, Graph: true, FLOPs: 1}, model.BoundLaunch, 0.55e-3, "multiply-adds, launch"},
		{"launches of four streams", gpu, model.Run{Bytes: 4, Launches: 1000, Graph: true, Streams: 4, FLOPs: 1}, model.BoundLaunch, 250 * 0.55e-6, "multiply-adds, launch"},
		{"launched products", gpu, model.Run{Bytes: 4, FLOPs: 1, Chains: chain(10, large, model.Group{})},
			model.BoundMemory, 10 * 4 * 2048 * 2048 * 4 / 8.9e12, "multiply-adds, memory L2, memory DRAM"},
		{"workers", xeon, model.Run{Bytes: 4, FLOPs: 1, Chains: chain(10, work(t, cell.RNNTanh, 100, 1, 4), model.Group{})},
			model.BoundExchange, 10 * 0.142e-6, "exchange, multiply-adds, memory L1"},
		{"one worker", xeon, model.Run{Bytes: 4, FLOPs: 1, Chains: chain(10, work(t, cell.RNNTanh, 16, 1, 4), model.Group{})},
			model.BoundMemory, 10 * 16 * 16 * 4 / 160e9, "multiply-adds, memory L1"},
		{"weights of workers", xeon, model.Run{Bytes: 4, FLOPs: 1, Chains: chain(10, work(t, cell.LSTM, 512, 1, 4), model.Group{})},
			model.BoundMemory, 10 * (4*512*512*4 - 2*24576 - 2*786432) / 41e9, "exchange, multiply-adds, memory L1, memory L2, memory L3"},
	} {
		f, err := c.m.Floor(c.run)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range f.Parts {
			names = append(names, p.String())
			if p.Count <= 0 || p.Seconds <= 0 || p.Each <= 0 && p.Rate <= 0 {
				t.Errorf("%s: a part is %+v", c.name, p)
			}
		}
		if math.Abs(f.Seconds/c.seconds-1) > 1e-9 || f.Bound != c.bound || strings.Join(names, ", ") != c.parts {
			t.Errorf("%s: %.4g s by %s, want %.4g by %s; parts %v, want %s", c.name, f.Seconds, f.Bound, c.seconds, c.bound, names, c.parts)
		}
	}
	if _, err := gpu.Floor(model.Run{Bytes: 4, Chains: chain(1, small, model.Group{Blocks: 2})}); err == nil {
		t.Error("a group without sequences has a floor")
	}
}

// TestInGroupsRefuses: steps that cannot be predicted, and invalid files, are refused.
func TestInGroupsRefuses(t *testing.T) {
	w := work(t, cell.LSTM, 64, 1, 4)
	if _, err := load(t, "xeon").InGroups(w, model.Group{Blocks: 1, Groups: 1, Samples: 1}); err == nil || !strings.Contains(err.Error(), "no [gpu]") {
		t.Error(err)
	}
	if _, err := load(t, "h200").InGroups(w, model.Group{Blocks: 1}); err == nil {
		t.Error("a group without sequences has a step")
	}
	good, err := load(t, "h200").Format()
	if err != nil {
		t.Fatal(err)
	}
	for old, new := range map[string]string{"reach = 0.6": "reach = 0.0", "push = 0": "push = -1", "cluster = 16": "cluster = -1"} {
		text := strings.Replace(string(good), old, new, 1)
		if text == string(good) {
			t.Fatalf("%q is not in the file:\n%s", old, good)
		}
		if _, err := model.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "gpu: ") {
			t.Errorf("%s: %v", new, err)
		}
	}
}
