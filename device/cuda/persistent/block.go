package persistent

import (
	"cmp"
	"fmt"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/knob"
)

// blockVariant multiplies on tensor cores, in 16 bits: a warp has whole rows of eight units, and a block all weights in registers.
var blockVariant = &Variant{
	Kernel:     kernels.Kernel{Name: "block", Headers: []string{"block"}, Files: []string{"fragments", "block"}, Entry: "block_layer"},
	Strategies: []int{inOneBlock}, tensor: true,
	Exchange: "none beyond a block",
	fit:      Fit{0.93, 0.1}, // of 11 small layers
	considered: func(c *Chooser, l Layer) (turn, bool) {
		return first.provided(c.onTensorCores(l) && c.allows(inOneBlock)), false
	},
	configs: blocks,
}

// A block says how block.cu divides a layer: into blocks that each run some of the sequences and
// hold all weights in registers.
type block struct {
	Layer
	samples int // sequences per block
}

// blockBand is how many units a warp has.
const blockBand = 8

func (b block) threads() int { return 32 * ints.CeilDiv(b.Hidden, blockBand) }

// tiles returns the number of a warp's tiles of rows, of two gates each.
func (b block) tiles() int { return ints.CeilDiv(b.Gates, 2) }

// chunks returns the number of 64-byte pieces of a sequence's states.
func (b block) chunks() int { return ints.CeilDiv(b.Hidden*b.Weights.Bytes(), 64) }

// each returns how many values a thread has.
func (b block) each() int { return b.samples / 4 }

// shared returns the bytes of shared memory of a block: two buffers of states, and inputs in
// flight.
func (b block) shared() int {
	row := 64 * b.chunks()
	if row%128 == 0 {
		row += 64
	}
	return 2*(blockColumns*row+128) + 4*streamDepth*b.threads()*b.Inputs*b.each()
}

// registers estimates the registers of a thread, as NVRTC 12.4 compiled 40 configurations.
func (b block) registers() int {
	return 8*b.tiles()*b.chunks() + 44 + b.each()*(3+7*b.Inputs-2*b.Gates)
}

// shaped says why b does not fit; "": it fits.
func (b block) shaped(p driver.Properties) string {
	room := min(MaxRegisters, RegistersOfSM/ints.RoundUp(b.threads(), 128)/8*8)
	switch {
	case b.Weights == driver.Single:
		return "one block multiplies in 16 bits"
	case b.Inputs == 0:
		return "inputs that are read ahead must be in single precision"
	case b.samples != 4 && b.samples != blockColumns:
		return fmt.Sprintf("a block multiplies 4 or 8 sequences, not %d", b.samples)
	case b.threads() > 1024 || b.registers() > room:
		return fmt.Sprintf("all weights of %d units with %d gates take more registers than a block has", b.Hidden, b.Gates)
	case b.shared() > p.Shared:
		return fmt.Sprintf("states and inputs take %d KiB of shared memory, and there are %d", b.shared()>>10, p.Shared>>10)
	}
	return ""
}

// perSM returns how many blocks fit on a multiprocessor.
func (b block) perSM(p driver.Properties) int {
	registers := min(MaxRegisters, ints.RoundUp(b.registers(), 8))
	return max(1, min(RegistersOfSM/(registers*b.threads()), p.Shared/b.shared()))
}

// config returns b as a Config.
func (b block) config(p driver.Properties) Config {
	return Config{
		Order: ByUnit, blocks: 1, samples: b.samples, threads: b.threads(), shared: b.shared(), together: p.SMs * b.perSM(p), cycles: b.cycles(p),
		sizes: codegen.Constants("SPREAD", 0, "SAMPLES", b.samples, "BAND", blockBand, "EXACT", 0),
		Knobs: knob.Params{"resident": inOneBlock, "samples": b.samples, "cluster": 1, "tile": blockBand, "lanes": 4, "tensor": 1},
	}
}

// block, in cycles: fitted to 11 measurements on a Hopper GPU, to 10 %.
const (
	blockStep    = 180  // the barrier and its latency
	blockPiece   = 4    // a product's two halves, per warp
	blockGate    = 70   // a gate of a value
	blockSecond  = 0.7  // time of a second block, which fills the first one's waits, as a share of the first one's
	blockCaution = 1.07 // factor, since simt was faster for rnn-tanh 96 at batch 28 but predicted slower
)

// cycles predicts a step of all sequences.
func (b block) cycles(p driver.Properties) float64 {
	quarter := float64(ints.CeilDiv(b.threads(), 128)) // warps per quarter of a multiprocessor
	step := blockStep + quarter*(blockPiece*float64(b.tiles()*b.chunks())+blockGate*float64(b.each()*b.Gates))
	blocks := ints.CeilDiv(b.Batch, b.samples)
	beside := min(b.perSM(p), ints.CeilDiv(blocks, p.SMs))
	return blockCaution * float64(ints.CeilDiv(blocks, p.SMs*beside)) * step * (1 + blockSecond*float64(beside-1))
}

// blocks lists how a layer can run in single blocks, as knobs allow, or says why it cannot.
func blocks(c *Chooser, l Layer) (all []Config, why string) {
	for _, samples := range c.choose("samples", 4, blockColumns) {
		b := block{Layer: l, samples: samples}
		if no := b.shaped(c.Properties); no != "" {
			why = cmp.Or(why, no)
			continue
		}
		all = append(all, b.config(c.Properties))
	}
	return all, why
}
