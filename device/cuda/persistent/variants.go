package persistent

import (
	"fmt"
	"strings"
)

// A Variant is a kernel that runs a layer, or its gradient, in groups of blocks.
type Variant struct {
	Name      string
	Strategy  string // of Strategies, or several
	Doc       string // how it multiplies, and how its blocks exchange states
	Hopper    bool   // it takes clusters of blocks, from compute capability 9.0 on
	Backward  bool
	files     []string // its text, in this order
	entry     string   // the function of the last of them that runs a layer
	exchanges string
}

// Variants are the kernels. A Chooser lists the configurations of all that fit and
// takes the one with the fewest expected cycles.
var Variants = []*Variant{
	simtVariant, mmaVariant, pollVariant, bulkVariant, wholeRowVariant, backwardSIMTVariant, backwardMMAVariant, backwardBulkVariant,
}

var (
	simtVariant = &Variant{
		Name: "simt", Strategy: "cluster, grid", files: []string{"simt"}, entry: "simt_layer",
		Doc: "fused multiply-adds; threads share the columns of a unit's weights, which are in registers and shared memory", exchanges: "pushed to the blocks of a cluster, or as words through the L2 cache",
	}
	mmaVariant = &Variant{
		Name: "mma", Strategy: "cluster, grid", files: []string{"fragments", "mma"}, entry: "mma_layer",
		Doc: "tensor cores; warps share the columns of a band of units", exchanges: "pushed to the blocks of a cluster, or as words through the L2 cache",
	}
	pollVariant = &Variant{
		Name: "mma-poll", Strategy: "mma-poll", files: []string{"fragments", "mma_poll"}, entry: "mma_poll_layer",
		Doc: "tensor cores; each warp reads the states that it multiplies", exchanges: "each warp polls the words that it needs in the L2 cache",
	}
	bulkVariant = &Variant{
		Name: "mma-bulk", Strategy: "mma-bulk", files: []string{"fragments", "mma_bulk"}, entry: "mma_bulk_layer", Hopper: true,
		Doc: "tensor cores; groups take turns with several parts of the sequences", exchanges: "states are copied whole by the copy engine",
	}
	wholeRowVariant = &Variant{
		Name: "wholerow", Strategy: "wholerow", files: []string{"fragments", "wholerow"}, entry: "wholerow_layer", Hopper: true,
		Doc: "tensor cores; a warp multiplies whole rows of the weights of four units, for cells of three or four gates", exchanges: "pushed to the blocks of a cluster",
	}
	backwardSIMTVariant = &Variant{
		Name: "backward-simt", Strategy: "cluster, grid", Backward: true, files: []string{"backward_simt", "backward"}, entry: "back_layer",
		Doc: "fused multiply-adds; each block forms its part of every unit's gradient", exchanges: "partial sums are pushed within a cluster, or go as words through the L2 cache",
	}
	backwardMMAVariant = &Variant{
		Name: "backward-mma", Strategy: "cluster, grid", Backward: true, files: []string{"backward_mma", "backward"}, entry: "back_layer",
		Doc: "tensor cores; each block forms its part of every unit's gradient", exchanges: "partial sums are pushed within a cluster, or go as words through the L2 cache",
	}
	backwardBulkVariant = &Variant{
		Name: "backward-bulk", Strategy: "mma-bulk", Backward: true, files: []string{"fragments", "backward_bulk"}, entry: "back_layer", Hopper: true,
		Doc: "tensor cores; each block gathers the gradients of all gates", exchanges: "gradients are copied whole by the copy engine, sums are pushed within a cluster",
	}
)

// text is that of the variant's kernel, without what it is configured by.
func (v *Variant) text() string {
	var b strings.Builder
	for _, f := range v.files {
		b.WriteString(file(f).Text)
	}
	return b.String()
}

// Exchange says how blocks exchange what the next step needs.
func (v *Variant) Exchange() string { return v.exchanges }

// A Strategy is a value of the knob "resident", which records and wisdom hold.
type Strategy struct {
	Value int
	Name  string
	Doc   string
}

// Strategies are where a layer's weights stay, a copy in each group of blocks.
var Strategies = []Strategy{
	{Value: inClusters, Name: "cluster", Doc: "groups are clusters"},
	{Value: overGrid, Name: "grid", Doc: "groups are spread over the GPU"},
	{Value: WithBarrier, Name: "barrier", Doc: "one group with a barrier, weights in shared memory"},
	{Value: inBulk, Name: "mma-bulk", Doc: "groups are spread over the GPU and take turns with their sequences"},
	{Value: byPolling, Name: "mma-poll", Doc: "groups are spread over the GPU, and each warp reads what it multiplies"},
	{Value: inWholeRows, Name: "wholerow", Doc: "groups are clusters, and each warp multiplies whole rows"},
}

// Values of the knob "resident".
const (
	asExpected = iota // to be the fastest
	inClusters
	overGrid
	WithBarrier
	inBulk
	byPolling
	inWholeRows
)

// residentDoc is the text of the knob "resident".
func residentDoc() string {
	var all []string
	for _, s := range Strategies {
		all = append(all, fmt.Sprintf("%d: %s: %s", s.Value, s.Name, s.Doc))
	}
	return "where a persistent layer's weights stay, a copy in each group of blocks: " + strings.Join(all, "; ") +
		"; 0: as is expected to be the fastest; where only a layer or its gradient can be so, the other is spread"
}

// Setting is how an error names the setting of a knob: with its name, where it has one.
func Setting(knob string, value int) string {
	if knob == "resident" {
		for _, s := range Strategies {
			if s.Value == value {
				return fmt.Sprintf("%s=%d (%s)", knob, value, s.Name)
			}
		}
	}
	return fmt.Sprintf("%s=%d", knob, value)
}
