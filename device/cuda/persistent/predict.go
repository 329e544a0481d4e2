package persistent

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/device/cuda/launch"
)

// Predicted times in seconds. The cost model's cycles are those of an H200 and only rank
// configurations; the factors measured turn them into seconds.
const (
	cycleRate = 1.7e9   // cycles per second
	startTime = 4e-6    // seconds from one kernel's end to the next one's first step
	clusterTo = 0.3e-6  // seconds of an exchange within a cluster, as measured
	gridTo    = 0.85e-6 // and through the L2 cache
)

// measured is the ratio of measured time to cycles ÷ cycleRate, per variant: the geometric mean
// over 95 layers drawn at random, on one H200. For stacks it is relative to their predicted
// microseconds.
var measured = map[string]float64{
	"simt": 0.75, "mma": 0.79, "wholerow": 0.77, "mma-bulk": 0.68, "mma-poll": 0.86, "stack": 0.95, "stack-bulk": 1.15,
	"backward-simt": 1.16, "backward-mma": 0.73, "backward-bulk": 0.77,
	"block": 0.93, "backward-block": 1, // of 11 and 17 small layers
	"mma-wide": 0.68, "mma-stream": 0.81, // of 10 layers beyond the chip
	"backward-stream": 1.56, "backward-wide": 1.78, // of 9 layers beyond the chip, on an H100
	"backward-wide on chip": 0.77, // as for backward-bulk; 32 layers on an H100 rank against that as predicted
}

// unmeasured is the ratio for variants that were not among those layers.
const unmeasured = 0.86

// seconds converts cycles of a variant.
func seconds(variant string, cycles float64) float64 {
	factor, ok := measured[variant]
	if !ok {
		factor = unmeasured
	}
	return cycles / cycleRate * factor
}

// fitError is the relative error of a variant's seconds over those layers: the standard deviation
// of the logarithm of predicted over measured time. It is 0 for variants with fewer than three
// layers.
var fitError = map[string]float64{
	"simt": 0.16, "mma": 0.22, "wholerow": 0.14, "mma-poll": 0.14, "mma-bulk": 0.09, "stack": 0.11, "stack-bulk": 0.14,
	"backward-simt": 0.2, "mma-stream": 0.1, "mma-wide": 0.1, "block": 0.1, "backward-block": 0.16,
	"backward-stream": 0.16, "backward-wide": 0.14, "backward-wide on chip": 0.3,
}

// Step returns the predicted seconds of a step of all sequences.
func (t Config) Step() float64 { return seconds(t.timed(), t.cycles) }

// timed returns the name under which the tables list kernels like t's.
func (t Config) timed() string {
	if t.variant == backwardWideVariant && t.memory == 0 {
		return t.variant.Name + " on chip"
	}
	return t.variant.Name
}

// Floor returns the least seconds of a step: one exchange among the blocks of a group, if there are
// several.
func (t Config) Floor() float64 {
	switch {
	case !t.Grouped() || t.blocks == 1:
		return 0
	case t.spread:
		return gridTo
	}
	return clusterTo
}

// about describes the kernel of t for so many steps. Layers that run side by side share the
// predicted time, so it gives none for one of them.
func (t Config) about(steps int, beside bool) launch.About {
	a := launch.About{Variant: t.variant.Name, Config: t.Words(), Error: fitError[t.timed()], Group: device.Group{
		Blocks: t.blocks, Samples: t.samples, Spread: t.spread, Steps: steps,
		Tensor: t.variant.tensor,
	}}
	if !beside {
		a.Seconds = startTime + float64(steps)*t.Step()
	}
	return a
}

// about describes the kernel of st.
func (st *Stack) about() launch.About {
	return launch.About{
		Variant: st.Kernel(), Config: st.String(), Seconds: startTime + float64(st.Steps())*st.Step(), Error: fitError[st.Kernel()],
		Group: device.Group{Blocks: st.blocks, Samples: st.sequences(), Spread: true, Tensor: true, Steps: st.Steps()},
	}
}

// Kernel returns the name of the variant that runs st.
func (st *Stack) Kernel() string {
	if st.bulk != nil {
		return "stack-bulk"
	}
	return "stack"
}

// Option describes st as an option. Its layers are steps of one kernel.
func (st *Stack) Option() device.Option {
	return device.Option{
		Variant: st.Kernel(), Exchange: "words through the L2 cache, of this layer and the one beneath", Config: st.String(),
		Group: fmt.Sprintf("spread %d", st.blocks*len(st.layers)), Source: stackSource(st.Kernel()),
		Cycles: st.microseconds() * 1e-6 * cycleRate, Step: st.Step(), Start: startTime, Floor: gridTo,
	}
}

// Steps returns how many steps the kernel takes: each layer begins a step after the layer beneath.
func (st *Stack) Steps() int { return st.layers[0].Steps + len(st.layers) - 1 }

// Step returns the predicted seconds of a step of all layers.
func (st *Stack) Step() float64 { return seconds(st.Kernel(), st.microseconds()*1e-6*cycleRate) }
