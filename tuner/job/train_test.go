package job

import (
	"testing"

	"rnnbench/record"
)

// TestLine: a line of progress names its network, unless it is the only one.
func TestLine(t *testing.T) {
	r := &record.Record{
		Point: record.Point{Cell: "gru", Pass: "train", Hidden: 8, Input: 8, Batch: 2, Steps: 3, Layers: 1, Precision: "fp32"},
		Impl:  record.Impl{Name: "naive", Label: "naive"}, Status: record.OK, Stats: &record.Stats{Median: 1 / 1234.5},
		Training: &record.Training{Iterations: 40, Loss: 1.5},
	}
	const want = "iteration 40, loss 1.5000, 1234 iterations/s"
	if got := line(r, true); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := line(r, false), "gru train H=8 B=2 T=3 L=1 naive: "+want; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for v, want := range map[float64]string{0.05432: "0.0543", 17.26: "17.3", 99.4: "99.4", 12345.6: "12346"} {
		if got := rate(v); got != want {
			t.Errorf("rate %v is %s, want %s", v, got, want)
		}
	}
}
