package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// dynamic is the algorithm that is compiled for each layer.
const dynamic = 2

// vendors returns the forms of NVIDIA's library, the yardstick, replayed as graphs.
func vendors() []grid.Spec {
	return []grid.Spec{
		spec("cudnn", "cudnn", knob.Params{"algorithm": 0, "graph": 1}),
		spec("cudnn persistent", "cudnn", knob.Params{"algorithm": dynamic, "graph": 1}),
		spec("cudnn static", "cudnn", knob.Params{"algorithm": 1, "graph": 1}),
		spec("cudnn static small", "cudnn", knob.Params{"algorithm": 3, "graph": 1}),
	}
}

// paddedMark ends the label of a form that has rows of all sequences at all steps.
const paddedMark = " padded"

// padded returns forms of NVIDIA's library for sequences with lengths of their own: they pad rows
// instead of packing them.
func padded() (specs []grid.Spec) {
	for _, s := range vendors() {
		if a := s.Knobs["algorithm"]; a < dynamic { // the others are compiled for one batch, or know no lengths
			specs = append(specs, spec(s.Label+paddedMark, s.Name, knob.Params{"algorithm": a, "graph": 1, "batchsizes": 1}))
		}
	}
	return specs
}

// eagerMark ends the label of a form that the host launches.
const eagerMark = " eager"

// eager returns the forms of NVIDIA's library, launched by the host.
func eager() []grid.Spec {
	specs := vendors()
	for i, s := range specs {
		specs[i] = spec(s.Label+eagerMark, s.Name, knob.Params{"algorithm": s.Knobs["algorithm"]})
	}
	return specs
}

// yardsticks returns all forms of NVIDIA's library: every algorithm, as a graph and launched by the
// host. At the quick size, the host launches the standard one alone.
func yardsticks(s Size) []grid.Spec {
	if s == Quick {
		return append(vendors(), eager()[0])
	}
	return append(vendors(), eager()...)
}

// gridForms returns yardsticks for many points: at the quick size the standard algorithm alone.
func gridForms(s Size) []grid.Spec {
	if s == Quick { // compiling the others takes longer than all else
		return []grid.Spec{vendors()[0], eager()[0]}
	}
	return yardsticks(s)
}

// vendorLabels returns the labels of all yardsticks.
func vendorLabels() (list []string) {
	for _, s := range yardsticks(Full) {
		list = append(list, s.Label)
	}
	return list
}

// fastestForm is the label of fastestForms.
const fastestForm = "cudnn fastest form"

// fastestForms replaces several forms of NVIDIA's library by the fastest at each point, so that a
// figure's lines can be told apart.
func fastestForms(recs []record.Record) []record.Record {
	out := slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool { return quantity.Vendor(r.Impl.Label) })
	own := slices.DeleteFunc(vendorsOf(recs), func(l string) bool { return strings.HasSuffix(l, paddedMark) })
	if len(own) < 2 { // a padded form beside one of its own lengths is no other algorithm
		return slices.Clone(recs)
	}
	for _, p := range points(recs) {
		if r := fastest(recs, vendorsOf(recs), func(q record.Point) bool { return q == p }); r != nil {
			one := *r
			one.Impl.Label = fastestForm
			out = append(out, one)
		}
	}
	return out
}

// vendorsOf returns the labels of all forms of NVIDIA's library that recs have, padded ones as well.
func vendorsOf(recs []record.Record) []string {
	return slices.DeleteFunc(labels(recs), func(l string) bool { return !quantity.Vendor(l) })
}

// vendorFinding compares one technique with the vendor's library, over all points.
func vendorFinding(recs []record.Record, label string) string {
	var d duel
	forms := map[string]bool{}
	for _, p := range points(recs) {
		here := func(q record.Point) bool { return q == p }
		a, b := find(recs, label, here), fastest(recs, vendorLabels(), here)
		if a == nil || b == nil {
			continue
		}
		d.add(b, a)
		for _, l := range vendorLabels() {
			if find(recs, l, here) != nil {
				forms[l] = true
			}
		}
	}
	if len(d) == 0 {
		return fmt.Sprintf("No point was measured with both %s and cuDNN.", label)
	}
	rival := "cuDNN"
	if n := len(forms); n > 1 {
		rival = fmt.Sprintf("the fastest of cuDNN's %d forms", n)
	}
	return fmt.Sprintf("%s is %s.", label, d.full(rival, "point"))
}

// algorithmsAlike says where the algorithms of the vendor's library look like one: errors are equal
// to the last bit, and times within 5 %.
func algorithmsAlike(recs []record.Record) (out []string) {
	for _, precision := range []string{"bf16", "fp16"} {
		some := where(recs, func(p record.Point) bool { return p.Precision == precision })
		alike, all := 0, 0
		for _, p := range points(some) {
			here := func(q record.Point) bool { return q == p }
			first := find(some, vendors()[0].Label, here)
			others, same := 0, true
			for _, s := range vendors()[1:] {
				label := s.Label
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
func oneForm(a, b *record.Record) bool {
	const near = 0.05
	return a.Verify != nil && b.Verify != nil && a.Verify.Error == b.Verify.Error && math.Abs(math.Log(a.Seconds()/b.Seconds())) < near
}
