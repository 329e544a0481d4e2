package persistent

import "rnnbench/device/cuda/persistent/kernels"

// bulkVariant multiplies on tensor cores: groups take turns with several parts of the sequences.
var bulkVariant = &Variant{
	Kernel:     kernels.Kernel{Name: "mma-bulk", Headers: []string{"mma_layer", "mma_bulk"}, Files: []string{"fragments", "mma_layer", "mma_bulk"}, Entry: "mma_bulk_layer"},
	Strategies: []int{inBulk}, needs: "clusters of blocks", tensor: true,
	Exchange: "the copy engine copies all states of a turn",
	words:    map[string]string{"SLOTS": "places for a turn's states: %d"},
	fit:      Fit{0.68, 0.09},
	considered: func(c *Chooser, l Layer) (turn, bool) {
		return first.provided(c.onTensorCores(l) && c.allows(inBulk) && c.hasClusters()), c.Knobs["resident"] == inBulk
	},
	configs: inGroups(mmas(inBulk)),
}

// mma-bulk: fitted with mma, to 11 %.
const (
	bulkRate      = 6.5  // a product, if many sums at the same time keep tensor cores busy
	bulkRateFew   = 15   // added, divided by the number of sums
	bulkTurn      = 1430 // a turn
	bulkAlone     = 2220 // wait of a single turn per step
	bulkAloneRate = 42   // bytes per cycle copied then
	bulkFew       = 2030 // wait of two or three turns per step
	bulkCopyRate  = 84   // bytes per cycle
)

// bulkCycles predicts a step of all sequences, given the cycles of a turn without the exchange, and
// the bytes of its states.
func (f mma) bulkCycles(turn, bytes float64) float64 {
	switch {
	case f.passes == 1:
		return turn + bulkAlone + bytes/bulkAloneRate
	case f.passes < 4:
		return float64(f.passes)*(turn+bytes/bulkCopyRate) + bulkFew
	}
	return float64(f.passes) * (turn + bytes/bulkCopyRate)
}
