package quantity

import "rnnbench/results"

// Peak is the largest arithmetic rate that records give for their device in their
// precision. It is 0 where there is none, or where records differ in device or, on a GPU,
// in precision.
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

// SinglePeak is the largest rate of multiply-adds in single precision that records give
// for their device. It is 0 where there is none, or where records differ in device.
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
