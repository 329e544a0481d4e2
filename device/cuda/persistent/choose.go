package persistent

import (
	"cmp"
	"fmt"
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// ClusterSizes lists the sizes of clusters to try, in blocks.
func ClusterSizes() []int { return []int{1, 2, 4, 8, 16} }

// choose returns the setting of a knob, or all values if the knob is 0.
func (b *Chooser) choose(name string, values ...int) []int {
	if v := b.Knobs[name]; v != 0 {
		return []int{v}
	}
	return values
}

// groupSizes lists the sizes of groups that knobs allow, in blocks: of groups that are clusters,
// and of groups spread over the GPU.
func (c *Chooser) groupSizes() (clusters, spread []int) {
	r := c.Knobs["resident"]
	only := strategy(r).Clusters
	if (r == asExpected || only) && c.Properties.Capability >= 90 {
		clusters = c.choose("cluster", ClusterSizes()...)
	}
	if !only {
		for _, n := range c.choose("groups", 1, 2, 4, 8, maxGroups) {
			if blocks := c.Properties.SMs / n; blocks > 0 {
				spread = append(spread, blocks)
			}
		}
	}
	return clusters, spread
}

// forwardConfigs lists the configurations of a layer that fit and that knobs allow, the cheapest
// first, or says why there are none. If states may exceed what fp16 halves can hold, fp32 uses
// tensor cores only if a knob says so. Weights are streamed only if they fit no other kernel on
// tensor cores, or if a knob says so.
func (c *Chooser) forwardConfigs(of *cell.Cell, l Layer) ([]Config, string) {
	var all []Config
	why := ""
	if c.Knobs["tensor"] == 1 || c.Knobs["tensor"] == 0 && !(l.exact && of.Kinked()) {
		all, why = c.overGroupSizes(l, func(l Layer, spread bool, blocks int, add func(Config, string)) {
			c.mmas(l, statesOf(of, l), spread, blocks, add)
			c.wholeRows(l, spread, blocks, add)
			wides(c, l, statesOf(of, l), spread, blocks, add)
		})
		single, _ := blocks(c, l)
		all = append(all, single...)
		if len(all) == 0 || c.Knobs["resident"] == byStreaming {
			more, no := c.overGroupSizes(l, func(l Layer, spread bool, blocks int, add func(Config, string)) {
				streams(c, l, statesOf(of, l), spread, blocks, add)
			})
			if all = append(all, more...); c.Knobs["resident"] == byStreaming {
				why = no
			}
		}
	}
	if c.Knobs["tensor"] != 1 || len(all) == 0 {
		more, no := c.overGroupSizes(l, c.simts)
		if all = append(all, more...); c.Knobs["tensor"] != 1 {
			why = no
		}
	}
	slices.SortStableFunc(all, cheaper)
	return all, why
}

func cheaper(x, y Config) int { return cmp.Compare(x.cycles, y.cycles) }

// noGroups says why there are no configurations if none was tried.
func noGroups(c *Chooser) string {
	if c.Properties.Capability < 90 {
		return "the GPU has no clusters of blocks"
	}
	return "the knobs leave no way to form groups of blocks"
}

// A Layer is what configurations are chosen for: a persistent layer or its gradient.
type Layer struct {
	hidden, gates, batch int
	weights              driver.Element
	exact                bool // single precision throughout
	within               int  // bound of the state that is multiplied by weights; see within
	inputs               int  // inputs per unit and step, if they can be read ahead; else 0
	resets               bool // sequences begin anew at some steps: see resets.go
}

func (c *Chooser) layer(op schedule.Persistent) Layer {
	inputs := 0
	if c.Element(op.X) == driver.Single {
		r := newRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
		inputs = r.inputs()
	}
	return Layer{hidden: op.Hidden(), gates: op.Cell.Recurrent, batch: op.Batch(), weights: c.Element(op.R[0]), exact: c.Precision == schedule.FP32, within: within(op.Cell), inputs: inputs, resets: !op.Keep.Empty()}
}

// overGroupSizes lists the configurations of one kind of kernel for all sizes of groups.
func (c *Chooser) overGroupSizes(l Layer, kind func(l Layer, spread bool, blocks int, add func(Config, string))) ([]Config, string) {
	var all []Config
	why := noGroups(c)
	seen := map[string]bool{}
	clusters, spread := c.groupSizes()
	for i, blocks := range slices.Concat(clusters, spread) {
		spread := i >= len(clusters)
		kind(l, spread, blocks, func(t Config, no string) {
			switch {
			case no != "":
				why = no
				return
			case spread:
				if c.Knobs["groups"] == 0 && c.Properties.SMs/blocks > ints.CeilDiv(l.batch, t.samples) {
					return // some groups would have no sequences
				}
				t.Knobs["groups"] = c.choose("groups", c.Properties.SMs/blocks)[0]
				if t.Knobs["resident"] == asExpected {
					t.Knobs["resident"] = overGrid
				}
			default:
				if t.blocks > 1 && c.Properties.Together(t.blocks) == 0 {
					why = fmt.Sprintf("no cluster of %d blocks fits on this GPU", t.blocks)
					return
				}
				if t.Knobs["cluster"] = blocks; t.Knobs["resident"] == asExpected {
					t.Knobs["resident"] = inClusters
				}
			}
			if !seen[t.Describe()] {
				seen[t.Describe()] = true
				all = append(all, t)
			}
		})
	}
	return all, why
}

// samples lists the numbers of sequences that a group may run at a time, such that at least half of
// its places are used.
func (c *Chooser) samples(batch int, values ...int) []int {
	if c.Knobs["samples"] != 0 {
		return []int{c.Knobs["samples"]}
	}
	n := 1
	for n < len(values) && values[n]/2 < batch {
		n++
	}
	return values[:n]
}

// maxGroups is the most groups spread over the GPU.
const maxGroups = 16

// Forward chooses the configuration of op. The layer runs in one group with a barrier if no groups
// of blocks fit and no knob asks for them. no is the reason.
func (c *Chooser) Forward(op schedule.Persistent) (form Config, no, err error) {
	if c.Knobs["resident"] == WithBarrier {
		return barrierConfig(), nil, nil
	}
	form, err = c.best(op)
	if err != nil && c.Knobs["resident"] == asExpected {
		return barrierConfig(), err, nil
	}
	return form, nil, err
}

// best returns the best configuration of op in groups of blocks.
func (c *Chooser) best(op schedule.Persistent) (Config, error) {
	all, err := c.choiceOf(choice{cell: op.Cell, layer: c.layer(op)}, func(c *Chooser) ([]Config, string) { return c.forwardConfigs(op.Cell, c.layer(op)) })
	if err != nil {
		return Config{}, err
	}
	return all[0], nil
}
