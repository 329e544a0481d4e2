// Package persistent runs recurrent layers, and their gradients, as one kernel over all steps,
// whose blocks keep the recurrent weights on chip (Diamos et al. 2016). A Variant is a kernel. Its
// file has its row, how it divides a layer, and what a step costs. A Config is one such division. A
// Chooser picks the Config that is predicted to be the fastest (choose.go). The texts are in package
// kernels. Packages barrier and stack have what no row describes: one group of all blocks, and
// several layers as one kernel.
package persistent

import (
	"fmt"
	"strings"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// A Variant is a kernel that runs a layer, or its gradient, in groups of blocks. Its row stands in
// its file, with its configurations, their cycles and their words. Two kinds of kernels have no
// rows, since they are not chosen by configurations of one layer: a layer that fits no group, or for
// which a knob asks so, runs in one group with a barrier (package barrier), and stacked layers may
// run as one kernel (package stack).
type Variant struct {
	kernels.Kernel        // its text, and its name
	Backward       bool   // it runs the gradient of a layer
	Strategies     []int  // the values of the knob "resident" that select it
	Exchange       string // how its blocks exchange states or gradients
	tensor         bool   // it multiplies on tensor cores
	needs          string // what it needs that GPUs have from compute capability 9.0 on; "": nothing

	// considered says when a Chooser considers it for a layer or its gradient, and whether it then
	// tells why nothing fits.
	considered func(c *Chooser, l Layer) (when turn, tells bool)
	// configs lists its configurations that fit and that knobs allow, or says why there are none.
	configs func(c *Chooser, l Layer) ([]Config, string)
	aside   string // why it is not considered though it fits; "": others were measured to be faster

	words  map[string]string // describes the constants of its kernel alone: see describe
	fit    Fit
	onChip Fit // with all weights on chip, if that differs
}

const (
	pushes   = "pushed to the blocks of a cluster, or as words through the L2 cache"
	partials = "partial sums, pushed within a cluster and as words through the L2 cache"
)

// Variants lists the kernels. A Chooser lists the configurations of all that are feasible and fit,
// and takes the one with the fewest predicted cycles.
var Variants = []*Variant{
	simtVariant, mmaVariant, pollVariant, bulkVariant, wholeRowVariant, blockVariant, streamVariant, wideVariant,
	backwardSIMTVariant, backwardMMAVariant, backwardBulkVariant, backwardBlockVariant, backwardStreamVariant, backwardWideVariant,
}

// Feasible reports whether a GPU can run the variant for any layer.
func (v *Variant) Feasible(p driver.Properties) bool { return v.needs == "" || p.Capability >= 90 }

// list lists v's configurations that fit and that knobs allow, or says why there are none.
func (v *Variant) list(c *Chooser, l Layer) ([]Config, string) {
	all, why := v.configs(c, l)
	for i := range all {
		all[i].variant = v
	}
	return all, why
}

// A Strategy is a value of the knob "resident", as records and wisdom store it.
type Strategy struct {
	Value    int
	Name     string
	Clusters bool // groups are clusters, not spread over the GPU
	Doc      string
}

// Strategies are the places where a layer's weights stay, a copy in each group of blocks.
var Strategies = []Strategy{
	{Value: inClusters, Name: "cluster", Clusters: true, Doc: "groups are clusters"},
	{Value: overGrid, Name: "grid", Doc: "groups are spread over the GPU"},
	{Value: WithBarrier, Name: "barrier", Doc: "one group with a barrier, weights in shared memory"},
	{Value: inBulk, Name: "mma-bulk", Doc: "groups are spread over the GPU and take turns with their sequences"},
	{Value: byPolling, Name: "mma-poll", Doc: "groups are spread over the GPU, and each warp reads what it multiplies"},
	{Value: inWholeRows, Name: "wholerow", Clusters: true, Doc: "groups are clusters, and each warp multiplies whole rows"},
	{Value: byStreaming, Name: "stream", Doc: "one group over the whole GPU, with weights beyond the chip read from the L2 cache at each step"},
	{Value: inOneBlock, Name: "block", Doc: "each block is a group, with all weights in its registers, in 16 bits"},
	{Value: inWideProducts, Name: "mma-wide", Doc: "groups are spread over the GPU, and warpgroups multiply up to 256 sequences at once, in 16 bits"},
}

// Values of the knob "resident".
const (
	asExpected = iota // predicted to be the fastest
	inClusters
	overGrid
	WithBarrier
	inBulk
	byPolling
	inWholeRows
	byStreaming
	inOneBlock
	inWideProducts
)

// strategy returns the strategy with that value; the zero Strategy if there is none.
func strategy(value int) Strategy {
	for _, s := range Strategies {
		if s.Value == value {
			return s
		}
	}
	return Strategy{}
}

// residentKnob returns the knob "resident".
func residentKnob() knob.Knob {
	values := []int{asExpected}
	var all []string
	for _, s := range Strategies {
		values = append(values, s.Value)
		all = append(all, fmt.Sprintf("%d: %s: %s", s.Value, s.Name, s.Doc))
	}
	doc := "where a persistent layer's weights stay, a copy in each group of blocks: " + strings.Join(all, "; ") +
		"; 0: predicted to be the fastest; if only the layer or only its gradient can run so, the other is spread over the GPU"
	return knob.Knob{Name: "resident", Doc: doc, Values: values}
}

// Setting names the setting of a knob in errors, with the strategy's name if it has one.
func Setting(knob string, value int) string {
	if name := strategy(value).Name; knob == "resident" && name != "" {
		return fmt.Sprintf("%s=%d (%s)", knob, value, name)
	}
	return fmt.Sprintf("%s=%d", knob, value)
}
