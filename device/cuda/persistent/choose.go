package persistent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"rnnbench/device/cuda/ints"
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
	if (r == asExpected || only) && c.hasClusters() {
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

// A turn says when a Chooser considers a variant.
type turn int

const (
	never      turn = iota
	alone           // and no other
	first           // in any case
	ifNone          // if none of those fits, or the cheapest of those is mma-poll
	lastResort      // if none at all fits
	additional      // in any case; that it fits keeps no other out
)

// provided returns t if ok, else never.
func (t turn) provided(ok bool) turn {
	if ok {
		return t
	}
	return never
}

// configs lists the configurations of a layer, or of its gradient, that fit and that knobs allow,
// the cheapest first, or says why there are none.
func (c *Chooser) configs(l Layer, backward bool) (all []Config, why string) {
	why = noGroups(c)
	for now := alone; now <= additional; now++ {
		if len(all) > 0 && (now == ifNone && slices.MinFunc(all, cheaper).variant != pollVariant || now == lastResort) {
			continue
		}
		considered := false
		for _, v := range Variants {
			turn, tells := v.considered(c, l)
			if v.Backward != backward || turn != now {
				continue
			}
			some, no := v.list(c, l)
			if all = append(all, some...); tells {
				why = no
			}
			considered = true
		}
		if now == alone && considered {
			break
		}
	}
	slices.SortStableFunc(all, func(x, y Config) int { return cmp.Or(cheaper(x, y), y.prior-x.prior) })
	return all, why
}

// onTensorCores reports whether knobs let a layer run on tensor cores. If states may exceed what
// fp16 halves can hold, fp32 uses them only if a knob says so.
func (c *Chooser) onTensorCores(l Layer) bool {
	return c.Knobs["tensor"] == 1 || c.Knobs["tensor"] == 0 && !(l.Exact && l.Cell.Kinked())
}

// allows reports whether the knob "resident" allows a strategy.
func (c *Chooser) allows(strategy int) bool {
	r := c.Knobs["resident"]
	return r == asExpected || r == strategy
}

// hasClusters reports whether the GPU has clusters of blocks and a copy engine.
func (c *Chooser) hasClusters() bool { return c.Properties.Capability >= 90 }

func cheaper(x, y Config) int { return cmp.Compare(x.cycles, y.cycles) }

// noGroups says why there are no configurations if none was tried.
func noGroups(c *Chooser) string {
	if !c.hasClusters() {
		return "the GPU has no clusters of blocks"
	}
	return "the knobs leave no way to form groups of blocks"
}

// A divider adds the configurations of a layer in groups of so many blocks, or says why one does
// not fit. spread: groups are spread over the GPU, not clusters.
type divider func(c *Chooser, l Layer, spread bool, blocks int, add func(t Config, no string))

// inGroups returns a function that lists the configurations in groups of all sizes, or says why
// there are none.
func inGroups(divide divider) func(c *Chooser, l Layer) ([]Config, string) {
	return func(c *Chooser, l Layer) ([]Config, string) { return c.overGroupSizes(l, divide) }
}

func (c *Chooser) overGroupSizes(l Layer, divide divider) ([]Config, string) {
	var all []Config
	why, best := noGroups(c), ""
	seen := map[string]bool{}
	clusters, spread := c.groupSizes()
	for i, blocks := range slices.Concat(clusters, spread) {
		spread := i >= len(clusters)
		divide(c, l, spread, blocks, func(t Config, no string) {
			switch {
			case no != "":
				if why = no; nearest(best, no, spread) {
					best = no
				}
				return
			case spread:
				if c.Knobs["groups"] == 0 && c.Properties.SMs/blocks > ints.CeilDiv(l.Batch, t.samples) {
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
			if !seen[t.geometry()] {
				seen[t.geometry()] = true
				all = append(all, t)
			}
		})
	}
	if c.explains {
		why = cmp.Or(best, why)
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
	all, err := c.choiceOf(c.Layer(op), false)
	if err != nil {
		return Config{}, err
	}
	return all[0], nil
}

// Backward chooses the configuration of op; see Forward.
func (c *Chooser) Backward(op schedule.PersistentBackward) (form Config, no, err error) {
	if c.Knobs["resident"] == WithBarrier {
		return barrierConfig(), nil, nil
	}
	l := c.gradient(op)
	all, err := c.choiceOf(l, true)
	if err != nil && c.Knobs["samples"] != 0 { // samples may suit only the forward pass
		free, same := *c, *c.Target
		same.Knobs = maps.Clone(c.Knobs)
		free.Target = &same
		delete(free.Knobs, "samples")
		all, err = free.choiceOf(l, true)
	}
	switch n := c.Knobs["back"]; {
	case err != nil && (c.Knobs["resident"] == asExpected || c.Knobs["resident"] == byStreaming):
		return barrierConfig(), err, nil
	case err != nil:
		return Config{}, nil, err
	case n >= len(all):
		return Config{}, nil, fmt.Errorf("cuda: back=%d: %w: there are %d ways to divide this gradient, from 0 on", n, schedule.ErrKnob, len(all))
	default:
		return all[n], nil, nil
	}
}

// Cheapest returns the cheapest configuration of l in groups of blocks, and whether there is one.
func (c *Chooser) Cheapest(l Layer) (form Config, fits bool) {
	all, _ := c.configs(l, false)
	if len(all) == 0 {
		return Config{}, false
	}
	return all[0], true
}
