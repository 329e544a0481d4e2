package experiments

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/results"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// vendors are the forms of NVIDIA's library, the yardstick, replayed as graphs.
func vendors() []grid.Spec {
	return []grid.Spec{
		spec("cudnn", "cudnn", knob.Params{"algorithm": 0, "graph": 1}),
		spec("cudnn persistent", "cudnn", knob.Params{"algorithm": 2, "graph": 1}),
		spec("cudnn static", "cudnn", knob.Params{"algorithm": 1, "graph": 1}),
		spec("cudnn static small", "cudnn", knob.Params{"algorithm": 3, "graph": 1}),
	}
}

// vendorLabels are those of vendors.
func vendorLabels() (list []string) {
	for _, s := range vendors() {
		list = append(list, s.Label)
	}
	return list
}

// vendorFinding sets one technique beside the vendor's library, over all points.
func vendorFinding(recs []results.Record, label string) string {
	var ratios []float64
	for _, p := range points(recs) {
		here := func(q results.Point) bool { return q == p }
		if a, b := find(recs, label, here), fastest(recs, vendorLabels(), here); a != nil && b != nil {
			ratios = append(ratios, b.Seconds()/a.Seconds())
		}
	}
	if len(ratios) == 0 {
		return fmt.Sprintf("No point was measured with both %s and cuDNN.", label)
	}
	return fmt.Sprintf("%s is %.2f× as fast as cuDNN (geometric mean over %d points; range %.2f× to %.2f×).", label, geomean(ratios), len(ratios), slices.Min(ratios), slices.Max(ratios))
}

// algorithmsAlike says where the algorithms of the vendor's library are one: of the
// same error, to the last bit, and of the same time within 5 %.
func algorithmsAlike(recs []results.Record) (out []string) {
	for _, precision := range []string{"bf16", "fp16"} {
		some := where(recs, func(p results.Point) bool { return p.Precision == precision })
		alike, all := 0, 0
		for _, p := range points(some) {
			here := func(q results.Point) bool { return q == p }
			first := find(some, vendors()[0].Label, here)
			others, same := 0, true
			for _, label := range vendorLabels()[1:] {
				r := find(some, label, here)
				if first == nil || r == nil {
					continue
				}
				others++
				same = same && oneForm(first, r)
			}
			if others > 0 {
				all++
				if same {
					alike++
				}
			}
		}
		if all > 0 && alike > all*9/10 {
			out = append(out, fmt.Sprintf("In %s, cuDNN's other algorithms match the standard one at %d of %d points: errors are bit-identical and times within 5 %%. The rival here is the standard algorithm, whichever is requested.", precision, alike, all))
		}
	}
	return out
}

// oneForm reports whether two records of one point look like the same kernels.
func oneForm(a, b *results.Record) bool {
	const near = 0.05
	return a.Verify != nil && b.Verify != nil && a.Verify.Error == b.Verify.Error && math.Abs(math.Log(a.Seconds()/b.Seconds())) < near
}
