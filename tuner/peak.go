package tuner

import (
	"rnnbench/device"
	"rnnbench/results"
)

// Peak is the highest rate of arithmetic in a precision on the device with that key, in FLOP/s, and
// its source for records. It is 0 where l has none for a GPU, whose tensor cores give each precision
// another peak. A processor without a peak for a precision computes in fp32.
func Peak(l device.Limits, key, precision string) (rate float64, source string) {
	if precision == "fp32" {
		return l.FLOPS, results.PeakMultiplyAdds
	}
	for _, r := range l.More {
		if r.Name == precision+" products" {
			return r.Value, results.PeakProducts
		}
	}
	if !results.OnGPU(key) {
		return l.FLOPS, results.PeakMultiplyAdds
	}
	return 0, ""
}
