package persistent

import (
	"fmt"
	"strings"

	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/knob"
)

// A Variant is a kernel that runs a layer, or its gradient, in groups of blocks. A layer that fits
// no group, or for which a knob asks so, runs in one group with a barrier (barrier.go). Stacked
// layers may run as one kernel (stack.go).
type Variant struct {
	Name       string
	Backward   bool
	Strategies []int  // the values of the knob "resident" that select it
	Multiply   string // how it multiplies
	Exchange   string // how its blocks exchange states or gradients
	Clusters   bool   // it needs clusters of blocks or the copy engine: compute capability 9.0 or later

	config []string // the headers that explain its configuration
	files  []string // the files of its text, in this order
	entry  string   // the function that runs a layer
}

const (
	pushes   = "pushed to the blocks of a cluster, or as words through the L2 cache"
	partials = "partial sums, pushed within a cluster and as words through the L2 cache"
)

// Variants lists the kernels. A Chooser lists the configurations of all that are feasible and fit,
// and takes the one with the fewest predicted cycles (cost.go).
var Variants = []*Variant{
	simtVariant, mmaVariant, pollVariant, bulkVariant, wholeRowVariant, blockVariant, streamVariant, wideVariant,
	backwardSIMTVariant, backwardMMAVariant, backwardBulkVariant, backwardBlockVariant, backwardStreamVariant, backwardWideVariant,
}

var (
	simtVariant = &Variant{
		Name: "simt", Strategies: []int{inClusters, overGrid},
		Multiply: "fused multiply-adds; threads share the columns of a unit",
		Exchange: pushes,
		config:   []string{"simt"},
		files:    []string{"simt"}, entry: "simt_layer",
	}
	mmaVariant = &Variant{
		Name: "mma", Strategies: []int{inClusters, overGrid},
		Multiply: "tensor cores; warps share the columns of a band of units",
		Exchange: pushes,
		config:   []string{"mma_layer", "mma"},
		files:    []string{"fragments", "mma_layer", "mma"}, entry: "mma_layer",
	}
	pollVariant = &Variant{
		Name: "mma-poll", Strategies: []int{byPolling},
		Multiply: "tensor cores; each warp reads the states that it multiplies",
		Exchange: "each warp polls the words that it needs in the L2 cache",
		config:   []string{"mma_layer", "mma_poll"},
		files:    []string{"fragments", "mma_layer", "mma_poll"}, entry: "mma_poll_layer",
	}
	bulkVariant = &Variant{
		Name: "mma-bulk", Strategies: []int{inBulk}, Clusters: true,
		Multiply: "tensor cores; groups take turns with several parts of the sequences",
		Exchange: "the copy engine copies all states of a turn",
		config:   []string{"mma_layer", "mma_bulk"},
		files:    []string{"fragments", "mma_layer", "mma_bulk"}, entry: "mma_bulk_layer",
	}
	wholeRowVariant = &Variant{
		Name: "wholerow", Strategies: []int{inWholeRows}, Clusters: true,
		Multiply: "tensor cores; a warp has whole rows of four units, of cells with three or four gates",
		Exchange: "pushed to the blocks of a cluster",
		config:   []string{"wholerow"},
		files:    []string{"fragments", "wholerow"}, entry: "wholerow_layer",
	}
	blockVariant = &Variant{
		Name: "block", Strategies: []int{inOneBlock},
		Multiply: "tensor cores, in 16 bits; a warp has whole rows of eight units, and a block all weights in registers",
		Exchange: "none beyond a block",
		config:   []string{"block"},
		files:    []string{"fragments", "block"}, entry: "block_layer",
	}
	streamVariant = &Variant{
		Name: "mma-stream", Strategies: []int{byStreaming}, Clusters: true,
		Multiply: "tensor cores; weights beyond the chip come from the L2 cache at each step",
		Exchange: "each warp polls the words that it needs in the L2 cache",
		config:   []string{"mma_stream"},
		files:    []string{"fragments", "ring", "mma_stream"}, entry: "mma_stream_layer",
	}
	wideVariant = &Variant{
		Name: "mma-wide", Strategies: []int{inWideProducts}, Clusters: true,
		Multiply: "tensor cores; two warpgroups share the columns, for up to 256 sequences at once",
		Exchange: "the copy engine copies states in portions, as blocks finish them",
		config:   []string{"mma_wide"},
		files:    []string{"fragments", "mma_wide"}, entry: "mma_wide_layer",
	}
	backwardSIMTVariant = &Variant{
		Name: "backward-simt", Backward: true, Strategies: []int{inClusters, overGrid},
		Multiply: "fused multiply-adds; each block forms its part of every unit's gradient",
		Exchange: partials,
		config:   []string{"backward", "backward_simt"},
		files:    []string{"backward_simt", "backward"}, entry: "back_layer",
	}
	backwardMMAVariant = &Variant{
		Name: "backward-mma", Backward: true, Strategies: []int{inClusters, overGrid},
		Multiply: "tensor cores; each block forms its part of every unit's gradient",
		Exchange: partials,
		config:   []string{"backward", "backward_mma"},
		files:    []string{"backward_mma", "backward"}, entry: "back_layer",
	}
	backwardBulkVariant = &Variant{
		Name: "backward-bulk", Backward: true, Strategies: []int{inBulk}, Clusters: true,
		Multiply: "tensor cores; each cluster gathers the gradients of all gates",
		Exchange: "the copy engine copies gradients; sums are pushed within a cluster",
		config:   []string{"backward_bulk"},
		files:    []string{"fragments", "ring", "backward_bulk"}, entry: "back_layer",
	}
	backwardBlockVariant = &Variant{
		Name: "backward-block", Backward: true, Strategies: []int{inOneBlock},
		Multiply: "tensor cores, in 16 bits; a warp has whole rows of 16 units, and a block all weights in registers",
		Exchange: "none beyond a block",
		config:   []string{"backward_block"},
		files:    []string{"backward_block"}, entry: "back_layer",
	}
	backwardStreamVariant = &Variant{
		Name: "backward-stream", Backward: true, Strategies: []int{byStreaming}, Clusters: true,
		Multiply: "as backward-bulk; weights beyond the chip come from the L2 cache in each turn",
		Exchange: "the copy engine copies gradients; sums are pushed within a cluster",
		config:   []string{"backward_bulk"},
		files:    []string{"fragments", "ring", "backward_bulk"}, entry: "back_layer",
	}
	backwardWideVariant = &Variant{
		Name: "backward-wide", Backward: true, Strategies: []int{inWideProducts}, Clusters: true,
		Multiply: "tensor cores; warpgroups multiply up to 256 sequences at once; weights beyond the chip come from the L2 cache",
		Exchange: "the copy engine copies gradients in portions, as clusters finish them; sums are pushed within a cluster",
		config:   []string{"backward_wide"},
		files:    []string{"ring", "backward_wide"}, entry: "back_layer",
	}
)

// Feasible reports whether a GPU can run the variant for any layer.
func (v *Variant) Feasible(p driver.Properties) bool { return !v.Clusters || p.Capability >= 90 }

// text returns the variant's kernel, without its configuration and its cell.
func (v *Variant) text() string {
	var b strings.Builder
	for _, f := range v.files {
		b.WriteString(file(f).Text)
	}
	return b.String()
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
