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

// backwardBlockVariant multiplies on tensor cores, in 16 bits: a warp has whole rows of 16 units, and a block all weights in registers.
var backwardBlockVariant = &Variant{
	Kernel:   kernels.Kernel{Name: "backward-block", Headers: []string{"backward_block"}, Files: []string{"backward_block"}, Entry: "back_layer"},
	Backward: true, Strategies: []int{inOneBlock}, tensor: true,
	Exchange: "none beyond a block",
	words:    map[string]string{"AHEAD": "steps by which inputs are read ahead: %d"},
	fit:      Fit{1, 0.16}, // of 17 small layers
	considered: func(c *Chooser, _ Layer) (turn, bool) {
		return first.provided(c.Knobs["tensor"] != 2 && c.allows(inOneBlock)), false
	},
	configs: backwardBlocks,
}

// A backwardBlock says how backward_block.cu divides a layer: into blocks that each run the
// gradient of some sequences and hold all weights in registers.
type backwardBlock struct {
	Layer
	samples int // sequences per block
	ahead   int // steps that inputs are read ahead
}

// blockTile is how many units a warp multiplies for.
const blockTile = 16

func (b backwardBlock) threads() int { return 32 * ints.CeilDiv(b.Hidden, blockTile) }

// chunks returns the number of 64-byte pieces of the gradients of a sequence's gates.
func (b backwardBlock) chunks() int {
	return ints.CeilDiv(b.Gates*ints.RoundUp(b.Hidden, blockTile)*b.Weights.Bytes(), 64)
}

// each returns how many values a thread has.
func (b backwardBlock) each() int { return b.samples / 2 }

// shared returns the bytes of shared memory of a block: two buffers of gradients.
func (b backwardBlock) shared() int {
	row := 64 * b.chunks()
	if row%128 == 0 {
		row += 64
	}
	return 2 * (blockColumns*row + 128)
}

// blockColumns is how many sequences a tile has columns for.
const blockColumns = 8

// registers estimates the registers of a thread, given those carried per value, as NVRTC 12.4
// compiled 120 configurations.
func (b backwardBlock) registers(carried int) int {
	return 8*b.chunks() + 46 + b.each()*carried*(15+11*(b.ahead-2)/2)/10
}

// shaped says why b does not fit; "": it fits.
func (b backwardBlock) shaped(carried int) string {
	room := min(MaxRegisters, RegistersOfSM/ints.RoundUp(b.threads(), 128)/8*8)
	switch {
	case b.Weights == driver.Single:
		return "whole rows of gradients are multiplied in 16 bits"
	case b.samples != 2 && b.samples != 4 && b.samples != blockColumns:
		return fmt.Sprintf("a block multiplies 2, 4 or 8 sequences, not %d", b.samples)
	case b.threads() > 1024 || b.registers(carried) > room-6:
		return fmt.Sprintf("all weights of %d units with %d gates take more registers than a block has", b.Hidden, b.Gates)
	}
	return ""
}

// perSM returns how many blocks fit on a multiprocessor.
func (b backwardBlock) perSM(carried int, p driver.Properties) int {
	registers := min(MaxRegisters, ints.RoundUp(b.registers(carried), 8))
	return max(1, min(RegistersOfSM/(registers*b.threads()), p.Shared/b.shared()))
}

// config returns b as a Config.
func (b backwardBlock) config(carried int, p driver.Properties) Config {
	return Config{
		blocks: 1, samples: b.samples, threads: b.threads(), shared: b.shared(), together: p.SMs * b.perSM(carried, p), cycles: b.cycles(carried, p),
		sizes: codegen.Constants("SPREAD", 0, "SAMPLES", b.samples, "AHEAD", b.ahead),
		Knobs: knob.Params{"resident": inOneBlock, "samples": b.samples, "cluster": 1, "tensor": 1},
	}
}

// The gradient by backward-block, in cycles: fitted to 17 measurements on a Hopper GPU, to 16 %.
const (
	blockBackStep   = 200  // the barrier and its latency
	blockBackPiece  = 20   // a 64-byte piece that a warp multiplies
	blockBackValue  = 6    // each register that a value's cell carries
	blockBackLate   = 8    // added if it is read two steps ahead, not four
	blockBackSecond = 0.35 // time of a second block, which fills the first one's waits, as a share of the first one's
)

// cycles predicts a step of all sequences.
func (b backwardBlock) cycles(carried int, p driver.Properties) float64 {
	quarter := float64(ints.CeilDiv(b.threads(), 128)) // warps per quarter of a multiprocessor
	values := float64(b.each() * carried)
	step := blockBackStep + quarter*(blockBackPiece*float64(b.chunks())+blockBackValue*values)
	if b.ahead == 2 {
		step += blockBackLate * values
	}
	blocks := ints.CeilDiv(b.Batch, b.samples)
	beside := min(b.perSM(carried, p), ints.CeilDiv(blocks, p.SMs))
	return float64(ints.CeilDiv(blocks, p.SMs*beside)) * step * (1 + blockBackSecond*float64(beside-1))
}

// backwardBlocks lists how the gradient of a layer can run in single blocks, as knobs allow, or
// says why it cannot.
func backwardBlocks(c *Chooser, l Layer) (all []Config, why string) {
	carried := unitRegisters(l.Cell)
	for _, samples := range c.choose("samples", 2, 4, blockColumns) {
		for _, ahead := range []int{4, 2} {
			b := backwardBlock{Layer: l, samples: samples, ahead: ahead}
			no := b.shaped(carried)
			if no == "" {
				all = append(all, b.config(carried, c.Properties))
				break
			}
			why = cmp.Or(why, no)
		}
	}
	return all, why
}
