package persistent

import (
	"cmp"

	"rnnbench/device"
	"rnnbench/device/cuda/launch"
)

// Times in seconds. The cost model's cycles are those of an H200 and only rank
// configurations; the factors measured turn them into seconds.
const (
	CycleRate       = 1.7e9   // cycles per second
	StartTime       = 4e-6    // seconds from one kernel's end to the next one's first step
	clusterExchange = 0.3e-6  // seconds of an exchange within a cluster, as measured
	GridExchange    = 0.85e-6 // and through the L2 cache
)

// A Fit turns cycles into seconds, as measured for layers drawn at random, of which there were 95 on
// one H200 unless a comment says otherwise. For stacks it is relative to their predicted
// microseconds.
type Fit struct {
	Factor    float64 // measured time ÷ (cycles ÷ CycleRate), the geometric mean; 0: not measured
	Deviation float64 // standard deviation of the logarithm of predicted over measured time; 0: fewer than three layers
}

// unmeasured is the factor of kernels that were not among those layers.
const unmeasured = 0.86

// Seconds converts cycles.
func (f Fit) Seconds(cycles float64) float64 {
	return cycles / CycleRate * cmp.Or(f.Factor, unmeasured)
}

// Step returns the predicted seconds of a step of all sequences.
func (t Config) Step() float64 { return t.fit().Seconds(t.cycles) }

// fit returns the fit of kernels like t's.
func (t Config) fit() Fit {
	if onChip := t.variant.onChip; t.memory == 0 && onChip.Factor > 0 {
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
		return GridExchange
	}
	return clusterExchange
}

// about describes the kernel of t for so many steps. Layers that run side by side share the
// predicted time, so it gives none for one of them.
func (t Config) about(steps int, beside bool) launch.About {
	a := launch.About{Variant: t.variant.Name, Config: t.Words(), Error: t.fit().Deviation, Group: device.Group{
		Blocks: t.blocks, Samples: t.samples, Spread: t.spread, Steps: steps,
		Tensor: t.variant.tensor,
	}}
	if !beside {
		a.Seconds = StartTime + float64(steps)*t.Step()
	}
	return a
}
