package persistent

import (
	"fmt"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// wholeRowVariant multiplies on tensor cores: a warp has whole rows of four units, of cells with three or four gates.
var wholeRowVariant = &Variant{
	Kernel:     kernels.Kernel{Name: "wholerow", Headers: []string{"wholerow"}, Files: []string{"fragments", "wholerow"}, Entry: "wholerow_layer"},
	Strategies: []int{inWholeRows}, needs: "clusters of blocks", tensor: true,
	Exchange: "pushed to the blocks of a cluster",
	fit:      Fit{0.77, 0.14},
	considered: func(c *Chooser, l Layer) (turn, bool) {
		return first.provided(c.onTensorCores(l) && c.allows(inWholeRows)), c.Knobs["resident"] == inWholeRows
	},
	configs: inGroups(wholeRows),
}

// A wholeRow says how wholerow.cu divides a layer: in clusters of blocks. Each warp multiplies the
// rows of rowUnits units, with all of their gates and all columns.
type wholeRow struct {
	Layer
	cluster int // blocks that share the units
	units   int // per block
	samples int // sequences per cluster
}

// rowUnits is the number of units whose three or four gates fill a tile of 16 rows.
const rowUnits = 4

func (r wholeRow) threads() int { return 32 * r.units / rowUnits }

// tiles returns the number of tiles of 16 columns.
func (r wholeRow) tiles() int { return ints.CeilDiv(r.Hidden, 16) }

// parts returns the number of halves of a value.
func (r wholeRow) parts() int { return 1 + ints.FromBool(r.Exact) }

// most returns how many sequences fit the columns of a product; fp32 takes two columns each.
func (r wholeRow) most() int { return 8 / r.parts() }

// four returns the bytes of rowUnits units' states.
func (r wholeRow) four() int { return 16 * ints.PowerOfTwo(ints.CeilDiv(r.samples*r.parts(), 2)) }

// registers returns the fewest registers with which NVRTC 12.4 spills none.
func (r wholeRow) registers() int { return 4*r.tiles()*r.parts() + 96 + 34*ints.FromBool(!r.Exact) }

// shared returns the bytes of shared memory of a block: barriers, two buffers of states, and inputs
// in flight.
func (r wholeRow) shared() int {
	return 128 + 2*4*r.tiles()*r.four() + 4*streamDepth*r.threads()*r.Inputs
}

// slower reports whether other variants were measured to be faster: in 16 bits, for 256 or more
// units, if a quarter of a multiprocessor has two warps.
func (r wholeRow) slower(p driver.Properties) bool {
	return !r.Exact && r.Hidden >= 256 && (r.threads() > 160 || ints.CeilDiv(r.Batch, r.samples) > r.together(p))
}

// shaped fills in how r, of so many blocks at most, divides the units, or says why it does not fit.
func (r wholeRow) shaped(blocks int) (wholeRow, string) {
	r.units = ints.RoundUp(ints.CeilDiv(r.Hidden, blocks), rowUnits)
	r.cluster = ints.CeilDiv(r.Hidden, r.units)
	switch threads := r.threads(); {
	case r.Gates != 3 && r.Gates != 4:
		return r, fmt.Sprintf("whole rows need units with three or four gates, not %d", r.Gates)
	case r.Weights == driver.Single && !r.Exact:
		return r, "whole rows are multiplied in 16 bits, or in fp32 as two halves"
	case r.Inputs == 0:
		return r, "inputs that are read ahead must be in single precision"
	case r.samples > r.most():
		return r, fmt.Sprintf("whole rows are multiplied with at most %d sequences, not %d", r.most(), r.samples)
	case threads > 1024 || r.registers() > min(MaxRegisters, RegistersOfSM/ints.RoundUp(threads, 128)/8*8):
		return r, fmt.Sprintf("whole rows of %d columns of a block's %d units take more registers than there are", r.Hidden, r.units)
	}
	return r, ""
}

// perSM returns how many blocks fit on a multiprocessor. Each block gets all registers that its
// threads may have.
func (r wholeRow) perSM(p driver.Properties) int {
	if p.Part {
		return 1
	}
	return max(1, min(RegistersOfSM/(256*ints.RoundUp(r.threads(), 128)), p.Shared/r.shared()))
}

// together returns how many clusters run at the same time, with one block on each multiprocessor.
func (r wholeRow) together(p driver.Properties) int { return max(1, p.Together(r.cluster)) }

// config returns r as a Config.
func (r wholeRow) config(p driver.Properties) Config {
	return Config{
		Order: ByUnit, few: p.Part, blocks: r.cluster, samples: r.samples, threads: r.threads(), shared: r.shared(), together: r.together(p), cycles: r.cycles(p),
		sizes: codegen.Constants(
			"SPREAD", 0, "CLUSTER", r.cluster, "UNITS", r.units, "SEQUENCES", r.samples, "BAND", rowUnits,
			"EXACT", ints.FromBool(r.Exact), "BOUNDED", ints.FromBool(r.Within == 1),
		),
		Knobs: knob.Params{"resident": inWholeRows, "samples": r.samples, "tile": rowUnits, "lanes": 4, "tensor": 1},
	}
}

// wholeRows adds the configurations of clusters of so many blocks.
func wholeRows(c *Chooser, l Layer, spread bool, blocks int, add func(Config, string)) {
	if spread {
		return
	}
	most := wholeRow{Layer: l}.most()
	samples := c.choose("samples", most)
	if n := ints.CeilDiv(l.Batch, max(1, c.Properties.Together(blocks))); c.Knobs["samples"] == 0 && n < most {
		samples = []int{n, min(most, 2*n)}
	}
	for _, n := range samples {
		r, no := wholeRow{Layer: l, samples: n}.shaped(blocks)
		switch {
		case no != "":
			add(Config{}, no)
		case !r.slower(c.Properties) || c.Knobs["resident"] == inWholeRows:
			add(r.config(c.Properties), "")
		}
	}
}

// wholerow: from measurements of 192 and 256 units.
const (
	rowStep    = 780
	rowProduct = 6.5  // a product of a quarter of a multiprocessor
	rowCaution = 1.3  // factor: other models overestimate by as much
	rowSecond  = 0.66 // time of a second block, which fills the first one's waits, as a share of the first one's; fp32: of a second warp
)

// cycles predicts a step of all sequences. Limits of products are the rates of tensor cores and of
// shared memory. A block sends 32 bytes per cycle. The chain of the rest is added.
func (r wholeRow) cycles(p driver.Properties) float64 {
	clusters, together := ints.CeilDiv(r.Batch, r.samples), r.together(p)
	blocks := min(r.perSM(p), ints.CeilDiv(clusters, together))
	warps := r.threads() / 32
	quarter := float64(ints.CeilDiv(warps, 4)) // warps per quarter of a multiprocessor
	if r.Exact {
		quarter = 1 + rowSecond*(quarter-1)
	}
	products := rowProduct * float64(r.parts()*r.tiles()) * quarter
	delivered := float64(2 * warps * r.tiles())
	sent := float64(r.cluster*warps*r.four()) / 32
	one := max(products, delivered) + sent
	return float64(ints.CeilDiv(clusters, together*blocks)) * rowCaution * (rowStep + one*(1+rowSecond*float64(blocks-1)))
}
