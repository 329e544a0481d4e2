package plots

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Roofline draws the throughput of each record over its arithmetic intensity, in FLOP/byte. The
// roofs are the machine's copy rate and its peak in the record's precision. Each precision has a
// panel.
func Roofline(recs []record.Record, s Spec) (*Chart, error) {
	s.Y, s.X, s.Panel = "flops", "", ""
	v, err := s.resolve(recs, "flops")
	if err != nil {
		return nil, err
	}
	precision, err := quantity.AxisOf("precision", nil)
	if err != nil {
		return nil, fmt.Errorf("plots: %w", err)
	}
	groups := quantity.Split(v.recs, precision)
	if v.Copy <= 0 || !slices.ContainsFunc(groups, func(g []*record.Record) bool { peak, _ := v.roof(g); return peak > 0 }) {
		return nil, fmt.Errorf("plots: a roofline needs the machine's peak in FLOP/s and its copy rate in B/s, neither of them unsure")
	}
	ch := &Chart{
		Title:    v.title("Throughput against arithmetic intensity"),
		Subtitle: v.subtitle(),
		Notes:    []string{"Intensity: the problem's floating-point operations over the bytes that the schedule reads and writes."},
		X:        Axis{Title: "Arithmetic intensity (FLOP/B)", Scale: Log, Format: func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }},
		Y:        Axis{Title: "Throughput (FLOP/s)", Scale: Log},
	}
	var lost []*record.Record
	above, faster, unknown := false, false, []string(nil)
	for _, group := range groups {
		panel := Panel{}
		if len(groups) > 1 {
			panel.Title = precision.Text(group[0])
		}
		panel.Series, lost = v.intensities(group, lost)
		if len(panel.Series) == 0 {
			continue
		}
		peak, own := v.roof(group)
		panel.Guides = roofs(panel, v.Copy, peak, group[0].Point.Precision)
		ch.Panels = append(ch.Panels, panel)
		one := &Chart{Panels: []Panel{panel}}
		above = above || one.above(func(Point) float64 { return peak })
		faster = faster || one.above(func(p Point) float64 { return p.X * v.Copy })
		if !own {
			unknown = append(unknown, group[0].Point.Precision)
		}
	}
	if len(ch.Panels) == 0 {
		return nil, errNoResults
	}
	ch.Notes = append(ch.Notes, v.roofNotes(lost, above, faster, unknown)...)
	ch.Notes = append(ch.Notes, fewNotes(v.recs)...)
	ch.Notes = append(ch.Notes, quantity.Doubts(v.recs)...)
	return ch, nil
}

// RoofsOf returns the rates, in FLOP/s by precision, that a device measured for the library's
// products.
func RoofsOf(d record.Device) map[string]float64 { return d.ProductRates() }

// roof returns the machine's peak in the precision of records; own is true. If that is unknown, it
// returns the peak in single precision; own is false.
func (v *view) roof(recs []*record.Record) (peak float64, own bool) {
	r := recs[0]
	peak = v.Roofs[r.Point.Precision]
	if v.Peak == 0 {
		peak = max(peak, quantity.Peak(recs))
	}
	if r.Point.Precision == "fp32" || !record.OnGPU(r.Device) { // computed in single precision
		peak = max(peak, v.singlePeak())
	}
	if peak > 0 {
		return peak, true
	}
	return v.singlePeak(), false
}

// singlePeak returns the machine's peak in single precision; 0: unknown.
func (v *view) singlePeak() float64 {
	if v.Peak == 0 {
		return quantity.SinglePeak(v.recs)
	}
	return v.Peak
}

// roofs returns the lines of the roofs, as far to the left and right as a panel's marks reach.
func roofs(p Panel, copyRate, peak float64, precision string) (list []Guide) {
	xs, _, _ := p.values()
	lo, hi := slices.Min(xs)/1.5, slices.Max(xs)*1.5
	ridge := peak / copyRate
	const near = 4 // the ridge is drawn if it is within this factor of the marks
	if ridge > hi && ridge < near*hi {
		hi = 1.5 * ridge
	}
	if ridge < lo && ridge > lo/near {
		lo = ridge / 1.5
	}
	if lo < ridge {
		end := min(ridge, hi)
		list = append(list, Guide{Label: "copy rate " + quantity.SI(copyRate, "B/s"), X0: lo, Y0: lo * copyRate, X1: end, Y1: end * copyRate})
	}
	if hi > ridge {
		list = append(list, Guide{Label: fmt.Sprintf("%s peak %s", precision, quantity.SI(peak, "FLOP/s")), X0: max(lo, ridge), Y0: peak, X1: hi, Y1: peak})
	}
	return list
}

// intensities returns the series of records over their FLOP/byte. It appends records without a
// value or an intensity to lost.
func (v *view) intensities(recs []*record.Record, lost []*record.Record) ([]Series, []*record.Record) {
	var list []Series
	for _, group := range quantity.Split(recs, v.series) {
		line := Series{Label: v.series.Text(group[0]), Scatter: true}
		if v.Series != "impl" {
			line.Label = v.series.Tag(group[0])
		}
		for _, r := range group {
			y, ok := v.value(r)
			if !ok || r.Work.Bytes <= 0 || r.Work.Flops <= 0 {
				lost = append(lost, r)
				continue
			}
			pt := Point{X: float64(r.Work.Flops) / float64(r.Work.Bytes), Y: y.Value, Few: fewSamples(r), From: r}
			if y.Known() {
				pt.Lo, pt.Hi = y.Lo, y.Hi
			}
			line.Points = append(line.Points, pt)
		}
		if len(line.Points) > 0 {
			slices.SortFunc(line.Points, func(a, b Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
			list = append(list, line)
		}
	}
	return list, lost
}

// roofNotes returns notes on records that are not drawn, and on marks above the roofs.
func (v *view) roofNotes(lost []*record.Record, above, faster bool, unknown []string) (notes []string) {
	broke := slices.DeleteFunc(slices.Clone(lost), func(r *record.Record) bool { return r.Seconds() > 0 })
	if len(broke) > 0 {
		notes = append(notes, "No result: "+quantity.Reasons(broke)+".")
	}
	if n := len(lost) - len(broke); n > 0 {
		whose := "their"
		if n == 1 {
			whose = "its"
		}
		notes = append(notes, fmt.Sprintf("%s not drawn, because %s operations or bytes are not recorded.", quantity.Are(n, "record"), whose))
	}
	if len(unknown) > 0 {
		notes = append(notes, "No peak was measured for "+strings.Join(unknown, ", ")+": the roof is for single-precision multiply-adds, which tensor cores exceed.")
	} else if above {
		notes = append(notes, peakNote)
	}
	if faster {
		notes = append(notes, copyNote)
	}
	return notes
}
