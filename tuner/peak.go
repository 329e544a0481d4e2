package tuner

import (
	"rnnbench/device"
	"rnnbench/results"
)

// Peak is the rate that arithmetic of a precision can reach on the device of that key,
// and its source in records. It is 0 where l does not tell: the tensor cores of a GPU give
// each precision another peak. A processor computes in single precision what it has no peak for.
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
