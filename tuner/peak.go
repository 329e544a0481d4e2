package tuner

import (
	"slices"

	"rnnbench/device"
	"rnnbench/record"
)

// Peak is the highest rate of arithmetic in a precision on the device with that key, in FLOP/s, and
// its source for records. It is 0 where l has none for a GPU, whose tensor cores give each precision
// another peak. A processor without a peak for a precision computes in fp32, but for int8. A peak that is unsure
// is as unknown, since nothing can be claimed of it.
func Peak(l device.Limits, key, precision string) (rate float64, source string) {
	unsure := func(name string) bool { return slices.Contains(l.Unsure, name) }
	if own := precision + " products"; precision != "fp32" {
		if unsure(own) {
			return 0, ""
		}
		for _, r := range l.More {
			if r.Name == own {
				return r.Value, record.PeakProducts
			}
		}
	}
	if l.FLOPS == 0 || unsure(device.LimitFLOPS) || precision != "fp32" && record.OnGPU(key) || precision == "int8" {
		return 0, ""
	}
	return l.FLOPS, record.PeakMultiplyAdds
}
