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

// ClusterSizes are those that are tried.
func ClusterSizes() []int { return []int{1, 2, 4, 8, 16} }

// choose is the setting of a knob, or values where it has the device choose.
func (b *Chooser) choose(name string, values ...int) []int {
	if v := b.Knobs[name]; v != 0 {
		return []int{v}
	}
	return values
}

// groupSizes lists the numbers of blocks of groups that knobs allow, clusters first.
func (c *Chooser) groupSizes() (clusters, spread []int) {
	r := c.Knobs["resident"]
	if (r == asExpected || r == inClusters || r == inWholeRows) && c.Properties.Capability >= 90 {
		clusters = c.choose("cluster", ClusterSizes()...)
	}
	if r != inClusters && r != inWholeRows {
		for _, n := range c.choose("groups", 1, 2, 4, 8, maxGroups) {
			if blocks := c.Properties.SMs / n; blocks > 0 {
				spread = append(spread, blocks)
			}
		}
	}
	return clusters, spread
}

// forwardConfigs lists those of a layer of c that fit and that knobs allow, cheapest
// first, or says why there are none. Single precision is not cut into halves
// where states may be beyond those, unless knobs say so.
func (c *Chooser) forwardConfigs(of *cell.Cell, l Layer) ([]Config, string) {
	var all []Config
	why := ""
	if c.Knobs["tensor"] == 1 || c.Knobs["tensor"] == 0 && !(l.exact && of.Kinked()) {
		all, why = c.overGroupSizes(l, func(l Layer, spread bool, blocks int, add func(Config, string)) {
			c.mmas(l, len(of.States), spread, blocks, add)
			c.wholeRows(l, spread, blocks, add)
		})
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

// A Layer is what groupings are chosen for.
type Layer struct {
	hidden, gates, batch int
	weights              driver.Element
	exact                bool // single precision throughout
	within               int  // of the state that goes through weights; see within
	inputs               int  // places for those of a unit and step, where they can be read steps ahead
}

func (c *Chooser) layer(op schedule.Persistent) Layer {
	inputs := 0
	if c.Element(op.X) == driver.Single {
		r := newRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
		inputs = r.inputs()
	}
	return Layer{hidden: op.Hidden(), gates: op.Cell.Recurrent, batch: op.Batch(), weights: c.Element(op.R[0]), exact: c.Precision == schedule.FP32, within: within(op.Cell), inputs: inputs}
}

// overGroupSizes lists the groupings of one kind, of all numbers of blocks.
func (c *Chooser) overGroupSizes(l Layer, kind func(l Layer, spread bool, blocks int, add func(Config, string))) ([]Config, string) {
	var all []Config
	why := "the GPU has no clusters of blocks"
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
					return // groups without sequences
				}
				t.Knobs["groups"] = c.choose("groups", c.Properties.SMs/blocks)[0]
				if t.Knobs["resident"] == asExpected {
					t.Knobs["resident"] = overGrid
				}
			default:
				if t.blocks > 1 && c.Properties.Together(t.blocks) == 0 {
					why = fmt.Sprintf("no %d blocks share memory on this GPU", t.blocks)
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

// samples lists how many sequences a group can run at a time without having more
// than half of its places empty.
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

// maxGroups bounds the groups spread over the GPU.
const maxGroups = 16

// Forward is how op runs. Where no groups of blocks fit and no knob names them, no
// says why.
func (c *Chooser) Forward(op schedule.Persistent) (form Config, no, err error) {
	if c.Knobs["resident"] == WithBarrier {
		return barrierConfig(), nil, nil
	}
	form, err = c.Chosen(op)
	if err != nil && c.Knobs["resident"] == asExpected {
		return barrierConfig(), err, nil
	}
	return form, nil, err
}

// Chosen is how op runs in groups.
func (c *Chooser) Chosen(op schedule.Persistent) (Config, error) {
	all, err := c.choiceOf(choice{cell: op.Cell, layer: c.layer(op)}, func(c *Chooser) ([]Config, string) { return c.forwardConfigs(op.Cell, c.layer(op)) })
	if err != nil {
		return Config{}, err
	}
	return all[0], nil
}
