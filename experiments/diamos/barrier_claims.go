package diamos

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// What the paper says of barriers and launches, sections 1 and 4.3.
const (
	aTenth     = "a barrier has about a tenth of the latency of a kernel launch (section 1)"
	sixToTen   = "synchronisation by launches takes about 6 to 10 times the math of a step (section 4.3)"
	neverLate  = "the global barrier almost never times out, if no other program uses the GPU (section 4.3)"
	paperLeast = 6
	paperMost  = 10
)

// paperMath is the math of a step in the paper, in seconds: 1152 units, minibatch 4, at the TitanX's peak.
const paperMath = 2 * 4 * 1152 * 1152 / paperPeak

// barrierAsSuch compares a GPU's barrier with its launches, as measured by kernels that do nothing
// else: doctor and each run measure them.
func barrierAsSuch(r *study.Report, recs []record.Record, on study.Target) {
	if !on.GPU {
		return // a CPU has no launches
	}
	if on.Barrier == 0 || on.Launch == 0 {
		study.NotMeasured(r, aTenth, "the latency of a barrier or of a launch alone")
		return
	}
	e := launchesOver(recs, on)
	here := fmt.Sprintf("a barrier of all blocks takes %s and a launch %s, %s", quantity.SI(on.Barrier, "s"), quantity.SI(on.Launch, "s"), e.Times())
	if v := on.InGraph; v > 0 {
		here += fmt.Sprintf("; in a graph a launch takes %s, %.2f×", quantity.SI(v, "s"), v/on.Barrier)
	}
	why := ""
	if least, most := paperLeast*paperMath, paperMost*paperMath; on.Launch < least {
		why = fmt.Sprintf("a launch takes %s here, and in the paper 6 to 10 times the %s of a step's math, %s to %s", quantity.SI(on.Launch, "s"), quantity.SI(paperMath, "s"), quantity.SI(least, "s"), quantity.SI(most, "s"))
		if on.Barrier > least/10/estimate.Closeness && on.Barrier < most/10*estimate.Closeness {
			why += "; the barrier takes about a tenth of that in both"
		}
	}
	study.ClaimOf(r, study.Target{}, aTenth, here, e, estimate.Near(10), why) // it depends on no size
	r.Findings = append(r.Findings, "Alone, "+here+". Kernels that do nothing else gave these times. Most persistent kernels here need no barrier of all blocks: their blocks exchange states in groups.")
}

// launchesOver is how many times as long as a barrier a launch takes. The interval spans the launches before all groups
// of records, widened by the moment, since the barrier was timed at another one.
func launchesOver(recs []record.Record, on study.Target) estimate.Estimate {
	least, most := on.Launch, on.Launch
	for _, r := range recs {
		if r.Launch != nil {
			least, most = min(least, *r.Launch), max(most, *r.Launch)
		}
	}
	return estimate.Estimate{At: on.Launch, Lo: least / (1 + estimate.Moment), Hi: most * (1 + estimate.Moment)}.By(1 / on.Barrier)
}

// lateClaim counts the records of persistent layers whose blocks gave up waiting for each other. Such runs
// are started again; if that does not help, the record has failed.
func lateClaim(r *study.Report, recs []record.Record, on study.Target) {
	if !on.GPU {
		return // a CPU's barrier waits for as long as it takes
	}
	all, late := 0, 0
	for _, x := range recs {
		gaveUp := x.Reason != nil && strings.Contains(*x.Reason, device.ErrStuck.Error())
		if x.Impl.Name != "persistent" || x.Status != record.OK && !gaveUp {
			continue
		}
		if all++; gaveUp || slices.Contains(x.Warnings, record.WarnRestarted) {
			late++
		}
	}
	if all == 0 {
		study.NotMeasured(r, neverLate, "persistent layers")
		return
	}
	const almostNever = 0.01
	here := fmt.Sprintf("blocks gave up waiting at %d of %s", late, quantity.Plural(all, "record"))
	r.Claim(study.Target{}, neverLate, here, float64(late) <= almostNever*float64(all), "") // it depends on no size
}

// launchClaim compares what launches add to the paper's step with its math at the peak.
func launchClaim(r *study.Report, recs []record.Record, on study.Target) {
	x := pick.Find(recs, productStep, func(p record.Point) bool {
		return on.Reduced || p.Hidden == diamosLayer(study.Full).Hidden && p.Batch == 4
	})
	if x == nil || mathOf(x) == 0 {
		study.NotMeasured(r, sixToTen, "a launched step of 1152 units at minibatch 4, or the peak")
		return
	}
	least := mathOf(x)
	steps := float64(x.Point.Steps)
	e := estimate.Estimate{At: step(x)/least - 1, Lo: 0, Hi: math.Inf(1)}
	if lo, hi := x.Stats.Lo, x.Stats.Hi; lo != nil && hi != nil {
		e.Lo, e.Hi = *lo/steps/least-1, *hi/steps/least-1
	}
	here := fmt.Sprintf("a step of a launched product and cell of %d units takes %s, and its math at the peak %s: the rest is %s the math", x.Point.Hidden, quantity.SI(step(x), "s"), quantity.SI(least, "s"), e.Times())
	if y := pick.Find(recs, productGraph, func(p record.Point) bool { return p == x.Point }); y != nil {
		here += fmt.Sprintf("; as a graph the step takes %s", quantity.SI(step(y), "s"))
	}
	why := ""
	if on.GPU {
		why = fmt.Sprintf("math at the peak is %.1f times as fast as the paper's, and the step with a launch takes %.2f times the paper's least launch alone", paperMath/least, step(x)/(paperLeast*paperMath))
	}
	study.ClaimOf(r, on, sixToTen, here, e, estimate.Band{Lo: paperLeast / estimate.Closeness, Hi: paperMost * estimate.Closeness}, why)
}

// exchanges adds the table of steps whose blocks exchange states over parts of a GPU.
func exchanges(r *study.Report, recs []record.Record) {
	t := &table.Table{Title: "Time of one step of 1152 units, one sequence, by the blocks that exchange states",
		Columns: []table.Column{show.Column("Blocks", "blocks"), show.Column("step", "step_s"), show.Column("±", "ci_percent")},
		Notes:   []string{"a group of blocks holds the layer, and its blocks exchange all states at each step; fewer blocks hold more weights each"}}
	for _, n := range exchangeGroups() {
		x := pick.Find(recs, exchangeOver(n), func(record.Point) bool { return true })
		if x == nil {
			continue
		}
		blocks := show.Missing()
		for _, k := range x.Kernels {
			if k.Group != nil {
				blocks = table.Int(k.Group.Blocks)
			}
		}
		t.Rows = append(t.Rows, []table.Cell{blocks, table.Number(step(x), quantity.SI(step(x), "s")).Of(x), show.HalfCell(x)})
	}
	if len(t.Rows) > 0 {
		r.Tables = append(r.Tables, t)
	}
}

// measuredBarrier adds the time of a barrier of a CPU's workers, as measured on the machine.
func measuredBarrier(r *study.Report, here *model.Machine) {
	if here.GPU != nil || here.Barrier() == 0 { // barrierAsSuch has a GPU's
		return
	}
	words := fmt.Sprintf("a barrier of %d workers takes %s", here.Parts(), quantity.SI(here.Barrier(), "s"))
	r.Yardstick(words + " alone; a CPU launches no kernels")
	r.Findings = append(r.Findings, show.Upper(words)+" alone, as doctor measures it.")
}
