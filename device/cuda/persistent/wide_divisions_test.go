package persistent_test

import (
	"testing"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/equations"
	"rnnbench/rnn/knob"
)

// TestWideBackChosen: backward-wide runs 16-bit gradients of many sequences whose weights exceed
// the chip, in the order that an H100 measured. fp32 and fewer than 16 sequences were not timed. It
// also runs weights that fit if an H100 found it faster.
func TestWideBackChosen(t *testing.T) {
	for _, l := range []struct {
		cell          *cell.Cell
		hidden, batch int
		weights       driver.Element
		knobs         knob.Params
		want          string
	}{
		{cell.LSTM, 2304, 16, driver.Brain, nil, "backward-wide"},
		{cell.LSTM, 2304, 128, driver.Half, nil, "backward-wide"},
		{cell.LSTM, 3072, 64, driver.Brain, nil, "backward-wide"},
		{cell.GRU, 2304, 32, driver.Brain, nil, "backward-wide"},
		{cell.GRU, 3072, 96, driver.Half, nil, "backward-wide"},
		{cell.LSTM, 2304, 8, driver.Brain, nil, "backward-stream"},
		{cell.LSTM, 2304, 32, driver.Brain, knob.Params{"resident": 7}, "backward-stream"},
		{cell.LSTM, 1696, 96, driver.Brain, nil, "backward-wide"},
		{cell.LSTM, 1536, 24, driver.Brain, nil, "backward-wide"},
		{cell.LSTM, 640, 100, driver.Brain, nil, "backward-wide"},
		{cell.GRU, 1280, 128, driver.Brain, nil, "backward-wide"},
		{cell.LSTM, 512, 64, driver.Brain, nil, "backward-bulk"},
		{cell.GRU, 768, 33, driver.Brain, nil, "backward-bulk"},
		{cell.LSTM, 512, 64, driver.Brain, knob.Params{"wideback": 1}, "backward-wide"},
		{cell.LSTM, 2304, 32, driver.Single, nil, "backward-stream"},
	} {
		all := persistent.BackwardCandidates(l.cell, l.hidden, l.batch, l.weights, l.knobs, h200())
		if len(all) == 0 || all[0].Variant().Name != l.want {
			got := "none"
			if len(all) > 0 {
				got = all[0].Variant().Name
			}
			t.Errorf("%v %d × %d, %v: %s, want %s", l.cell, l.hidden, l.batch, l.knobs, got, l.want)
		}
	}
}

// TestPartners: two blocks share the columns of one gate if knobs ask for it. They were not timed, so none is chosen.
func TestPartners(t *testing.T) {
	wide := knob.Params{"resident": 9, "cluster": 2}
	for _, l := range []struct {
		cell          *cell.Cell
		hidden, batch int
		knobs         knob.Params
		want          int // blocks that share columns; 0: another kernel runs, or none
	}{
		{cell.RNNReLU, 3008, 43, nil, 0},
		{cell.RNNReLU, 3008, 43, wide, 2},
		{cell.RNNTanh, 4096, 64, wide, 2},
		{cell.RNNReLU, 2048, 128, nil, 1},
		{cell.RNNReLU, 2048, 128, wide, 2},
		{cell.RNNReLU, 2048, 128, knob.Params{"resident": 9, "cluster": 1}, 1},
		{cell.RNNReLU, 3008, 43, knob.Params{"resident": 9, "cluster": 1}, 0},
		{cell.RNNReLU, 3008, 43, knob.Params{"cluster": 2}, 0},
		{cell.RNNReLU, 3008, 16, nil, 0},
		{cell.LSTM, 1024, 128, nil, 1},
		{cell.LSTM, 1024, 128, wide, 0},
	} {
		got := 0
		if all := persistent.Divisions(l.cell, l.hidden, l.batch, driver.Brain, false, false, l.knobs, h200()); len(all) > 0 && all[0].Kernel == "mma-wide" {
			got = constants(all[0].Sizes)["PARTNERS"]
		}
		if got != l.want {
			t.Errorf("%v %d × %d, %v: %d blocks share columns, want %d", l.cell, l.hidden, l.batch, l.knobs, got, l.want)
		}
	}
}

// TestWideInputs: mma-wide has one row for each unit of one gate, and so no room for an input that
// only the rest of the cell reads. Such a cell ran, and read another unit's sum.
func TestWideInputs(t *testing.T) {
	gated, err := equations.Parse("gated.cell", "gated", "gate n = tanh(W x + R h + b)\ngate z = sigmoid(W x + b)\nh' = (1 - z) * h + z * n\n")
	if err != nil {
		t.Fatal(err)
	}
	for c, fits := range map[*cell.Cell]bool{gated: false, cell.RNNTanh: true} {
		all := persistent.Candidates(c, 1536, 128, driver.Brain, knob.Params{"resident": 9}, h200())
		if got := len(all) > 0 && all[0].Variant().Name == "mma-wide"; got != fits {
			t.Errorf("%v runs by warpgroups: %v, want %v", c, got, fits)
		}
	}
}

// wideBack checks backward_wide.cu.
func (d *divided) wideBack() {
	c := d.of
	samples, cluster, groups, height, units := c["SAMPLES"], c["CLUSTER"], c["WARPGROUPS"], c["HEIGHT"], c["UNITS"]
	products, held, streamed, round, portion, depth := c["PRODUCTS"], c["HELD"], c["PASSING"], c["ROUND"], c["PORTION"], c["DEPTH"]
	line, weights, per, threads := 64*groups*height, 2048*groups*height, (d.gates*units+15)/16, 128*groups
	all, running := d.groups(samples)
	passes := (all + running - 1) / running
	d.same("bytes of a value", d.size, 2)
	d.same("threads", d.Threads, threads+128)
	d.same("blocks", d.Blocks, c["CLUSTERS"]*cluster)
	d.same("units of a cluster", units*cluster, line)
	d.whole("units of a block in eights", units, 8)
	d.least("units", line*c["CLUSTERS"], d.hidden)
	d.least("lanes that look at counters", 32, c["CLUSTERS"])
	d.whole("sequences in sixteens", samples, 16)
	d.least("sequences of a product", 256, samples)
	d.same("columns", products, c["CLUSTERS"]*per)
	d.least("products in shared memory", products-held-streamed, 0)
	d.same("whole copies of a cluster's columns, or clusters of a copy", min(per%portion, portion%per), 0)
	d.least("copies", depth, 2)
	if streamed > 0 {
		d.least("streamed weights of two portions", round, 2*portion)
		d.least("products whose weights the L2 cache keeps", streamed, c["KEPT"])
	}
	d.least("bytes that a barrier counts", 1<<20-1, max(portion*samples*32, weights, 4*line*samples))
	if c["MORE"] > 0 { // otherwise warps would wait for ever
		d.least("registers that a launch gives to share", (groups+1)*(65536/d.Threads/8*8), groups*c["MORE"]+c["FEWER"])
	}
	each := (units*samples/2 + threads - 1) / threads
	shared := up((2*depth+2*round+2)*8, 128) + depth*portion*samples*32 + (round+products-held-streamed)*weights + 4*line*samples + 8*passes*each*d.States*threads
	d.least("shared memory", d.Shared, shared)
	d.least("memory", int(d.Room), 256+all*cluster*(128*c["CLUSTERS"]+2*products*samples*32)+d.Blocks*streamed*weights)
}
