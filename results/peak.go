package results

import (
	"math"
	"strconv"
	"strings"
)

// The sources of a record's peak.
const (
	PeakMultiplyAdds = "measured" // multiply-adds in single precision
	PeakProducts     = "products" // products in the record's precision: large ones of a GPU's vendor, or on a processor's registers
)

// single reports whether arithmetic in precision is in single precision on the device of
// that key. A processor keeps 16-bit weights but computes in single precision, unless its record
// has a peak of its own.
func single(device, precision string) bool { return precision == "fp32" || !OnGPU(device) }

// PeakFLOPS is the device's peak in the precision of r; 0: unknown. Records of early
// versions name the peak of single precision, whatever theirs is.
func (r *Record) PeakFLOPS() float64 {
	if r.Rate == nil || r.Rate.Peak == nil || r.Rate.Source != PeakProducts && !single(r.Device, r.Point.Precision) {
		return 0
	}
	return max(0, *r.Rate.Peak)
}

// SetPeak relates the rate of r to a peak; 0: unknown.
func (r *Rate) SetPeak(peak float64, source string) {
	r.Peak, r.Percent, r.Source = nil, nil, ""
	if peak > 0 {
		percent := 100 * r.Flops / peak
		r.Peak, r.Percent, r.Source = &peak, &percent, source
	}
}

// ProductRates are the rates that d reached in large products, by precision, as it
// described them.
func (d Device) ProductRates() map[string]float64 {
	rates := map[string]float64{}
	for name, text := range d.Facts {
		precision, ok := strings.CutSuffix(name, " products")
		if !ok {
			continue
		}
		number, unit, _ := strings.Cut(text, " ")
		scale, ok := map[string]float64{"FLOP/s": 1, "kFLOP/s": 1e3, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}[unit]
		if v, err := strconv.ParseFloat(number, 64); ok && err == nil && v > 0 && !math.IsInf(v*scale, 0) {
			rates[precision] = v * scale
		}
	}
	return rates
}

// correctPeaks gives records in 16 bits and tf32 on GPUs the peak of their own precision,
// as the device described it, or none. Early versions wrote that of single precision.
func correctPeaks(recs []Record, devices []Device) {
	rates := map[string]map[string]float64{}
	for _, d := range devices {
		rates[d.Key] = d.ProductRates()
	}
	for i := range recs {
		r := &recs[i]
		if r.Rate == nil || r.Rate.Source == PeakProducts || single(r.Device, r.Point.Precision) {
			continue
		}
		r.Rate.SetPeak(rates[r.Device][r.Point.Precision], PeakProducts)
	}
}
