package quantity

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
)

// Bounds of what a rival that is set up well may do. They hold for steps with much work on several
// sequences, where neither the start of operations nor the reading of weights decides.
const (
	largeStep  = 1e7  // FLOPs of a layer's step
	largeBatch = 16   // sequences
	naiveUp    = 10.0 // times as fast as the rival that naive may be
	anyUp      = 100  // times as fast that any technique may be
	singleUp   = 1.5  // times as fast that single=1, one thread, may be
)

// genericBLAS is part of the version of a rival whose products are slow for want of a better library.
const genericBLAS = "generic BLAS"

// Crippled returns a sentence for each rival that is so slow at large points that its set-up is
// probably at fault, with the numbers of its worst point; nil if there is none. Of a rival's forms at a
// point, the fastest stands for all, since a form may not suit a point. On a processor, a rival that states a
// generic BLAS is one at any point.
func Crippled(recs []*record.Record) (notes []string) {
	var labels []string
	worst, why := map[string]float64{}, map[string]string{}
	for _, r := range recs {
		if r.Status != record.OK || r.Rival == nil || r.Stats == nil {
			continue
		}
		if strings.Contains(r.Rival.Version, genericBLAS) && !record.OnGPU(r.Device) {
			if why[r.Rival.Name] == "" {
				labels = append(labels, r.Rival.Name)
			}
			why[r.Rival.Name] = fmt.Sprintf("%s may be set up badly: its version %s multiplies slowly. Compare with a build that has MKL or OpenBLAS.", r.Rival.Name, r.Rival.Version)
			continue
		}
		if !large(r) {
			continue
		}
		label := OneLine(Label(r))
		if words := suspicions(r, recs); len(words) > 0 && r.Seconds() > worst[label] {
			if worst[label] == 0 {
				labels = append(labels, label)
			}
			worst[label] = r.Seconds()
			why[label] = fmt.Sprintf("%s may be set up badly: at %v, %s. %s.", label, r.Point, strings.Join(words, "; "), remedy(r))
		}
	}
	slices.Sort(labels)
	for _, l := range slices.Compact(labels) {
		notes = append(notes, why[l])
	}
	return notes
}

// remedy is what to look at.
func remedy(r *record.Record) string {
	if record.OnGPU(r.Device) {
		return "Check its installation"
	}
	return "Check its BLAS and its threads"
}

// large reports whether a step of r has much work.
func large(r *record.Record) bool {
	p := r.Point
	return p.Batch >= largeBatch && float64(r.Work.Flops) >= largeStep*float64(max(1, p.Steps)*max(1, p.Layers))
}

// suspicions says what is wrong with the speed of r, a rival's record.
func suspicions(r *record.Record, recs []*record.Record) (words []string) {
	var naive, one, best float64 // how many times as fast naive, a single thread and the fastest technique are
	fastest, outdone := "", false
	for _, o := range recs {
		if o.Status != record.OK || o.Stats == nil || o.Point != r.Point || o.Device != r.Device || !(o.Seconds() > 0) {
			continue
		}
		form := o.Rival != nil && o.Impl.Name == r.Impl.Name
		switch up := r.Seconds() / o.Seconds(); {
		case o.Rival == nil && o.Impl.Name == "naive":
			naive = max(naive, up)
		case o.Rival == nil && up > best:
			best, fastest = up, OneLine(Label(o))
		case form && o.Impl.Knobs["single"] == 1 && r.Impl.Knobs["single"] == 0:
			one = max(one, up)
		case form && up > 1:
			outdone = true
		}
	}
	if naive >= naiveUp && !outdone {
		words = append(words, fmt.Sprintf("naive is %.0f times as fast", naive))
	}
	if one >= singleUp {
		words = append(words, fmt.Sprintf("one thread (single=1) is %.1f times as fast", one))
	}
	if best >= anyUp && !outdone {
		words = append(words, fmt.Sprintf("%s is %.0f times as fast", fastest, best))
	}
	return words
}
