package diamos

import (
	"fmt"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// fig3Claims compares what the paper says of Figure 3 with f.
func fig3Claims(r *study.Report, on study.Target, f fig3) {
	const (
		times  = "persistent is about 30 times as fast as products at minibatch 4: 2.8 over 0.099 TFLOP/s (sections 4 and 5.1.1)"
		stays  = "throughput reaches 2.8 TFLOP/s at minibatch 4 and stays there (section 5.1.1)"
		half   = "products reach about half of the persistent layer's throughput at minibatch 64: 1.5 of 2.8 TFLOP/s (section 5.1.1)"
		better = "products are much faster in a layer of 2560 units (section 5.1.1)"
	)
	four, included := f.at[4], ""
	if f.recs[0].Point.Input == f.hidden {
		included = "; input product included"
	}
	rival, name := four.rival()
	if e := estimate.TimesAsFast(rival, four.persistent); e.Known() {
		here := fmt.Sprintf("%s over %s", e.Times(), name)
		if rival != four.products && four.products != nil {
			here += fmt.Sprintf(", %s over rnnbench's products", four.over().Times())
		}
		if v := estimate.TimesAsFast(four.vendor, four.persistent); v.Known() {
			here += fmt.Sprintf(", %s over cuDNN", v.Times())
		}
		study.ClaimOf(r, on, times, here+included, e, estimate.Near(paperOver[4]), f.fewerTimes(rival, name))
		share := estimate.Throughput(f.at[f.top].persistent, four.persistent)
		study.ClaimOf(r, on, stays, fmt.Sprintf("minibatch 4 reaches %s of the highest throughput", share.By(100).Text("%.0f", " %")), share, estimate.AtLeast(0.9), latencyCause(four.persistent))
	} else {
		study.NotMeasured(r, times, "both at minibatch 4")
	}
	row := f.at[64]
	rival, name = row.rival()
	if e := estimate.TimesAsFast(rival, row.persistent); e.Known() {
		share := estimate.Throughput(row.persistent, rival)
		study.ClaimOf(r, on, half, fmt.Sprintf("%s: %s of the persistent layer's", name, share.By(100).Text("%.0f", " %")), share, estimate.Near(1/paperOver[64]), shares(row.persistent, rival, name))
	} else {
		study.NotMeasured(r, half, "both at minibatch 64")
	}
	if row.large == nil || row.products == nil {
		study.NotMeasured(r, better, "products of both sizes at minibatch 64")
		return
	}
	up := estimate.Throughput(row.products, row.large)
	study.ClaimOf(r, on, better, fmt.Sprintf("%s at minibatch 64, of %d units over %d", up.Times(), row.large.Point.Hidden, row.products.Point.Hidden), up, estimate.AtLeast(estimate.Closeness), "")
}

// step is the time of a step of r in seconds, start-up included.
func step(r *record.Record) float64 { return r.Seconds() / float64(r.Point.Steps) }

// mathOf is what the arithmetic of a step of r would take at the peak, in seconds; 0: unknown.
func mathOf(r *record.Record) float64 {
	peak := r.PeakFLOPS()
	if peak == 0 {
		return 0
	}
	return float64(r.Work.Flops) / float64(r.Point.Steps) / peak
}

// latencyCause says how little of a step of r is arithmetic; "" if that is most of it.
func latencyCause(r *record.Record) string {
	math := mathOf(r)
	if math == 0 || math > step(r)/2 {
		return ""
	}
	return fmt.Sprintf("a step at minibatch %d takes %s, of which arithmetic at the peak takes %s: latency limits it", r.Point.Batch, quantity.SI(step(r), "s"), quantity.SI(math, "s"))
}

// fewerTimes says why the factor at minibatch 4 is not the paper's: how much faster than in the paper
// the steps of both are, and what the steps of products take at more sequences.
func (f fig3) fewerTimes(rival *record.Record, name string) string {
	four := f.at[4]
	flops := 2 * 4 * float64(f.hidden) * float64(f.hidden)
	why := fmt.Sprintf("a step of %s takes %s, %.1f× as fast as the paper's, and a persistent step %s, %.1f×", name, quantity.SI(step(rival), "s"), flops/paperProducts4/step(rival),
		quantity.SI(step(four.persistent), "s"), flops/paperPersistent/step(four.persistent))
	if math := mathOf(four.persistent); math > 0 {
		why += fmt.Sprintf(", of which arithmetic at the peak takes %s", quantity.SI(math, "s"))
	}
	if more, _ := f.at[32].rival(); more != nil && more.Impl.Label == rival.Impl.Label && !estimate.Differ(step(more)/step(rival), 1) {
		why += fmt.Sprintf("; a step of %s takes %s at minibatch 32 as well, so the number of sequences does not limit it", name, quantity.SI(step(more), "s"))
	}
	launched, graph := formAt(f, libraryForms()[0], 4), formAt(f, libraryForms()[1], 4)
	if launched != nil && graph != nil {
		why += fmt.Sprintf("; launched it takes %s, as a graph %s", quantity.SI(step(launched), "s"), quantity.SI(step(graph), "s"))
	}
	return why
}

// formAt returns the record of one form of the layer at a minibatch; nil: there is none.
func formAt(f fig3, label string, batch int) *record.Record {
	return pick.Find(f.recs, label, func(p record.Point) bool { return p.Batch == batch && p.Hidden == f.hidden })
}

// shares says which part of the peak both reach at minibatch 64, beside the paper's; "" if the peak is
// not known.
func shares(persistent, rival *record.Record, name string) string {
	peak := persistent.PeakFLOPS()
	if peak == 0 {
		return ""
	}
	products := "products of " + name
	if name == "products" {
		products = name
	}
	return fmt.Sprintf("%s reach %.0f %% of the peak (paper: %.0f %%), and the persistent layer %.0f %% (paper: %.0f %%)",
		products, 100*rival.FLOPS()/peak, 100*paperProducts64/paperPeak, 100*persistent.FLOPS()/peak, 100*paperPersistent/paperPeak)
}
