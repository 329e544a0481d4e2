package form

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// dynamic is the algorithm that is compiled for each layer.
const dynamic = 2

// Vendors returns the forms of NVIDIA's library, the yardstick, replayed as graphs.
func Vendors() []grid.Spec {
	return []grid.Spec{
		study.Spec("cudnn", "cudnn", knob.Params{"algorithm": 0, "graph": 1}),
		study.Spec("cudnn persistent", "cudnn", knob.Params{"algorithm": dynamic, "graph": 1}),
		study.Spec("cudnn static", "cudnn", knob.Params{"algorithm": 1, "graph": 1}),
		study.Spec("cudnn static small", "cudnn", knob.Params{"algorithm": 3, "graph": 1}),
	}
}

// PaddedMark ends the label of a form that has rows of all sequences at all steps.
const PaddedMark = " padded"

// Padded returns forms of NVIDIA's library for sequences with lengths of their own: they pad rows
// instead of packing them.
func Padded() (specs []grid.Spec) {
	for _, s := range Vendors() {
		if a := s.Knobs["algorithm"]; a < dynamic { // the others are compiled for one batch, or know no lengths
			specs = append(specs, study.Spec(s.Label+PaddedMark, s.Name, knob.Params{"algorithm": a, "graph": 1, "batchsizes": 1}))
		}
	}
	return specs
}

// eagerMark ends the label of a form that the host launches.
const eagerMark = " eager"

// Eager returns the forms of NVIDIA's library, launched by the host.
func Eager() []grid.Spec {
	specs := Vendors()
	for i, s := range specs {
		specs[i] = study.Spec(s.Label+eagerMark, s.Name, knob.Params{"algorithm": s.Knobs["algorithm"]})
	}
	return specs
}

// Yardsticks returns all forms of NVIDIA's library: every algorithm, as a graph and launched by the
// host. At the quick size, the host launches the standard one alone.
func Yardsticks(s study.Size) []grid.Spec {
	if s == study.Quick {
		return append(Vendors(), Eager()[0])
	}
	return append(Vendors(), Eager()...)
}

// GridForms returns yardsticks for many points: at the quick size the standard algorithm alone.
func GridForms(s study.Size) []grid.Spec {
	if s == study.Quick { // compiling the others takes longer than all else
		return []grid.Spec{Vendors()[0], Eager()[0]}
	}
	return Yardsticks(s)
}

// VendorLabels returns the labels of all yardsticks.
func VendorLabels() (list []string) {
	for _, s := range Yardsticks(study.Full) {
		list = append(list, s.Label)
	}
	return list
}

// fastestForm is the label of fastestForms.
const fastestForm = "cudnn fastest form"

// FastestForms replaces several forms of NVIDIA's library by the fastest at each point, so that a
// figure's lines can be told apart.
func FastestForms(recs []record.Record) []record.Record {
	out := slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool { return quantity.Vendor(r.Impl.Label) })
	own := slices.DeleteFunc(VendorsOf(recs), func(l string) bool { return strings.HasSuffix(l, PaddedMark) })
	if len(own) < 2 { // a padded form beside one of its own lengths is no other algorithm
		return slices.Clone(recs)
	}
	for _, p := range pick.Points(recs) {
		if r := pick.Fastest(recs, VendorsOf(recs), func(q record.Point) bool { return q == p }); r != nil {
			one := *r
			one.Impl.Label = fastestForm
			out = append(out, one)
		}
	}
	return out
}

// VendorsOf returns the labels of all forms of NVIDIA's library that recs have, padded ones as well.
func VendorsOf(recs []record.Record) []string {
	return slices.DeleteFunc(pick.Labels(recs), func(l string) bool { return !quantity.Vendor(l) })
}

// VendorFinding compares one technique with the vendor's library, over all points.
func VendorFinding(recs []record.Record, label string) string {
	var d estimate.Duel
	forms := map[string]bool{}
	for _, p := range pick.Points(recs) {
		here := func(q record.Point) bool { return q == p }
		a, b := pick.Find(recs, label, here), pick.Fastest(recs, VendorLabels(), here)
		if a == nil || b == nil {
			continue
		}
		d.Add(b, a)
		for _, l := range VendorLabels() {
			if pick.Find(recs, l, here) != nil {
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
	return fmt.Sprintf("%s is %s.", label, d.Full(rival, "point"))
}

// AlgorithmsAlike says where the algorithms of the vendor's library look like one: errors are equal
// to the last bit, and times within 5 %.
func AlgorithmsAlike(recs []record.Record) (out []string) {
	for _, precision := range []string{"bf16", "fp16"} {
		some := pick.Where(recs, func(p record.Point) bool { return p.Precision == precision })
		alike, all := 0, 0
		for _, p := range pick.Points(some) {
			here := func(q record.Point) bool { return q == p }
			first := pick.Find(some, Vendors()[0].Label, here)
			others, same := 0, true
			for _, s := range Vendors()[1:] {
				label := s.Label
				r := pick.Find(some, label, here)
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
