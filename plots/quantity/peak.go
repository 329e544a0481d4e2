package quantity

import "rnnbench/record"

// Peak returns the largest peak in FLOP/s that records hold for their device and precision. It
// returns 0 if none holds one, or if records differ in device or, on a GPU, in precision.
func Peak(recs []*record.Record) float64 {
	peak := 0.0
	for _, r := range recs {
		if r.Device != recs[0].Device || record.OnGPU(r.Device) && r.Point.Precision != recs[0].Point.Precision {
			return 0
		}
		peak = max(peak, r.PeakFLOPS())
	}
	return peak
}

// SinglePeak returns the largest peak in FLOP/s of single-precision multiply-adds that records
// hold. It returns 0 if none holds one, or if records differ in device.
func SinglePeak(recs []*record.Record) float64 {
	peak := 0.0
	for _, r := range recs {
		if r.Device != recs[0].Device {
			return 0
		}
		if r.Rate != nil && r.Rate.Peak != nil && r.Rate.Source != record.PeakProducts {
			peak = max(peak, *r.Rate.Peak)
		}
	}
	return peak
}
