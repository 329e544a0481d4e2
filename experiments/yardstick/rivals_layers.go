package yardstick

import (
	"fmt"
	"slices"
	"sync"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/study"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// ownLayers are rivals that build kernels for a shape, which takes them a minute. They run the layers of
// rivalLayers alone.
var ownLayers = []string{"flashrnn", "torchrl"}

// rivalLayers returns layers of FlashRNN's and TorchRL's benchmarks and of the agents of Dreamer, and some that
// are drawn at random, in both passes.
func rivalLayers(s study.Size) []record.Point {
	one := func(cell string, heads, units, batch, steps int) record.Point {
		return record.Point{Cell: cell, Heads: heads, Hidden: units, Input: units, Batch: batch, Steps: steps, Layers: 1, Precision: "bf16"}
	}
	list := []record.Point{one("lstm", 0, 64, 16, 20), one("gru", 0, 64, 16, 20), one("slstm", 2, 64, 16, 20)}
	if s != study.Quick {
		list = slices.Concat(flashRNNLayers(one), agentLayers(one), drawnLayers())
	}
	var all []record.Point
	for _, pass := range []string{"forward", "train"} {
		for _, p := range list {
			p.Pass = pass
			all = append(all, p)
		}
	}
	return all
}

// flashRNNLayers are those of FlashRNN's speed experiments: 768 units as ever more heads, batches and steps.
func flashRNNLayers(one func(cell string, heads, units, batch, steps int) record.Point) (list []record.Point) {
	for _, heads := range []int{0, 3, 6, 12, 24, 48} {
		list = append(list, one("lstm", heads, 768, 16, 1024))
	}
	for _, heads := range []int{0, 4, 12} {
		list = append(list, one("slstm", heads, 768, 16, 1024))
	}
	for _, batch := range []int{2, 64} {
		list = append(list, one("lstm", 0, 768, batch, 1024), one("lstm", 12, 768, batch, 1024))
	}
	return append(list, one("lstm", 0, 768, 16, 256), one("lstm", 12, 768, 16, 256), one("gru", 0, 768, 16, 1024), one("rnn-tanh", 0, 768, 16, 1024))
}

// agentLayers are those of TorchRL's benchmarks, whose inputs are narrow, and the recurrences of Dreamer 1, 2
// and 3: of 200, 600 and 512 to 4,096 units, the last in eight blocks.
func agentLayers(one func(cell string, heads, units, batch, steps int) record.Point) (list []record.Point) {
	narrow := func(p record.Point, precision string) record.Point {
		p.Input, p.Precision = 64, precision
		return p
	}
	for _, cell := range []string{"gru", "lstm"} {
		list = append(list, narrow(one(cell, 0, 256, 128, 64), "tf32"), narrow(one(cell, 0, 256, 512, 16), "tf32"), narrow(one(cell, 0, 256, 128, 256), "bf16"))
	}
	list = append(list, one("gru", 0, 200, 50, 50), one("gru", 0, 600, 16, 50), one("gru", 8, 512, 16, 512))
	for _, units := range []int{1024, 2048, 4096} {
		list = append(list, one("gru", 8, units, 16, 64))
	}
	return list
}

// drawnLayers are drawn from a fixed seed. Their units are multiples of 32, of which all rivals have kernels.
func drawnLayers() []record.Point {
	list := layerDraw{layers: 14, hidden: reach{64, 1536}, batch: reach{1, 128}, steps: reach{64, 1024}, flops: 3e12}.draw(59)
	for i := range list {
		p := &list[i]
		p.Hidden = max(32, p.Hidden/32*32)
		p.Input, p.Layers, p.Precision = p.Hidden, 1, "bf16"
		if p.Cell == "rnn-relu" {
			p.Cell = "rnn-tanh"
		}
	}
	return list
}

var allRivalLayers = sync.OnceValue(func() map[record.Point]bool {
	all := map[record.Point]bool{}
	for _, p := range slices.Concat(rivalLayers(study.Full), rivalLayers(study.Quick)) {
		all[p] = true
	}
	return all
})

// isRivalLayer reports whether p is one of rivalLayers.
func isRivalLayer(p record.Point) bool { return allRivalLayers()[p] }

// layersAgainst adds a table, findings and a figure a pass about the layers of rivalLayers.
func layersAgainst(rep *study.Report, recs []record.Record, on study.Target, names []string, r study.Rival, layers []duel) {
	t, ratios := rivalTable(layers, r)
	t.Title = fmt.Sprintf("Layers of FlashRNN, TorchRL and Dreamer, and random ones: the fastest of rnnbench's techniques and of %s", r.Name)
	t.Columns = slices.Insert(t.Columns, 3, table.Column{Name: "Heads", Key: "heads", Right: true})
	for i, d := range layers {
		t.Rows[i] = slices.Insert(t.Rows[i], 3, table.Int(max(1, d.Heads)))
	}
	rep.Tables = append(rep.Tables, t)
	called := versioned(recs, r)
	for _, pass := range []string{"forward", "train"} {
		var all estimate.Duel
		for _, g := range ratios {
			if g.pass == pass {
				all = append(all, g.ratios...)
			}
		}
		if len(all) == 0 {
			continue
		}
		rep.Findings = append(rep.Findings, fmt.Sprintf("Layers of FlashRNN, TorchRL and Dreamer, and random ones, %s: rnnbench's fastest technique is %s.", pass, all.Full(called, "layer")))
		rep.Yardstick(fmt.Sprintf("layers of kernels' authors, %s: %s", pass, all.Brief(called)))
		var some []record.Point
		var these []duel
		for _, d := range layers {
			if d.Pass == pass {
				some, these = append(some, d.Point), append(these, d)
			}
		}
		if s := launchedFinding(these, called); s != "" {
			rep.Findings = append(rep.Findings, fmt.Sprintf("Of these layers, %s: %s", pass, s))
		}
		title := fmt.Sprintf("Layers of FlashRNN, TorchRL and Dreamer, and random ones, %s: the fastest technique over %s", pass, called)
		if fig := layerRows(recs, some, names, r.Labels(), on, title, r.Name); fig != nil {
			rep.Add(fmt.Sprintf("%s-layers-%s", r.Name, pass), fig, nil)
		}
	}
}
