package tuner_test

import (
	"testing"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/tuner"
)

// TestPeakOfPrecision: a GPU has a peak for each precision, or an unknown one. A processor without a
// peak for a precision has that of fp32.
func TestPeakOfPrecision(t *testing.T) {
	l := device.Limits{FLOPS: 60e12, More: []device.Rate{
		{Name: "fp32 products", Value: 51e12, Unit: "FLOP/s"}, {Name: "bf16 products", Value: 787e12, Unit: "FLOP/s"},
	}}
	for _, c := range []struct {
		key, precision string
		peak           float64
		source         string
	}{
		{"cuda-h200-132sm", "fp32", 60e12, record.PeakMultiplyAdds},
		{"cuda-h200-132sm", "bf16", 787e12, record.PeakProducts},
		{"cuda-h200-132sm", "fp16", 0, ""},
		{"cpu-xeon-2t", "bf16", 787e12, record.PeakProducts},
		{"cpu-xeon-2t", "fp16", 60e12, record.PeakMultiplyAdds},
		{"cpu-xeon-2t", "fp32", 60e12, record.PeakMultiplyAdds},
	} {
		if peak, source := tuner.Peak(l, c.key, c.precision); peak != c.peak || source != c.source {
			t.Errorf("%s on %s: %g from %q, want %g from %q", c.precision, c.key, peak, source, c.peak, c.source)
		}
	}
}

// TestUnsurePeak: nothing is compared with a peak that is unsure.
func TestUnsurePeak(t *testing.T) {
	l := device.Limits{FLOPS: 60e9, More: []device.Rate{{Name: "bf16 products", Value: 100e9, Unit: "FLOP/s"}}}
	for _, c := range []struct {
		precision, unsure string
		peak              float64
	}{
		{"fp32", device.LimitFLOPS, 0}, {"fp16", device.LimitFLOPS, 0}, {"bf16", device.LimitFLOPS, 100e9},
		{"fp32", "bf16 products", 60e9}, {"bf16", "bf16 products", 0}, {"fp32", device.LimitCopy, 60e9},
	} {
		l.Unsure = []string{c.unsure}
		peak, source := tuner.Peak(l, "cpu-xeon-2t", c.precision)
		if peak != c.peak || (source == "") != (peak == 0) {
			t.Errorf("%s, with the %s unsure: %g from %q, want %g", c.precision, c.unsure, peak, source, c.peak)
		}
	}
}
