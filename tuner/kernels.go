package tuner

import (
	"rnnbench/device"
	"rnnbench/record"
)

// persistentModel names the cost model that predicts the times of persistent kernels.
const persistentModel = "persistent cycles"

// Kernels converts a program's kernels for its record.
func Kernels(all []device.Kernel) []record.Kernel {
	out := make([]record.Kernel, len(all))
	for i, k := range all {
		out[i] = record.Kernel{
			Name: k.Name, Variant: orNil(k.Variant), Config: orNil(k.Config), Cluster: orNil(k.Cluster),
			Registers: orNil(k.Registers), Launches: k.Launches,
		}
		if k.Grid != [3]int{} {
			out[i].Grid, out[i].Block, out[i].Shared = &k.Grid, &k.Block, &k.Shared
		}
		if g := k.Group; g.Blocks > 0 {
			out[i].Group = &record.Group{Blocks: g.Blocks, Samples: g.Samples, Spread: g.Spread, Tensor: g.Tensor, Steps: g.Steps}
		}
		if k.Registers > 0 {
			out[i].Spills = &k.Spills
		}
	}
	return out
}

// orNil is a pointer to v, or nil where v is zero, which stands for unknown.
func orNil[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

// Predicted adds up the predicted times of kernels; nil where none has a prediction. The error is
// that of the least certain kernel, and is nil unless all errors are known.
func Predicted(all []device.Kernel) *record.Predicted {
	p := &record.Predicted{Part: record.PartPersistent, Model: persistentModel}
	worst, recorded := 0.0, true
	for _, k := range all {
		if k.Seconds > 0 {
			p.Seconds += float64(k.Launches) * k.Seconds
			worst, recorded = max(worst, k.Error), recorded && k.Error > 0
		}
	}
	if p.Seconds == 0 {
		return nil
	}
	if recorded {
		p.Error = &worst
	}
	return p
}
