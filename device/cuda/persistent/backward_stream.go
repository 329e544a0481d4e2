package persistent

import (
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/persistent/kernels"
)

// backwardStreamVariant multiplies as backwardBulkVariant does: weights beyond the chip come from the L2 cache in each turn.
var backwardStreamVariant = &Variant{
	Kernel:   kernels.Kernel{Name: "backward-stream", Headers: []string{"backward_bulk"}, Files: []string{"fragments", "ring", "backward_bulk"}, Entry: "back_layer"},
	Backward: true, Strategies: []int{byStreaming}, needs: "engine for bulk copies", tensor: true,
	Exchange: "the copy engine copies gradients; sums are pushed within a cluster",
	aside:    "other kernels keep all weights on chip",
	words:    backwardBulkWords,
	fit:      Fit{1.56, 0.16}, // of 9 layers beyond the chip, on an H100
	considered: func(c *Chooser, _ Layer) (turn, bool) {
		if c.Knobs["resident"] == byStreaming {
			return first.provided(c.Knobs["tensor"] != 2 && c.hasClusters()), false
		}
		return ifNone.provided(c.Knobs["tensor"] != 2 && c.allows(byStreaming) && c.hasClusters()), false
	},
	configs: backwardStreams,
}

// backwardStreams lists how the gradient of a layer can run in one group of clusters that streams
// some weights from memory, as knobs allow.
func backwardStreams(c *Chooser, l Layer) ([]Config, string) {
	var all []Config
	registers, carried := unitRegisters(l.Cell), len(kernels.Carried(l.Cell))
	seen := map[string]bool{}
	for _, samples := range c.samples(l.Batch, 8, 16, 32) {
		for _, cluster := range c.choose("cluster", 2, 4, 8) {
			for _, height := range []int{1, 2} {
				for split := 1; split <= 8; split *= 2 {
					for _, portion := range c.choose("stage", 2, 4) {
						for _, depth := range c.choose("ring", 2, 3, 4, 6, 8) {
							g := backwardBulk{Layer: l, cluster: cluster, clusters: c.Properties.Together(cluster), samples: ints.RoundUp(samples, 8), height: height, split: split, portion: portion, depth: depth, near: c.Knobs["near"], far: c.Knobs["far"], l2: c.Knobs["kept"]}
							if cluster < 2 || g.clusters < 2 {
								continue
							}
							g, no := g.shaped(registers, carried, c.Properties)
							if no != "" {
								continue
							}
							if t := g.config(carried, c.Properties); !seen[t.sizes] {
								seen[t.sizes] = true
								t.Knobs["cluster"], t.Knobs["groups"] = cluster, 1
								for _, name := range []string{"ring", "stage", "near", "far", "kept"} {
									if v := c.Knobs[name]; v != 0 {
										t.Knobs[name] = v
									}
								}
								all = append(all, t)
							}
						}
					}
				}
			}
		}
	}
	return all, "no clusters have enough shared memory for its gradients and a ring of weights"
}
