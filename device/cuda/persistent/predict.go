package persistent

import (
	"cmp"
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

// A fit turns cycles into seconds, as measured for layers drawn at random, of which there were 95 on
// one H200 unless a comment says otherwise. For stacks it is relative to their predicted
// microseconds.
type fit struct {
	factor    float64 // measured time ÷ (cycles ÷ cycleRate), the geometric mean; 0: not measured
	deviation float64 // standard deviation of the logarithm of predicted over measured time; 0: fewer than three layers
}

// unmeasured is the factor of kernels that were not among those layers.
const unmeasured = 0.86

// seconds converts cycles.
func (f fit) seconds(cycles float64) float64 {
	return cycles / cycleRate * cmp.Or(f.factor, unmeasured)
}

// Step returns the predicted seconds of a step of all sequences.
func (t Config) Step() float64 { return t.fit().seconds(t.cycles) }

// fit returns the fit of kernels like t's.
func (t Config) fit() fit {
	if onChip := t.variant.onChip; t.memory == 0 && onChip.factor > 0 {
		return onChip
	}
	return t.variant.fit
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
	a := launch.About{Variant: t.variant.Name, Config: t.Words(), Error: t.fit().deviation, Group: device.Group{
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
		Variant: st.Kernel(), Config: st.String(), Seconds: startTime + float64(st.Steps())*st.Step(), Error: st.fit().deviation,
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

func (st *Stack) fit() fit {
	if st.bulk != nil {
		return fit{1.15, 0.14}
	}
	return fit{0.95, 0.11}
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
func (st *Stack) Step() float64 { return st.fit().seconds(st.microseconds() * 1e-6 * cycleRate) }
