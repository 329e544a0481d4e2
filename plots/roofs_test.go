package plots

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/synthetic"
	"rnnbench/record"
)

// TestIntensity: a mark lies at the problem's operations over the bytes of the schedule, however many
// operations the technique executes.
func TestIntensity(t *testing.T) {
	r := synthetic.Ladder(512, 64)[0]
	r.Work.Flops, r.Work.Executed, r.Work.Bytes = 6e9, 9e9, 2e9
	ch, err := Roofline([]record.Record{r}, Spec{Copy: 1e10, Peak: 1e12})
	if err != nil {
		t.Fatal(err)
	}
	if x := ch.Panels[0].Series[0].Points[0].X; x != 3 {
		t.Errorf("the intensity is %v, want 3", x)
	}
}

// TestAboveRoof: the note on marks above the peak appears whichever panel has them.
func TestAboveRoof(t *testing.T) {
	base := synthetic.Ladder(512, 64)[0]
	rate := float64(base.Work.Flops) / base.Seconds()
	newRecord := func(precision string, share float64) record.Record {
		r := base
		r.Point.Precision, r.Device = precision, "cuda-synthetic"
		peak := rate / share
		r.Rate = &record.Rate{Flops: rate, Peak: &peak, Source: record.PeakProducts}
		return r
	}
	for _, c := range []struct {
		fp32, bf16 float64 // shares of the peak
		above      bool
	}{{0.5, 0.5, false}, {2, 0.5, true}, {0.5, 2, true}} {
		ch, err := Roofline([]record.Record{newRecord("fp32", c.fp32), newRecord("bf16", c.bf16)}, Spec{Copy: 1e18})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(ch.Notes, peakNote); got != c.above || len(ch.Panels) != 2 {
			t.Errorf("at %v and %v of the peak, the note is there: %t, in %d panels (%s)", c.fp32, c.bf16, got, len(ch.Panels), strings.Join(ch.Notes, " "))
		}
	}
}
