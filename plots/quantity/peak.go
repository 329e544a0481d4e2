package quantity

import "rnnbench/results"

// Peak returns the largest peak in FLOP/s that records hold for their device and precision. It
// returns 0 if none holds one, or if records differ in device or, on a GPU, in precision.
func Peak(recs []*results.Record) float64 {
	peak := 0.0
	for _, r := range recs {
		if r.Device != recs[0].Device || results.OnGPU(r.Device) && r.Point.Precision != recs[0].Point.Precision {
			return 0
		}
		peak = max(peak, r.PeakFLOPS())
	}
	return peak
}

// SinglePeak returns the largest peak in FLOP/s of single-precision multiply-adds that records
// hold. It returns 0 if none holds one, or if records differ in device.
func SinglePeak(recs []*results.Record) float64 {
	peak := 0.0
	for _, r := range recs {
		if r.Device != recs[0].Device {
			return 0
		}
		if r.Rate != nil && r.Rate.Peak != nil && r.Rate.Source != results.PeakProducts {
			peak = max(peak, *r.Rate.Peak)
		}
	}
	return peak
}
