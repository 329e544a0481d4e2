package record

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// The sources of a record's peak.
const (
	PeakMultiplyAdds = "measured" // multiply-adds in single precision
	PeakProducts     = "products" // products in the record's precision: large ones by a GPU's library, or in a processor's registers
)

// single reports whether the device with that key computes in fp32 for this precision. A processor
// keeps 16-bit weights but computes in fp32, unless its record has a peak of its own. It multiplies
// 8-bit integers.
func single(device, precision string) bool {
	return precision == "fp32" || !OnGPU(device) && precision != "int8"
}

// PeakFLOPS is the device's peak in the precision of r, in FLOP/s; 0: unknown. It ignores the peak in
// records of early versions that have another precision, since that is the peak of fp32.
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

// ProductRates returns the rates in FLOP/s that d reached in large products, by precision, but for
// those that are unsure. It reads them from d's facts.
func (d Device) ProductRates() map[string]float64 {
	rates := map[string]float64{}
	for name, text := range d.Facts {
		precision, ok := strings.CutSuffix(name, " products")
		if !ok || slices.Contains(d.Unsure, name) {
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

// correctPeaks gives GPU records in 16 bits and tf32 the peak of their own precision, from the
// device's facts, or none. Early versions wrote the peak of fp32 instead.
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

// Copies is the bytes per second that the device copies, read and written; 0: unknown. Records have it from
// their run's manifest.
func (r *Rate) Copies() float64 { return r.copies }

// SetCopies sets Copies.
func (r *Rate) SetCopies(rate float64) { r.copies = rate }

// setCopyRates gives records the copy rates of their devices.
func setCopyRates(recs []Record, devices []Device) {
	rates := map[string]float64{}
	for _, d := range devices {
		rates[d.Key] = d.CopyRate()
	}
	for i := range recs {
		if r := &recs[i]; r.Rate != nil {
			r.Rate.SetCopies(rates[r.Device])
		}
	}
}
