package persistent

import (
	"fmt"
	"math"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/rnn/knob"
)

// A backwardRow is how backward_wholerow.cu divides a layer: into blocks that each run the
// gradient of some sequences and hold all weights in registers.
type backwardRow struct {
	Layer
	samples int // sequences of a block
	ahead   int // steps by which inputs are read ahead
}

// rowTile is how many units a warp multiplies for.
const rowTile = 16

func (r backwardRow) threads() int { return 32 * ints.CeilDiv(r.hidden, rowTile) }

// chunks is the number of pieces of 64 bytes of the gradients of a sequence's gates.
func (r backwardRow) chunks() int {
	return ints.CeilDiv(r.gates*ints.RoundUp(r.hidden, rowTile)*r.weights.Bytes(), 64)
}

// each is how many values a thread has.
func (r backwardRow) each() int { return r.samples / 2 }

// shared is what a block needs of shared memory: two buffers of gradients.
func (r backwardRow) shared() int {
	row := 64 * r.chunks()
	if row%128 == 0 {
		row += 64
	}
	return 2 * (maxRowSamples*row + 128)
}

// maxRowSamples is how many sequences a tile has columns for.
const maxRowSamples = 8

// registers is about how many a thread needs, of a cell that takes so many of each value: as
// NVRTC 12.4 compiled 120 configurations.
func (r backwardRow) registers(carried int) int {
	return 8*r.chunks() + 46 + r.each()*carried*(15+11*(r.ahead-2)/2)/10
}

// shaped says why r does not fit, if it does not.
func (r backwardRow) shaped(carried int) string {
	room := min(maxRegisters, registersOfSM/ints.RoundUp(r.threads(), 128)/8*8)
	switch {
	case r.weights == driver.Single:
		return "whole rows of gradients are multiplied in 16 bits"
	case r.samples != 2 && r.samples != 4 && r.samples != maxRowSamples:
		return fmt.Sprintf("a block multiplies 2, 4 or 8 sequences, not %d", r.samples)
	case r.threads() > 1024 || r.registers(carried) > room-6:
		return fmt.Sprintf("all weights of %d units with %d gates take more registers than a block has", r.hidden, r.gates)
	}
	return ""
}

// perSM is how many blocks fit on a multiprocessor.
func (r backwardRow) perSM(carried int, p driver.Properties) int {
	registers := min(maxRegisters, ints.RoundUp(r.registers(carried), 8))
	return max(1, min(registersOfSM/(registers*r.threads()), p.Shared/r.shared()))
}

// config is how r runs.
func (r backwardRow) config(carried int, p driver.Properties) Config {
	return Config{
		blocks: 1, samples: r.samples, threads: r.threads(), shared: r.shared(), together: p.SMs * r.perSM(carried, p), cycles: r.cycles(carried, p),
		variant: backwardRowVariant, sizes: codegen.Constants("SPREAD", 0, "SAMPLES", r.samples, "AHEAD", r.ahead),
		Knobs: knob.Params{"resident": inWholeRows, "samples": r.samples, "cluster": 1, "tensor": 1},
	}
}

// The gradient by backward-wholerow: counted from its instructions, not yet fitted.
const (
	rowBackStep   = 260 // the barrier, and what waits for it
	rowBackPiece  = 16  // of a piece of 64 bytes that a warp reads for eight sequences and multiplies
	rowBackValue  = 12  // of what the cell of a value reads and keeps
	rowBackSecond = 0.7 // of the first block's time that another takes, whose waits it fills
)

// cycles is about what a step of all sequences takes. Shared memory delivers 128 bytes a
// cycle, and each warp reads the gradients of all gates of all sequences.
func (r backwardRow) cycles(carried int, p driver.Properties) float64 {
	warps := float64(r.threads() / 32)
	quarter := math.Ceil(warps / 4)
	read := warps * float64(r.samples*r.chunks()) / 2
	multiply := rowBackPiece * quarter * float64(r.chunks())
	step := rowBackStep + max(read, multiply) + rowBackValue*quarter*float64(r.each()*carried)/4
	blocks := ints.CeilDiv(r.batch, r.samples)
	beside := min(r.perSM(carried, p), ints.CeilDiv(blocks, p.SMs))
	return float64(ints.CeilDiv(blocks, p.SMs*beside)) * step * (1 + rowBackSecond*float64(beside-1))
}

// backwardRows lists how the gradient of a layer can run in single blocks, as knobs allow.
// carried is about how many registers a thread needs for each unit.
func backwardRows(c *Chooser, l Layer, carried int) []Config {
	if r := c.Knobs["resident"]; c.Knobs["tensor"] == 2 || r != asExpected && r != inWholeRows {
		return nil
	}
	var all []Config
	for _, samples := range c.choose("samples", 2, 4, maxRowSamples) {
		for _, ahead := range []int{4, 2} {
			r := backwardRow{Layer: l, samples: samples, ahead: ahead}
			if r.shaped(carried) == "" {
				all = append(all, r.config(carried, c.Properties))
				break
			}
		}
	}
	return all
}
