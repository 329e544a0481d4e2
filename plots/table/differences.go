package table

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Differences lists what may have changed times from a to b, besides the program.
func Differences(a, b record.Set) []string {
	var list []string
	if a.Manifest.Environment.Tool.Go != "" && b.Manifest.Environment.Tool.Go != "" {
		if d := record.Diff(a.Manifest.Environment, b.Manifest.Environment); len(d) > 0 {
			list = append(list, fmt.Sprintf("the environments of %s and %s differ: %s", a.Label, b.Label, strings.Join(d, "; ")))
		}
	}
	for _, d := range a.Manifest.Devices {
		i := slices.IndexFunc(b.Manifest.Devices, func(e record.Device) bool { return e.Key == d.Key })
		if i < 0 {
			continue
		}
		const telling = 0.1 // a peak differs by less from run to run
		e := b.Manifest.Devices[i]
		for _, name := range record.OtherRivals(d, e) {
			list = append(list, fmt.Sprintf("rival %s changed between %s and %s: it was %s, then %s", name, a.Label, b.Label, d.Facts[record.RivalFact+name], e.Facts[record.RivalFact+name]))
		}
		for _, v := range []struct {
			name, unit string
			was, is    *float64
		}{{"peak", "FLOP/s", d.Peak, e.Peak}, {"copy rate", "B/s", d.Bandwidth, e.Bandwidth}} {
			if v.was != nil && v.is != nil && (*v.is < *v.was*(1-telling) || *v.was < *v.is*(1-telling)) {
				list = append(list, fmt.Sprintf("%s changed between %s and %s: its %s was %s, then %s", d.Name, a.Label, b.Label, v.name,
					quantity.SI(*v.was, v.unit), quantity.SI(*v.is, v.unit)))
			}
		}
	}
	return list
}
