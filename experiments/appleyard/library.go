package appleyard

import (
	"fmt"
	"math"

	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// byCuBLAS returns the label of a stage whose products are all the vendor library's. On a GPU, stage
// 4 otherwise packs weights for a kernel of rnnbench, which is more than the paper's transposition.
func byCuBLAS(label string) string { return label + ", cuBLAS" }

// libraryLadder returns the ladder with every product by the vendor's library, as in the paper.
func libraryLadder(layers int) []grid.Spec {
	specs := form.LadderSpecs(layers)
	for i, s := range specs {
		specs[i] = form.ByLibrary(byCuBLAS(s.Label), s)
	}
	return specs
}

// libraryStage returns the record of a stage at p with every product by the vendor's library; nil: there is
// none. Early stages have no other kernels for their products, so the settings that choose the library are
// declined there. Their own record serves if it shows that the library made every product.
func libraryStage(recs []record.Record, label string, p record.Point) *record.Record {
	here := func(q record.Point) bool { return q == p }
	if r := pick.Find(recs, byCuBLAS(label), here); r != nil {
		return r
	}
	if r := pick.Find(recs, label, here); r != nil && allByLibrary(r) {
		return r
	}
	return nil
}

// allByLibrary reports whether the vendor's library made all products of r's problem, in single precision.
func allByLibrary(r *record.Record) bool {
	var flops int64
	for _, k := range r.Kernels {
		var rows, cols, depth int64
		if k.Name != "product" || k.Variant == nil || *k.Variant != "library" || k.Config == nil {
			continue
		}
		if n, err := fmt.Sscanf(*k.Config, "%d×%d×%d of fp32", &rows, &cols, &depth); n == 3 && err == nil {
			flops += 2 * rows * cols * depth * int64(k.Launches)
		}
	}
	return flops > 0 && flops >= r.Work.Flops
}

// libraryFigure draws the ladder by the vendor's library alone, where it was measured.
func libraryFigure(rep *study.Report, recs []record.Record, p record.Point, on study.Target) {
	if libraryTimes(recs, p) == 0 {
		return
	}
	var stages []plots.Stage
	for _, r := range form.Ladder(p.Layers) {
		if rec := libraryStage(recs, r.Label, p); rec != nil {
			stages = append(stages, plots.Stage{Label: rec.Impl.Label, Paper: r.Up})
		}
	}
	fig, err := plots.Ladder(pick.At(recs, p), stages, plots.Spec{Machine: on.Name,
		Title: fmt.Sprintf("Appleyard's ladder by cuBLAS alone, %d steps: speed-up over naive", p.Steps)})
	rep.Add(fmt.Sprintf("appleyard-table1-cublas-T%d", p.Steps), fig, err)
}

// addLibrary adds the columns of the ladder by the vendor's library, where it was
// measured.
func addLibrary(t *table.Table, recs []record.Record, p record.Point, rungs []form.Rung) {
	if libraryTimes(recs, p) == 0 {
		return
	}
	t.Columns = append(t.Columns, table.Column{Name: "cuBLAS, µs/cell", Key: "cublas_us_per_cell", Right: true}, table.Column{Name: "cuBLAS, ×", Key: "cublas_speedup", Right: true})
	base := libraryStage(recs, rungs[0].Label, p)
	for i, r := range rungs {
		us, up := math.NaN(), math.NaN()
		if rec := libraryStage(recs, r.Label, p); rec != nil {
			us = rec.Seconds() / float64(p.Layers*p.Steps) * 1e6
			if base != nil {
				up = base.Seconds() / rec.Seconds()
			}
		}
		t.Rows[i] = append(t.Rows[i], show.Digits(us, 3), show.Ratio(up))
	}
}

// libraryTimes returns the speed-up of the whole ladder with the vendor's products; 0 if not
// measured.
func libraryTimes(recs []record.Record, p record.Point) float64 {
	rungs := form.Ladder(p.Layers)
	a, b := libraryStage(recs, rungs[0].Label, p), libraryStage(recs, rungs[len(rungs)-1].Label, p)
	if a == nil || b == nil {
		return 0
	}
	return a.Seconds() / b.Seconds()
}
