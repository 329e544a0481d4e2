package quantity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
	"rnnbench/rnn/axis"
)

// Latest returns the newest record of each key, in the order of recs.
func Latest(recs []record.Record) []*record.Record {
	type slot struct {
		key, cache, data string
		graph            bool
		label            string
	}
	at := map[slot]int{}
	out := make([]*record.Record, 0, len(recs))
	for i := range recs {
		r := &recs[i]
		s := slot{r.Key(), r.Mode.Cache, r.Mode.Data, r.Mode.Graph, Label(r)}
		j, seen := at[s]
		switch {
		case !seen:
			at[s] = len(out)
			out = append(out, r)
		case r.Time.After(out[j].Time) || r.Time.Equal(out[j].Time) && r.Seq >= out[j].Seq:
			out[j] = r
		}
	}
	return out
}

// Choose returns one record for each place on the axes, sorted by the first axis, then by the
// others. If several records share a place, it returns the fastest that succeeded, and tuned is
// true.
func Choose(recs []*record.Record, axes ...Axis) (chosen []*record.Record, tuned bool) {
	at := map[string]int{}
	for _, r := range recs {
		k := joined(r, axes)
		i, seen := at[k]
		if !seen {
			at[k] = len(chosen)
			chosen = append(chosen, r)
			continue
		}
		tuned = true
		if better(r, chosen[i]) {
			chosen[i] = r
		}
	}
	slices.SortStableFunc(chosen, func(x, y *record.Record) int {
		for _, a := range axes {
			if c := a.Compare(x, y); c != 0 {
				return c
			}
		}
		return 0
	})
	return chosen, tuned
}

func better(a, b *record.Record) bool {
	ta, tb := a.Seconds(), b.Seconds()
	if (ta > 0) != (tb > 0) {
		return ta > 0
	}
	if ta != tb {
		return ta < tb
	}
	return a.Key() < b.Key()
}

func joined(r *record.Record, axes []Axis) string {
	texts := make([]string, len(axes))
	for i, a := range axes {
		texts[i] = a.Text(r)
	}
	return strings.Join(texts, "\x00")
}

// Split divides records by their place on an axis, in the axis's order. For an axis without a name,
// it returns all records as one part.
func Split(recs []*record.Record, a Axis) [][]*record.Record {
	if a.Name == "" {
		return [][]*record.Record{recs}
	}
	at := map[string]int{}
	var out [][]*record.Record
	for _, r := range recs {
		i, seen := at[a.Text(r)]
		if !seen {
			i = len(out)
			at[a.Text(r)] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], r)
	}
	slices.SortStableFunc(out, func(x, y []*record.Record) int { return a.Compare(x[0], y[0]) })
	return out
}

// Varying lists the axes along which the records differ.
func Varying(recs []*record.Record) []Axis {
	return slices.DeleteFunc(Axes(), func(a Axis) bool {
		return !slices.ContainsFunc(recs, func(r *record.Record) bool { return a.Text(r) != a.Text(recs[0]) })
	})
}

// Left lists the axes on which records differ although they have the same places on all axes of
// used.
func Left(recs []*record.Record, used ...Axis) []Axis {
	groups := map[string]*record.Record{}
	left := map[string]bool{}
	all := Axes()
	for _, r := range recs {
		k := joined(r, used)
		first, seen := groups[k]
		if !seen {
			groups[k] = r
			continue
		}
		for _, a := range all {
			if a.Text(r) != a.Text(first) {
				left[a.Name] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(a Axis) bool { return !left[a.Name] })
}

// Fewest drops redundant axes, from the last to the first. An axis is redundant if the places on
// the others and on used imply its place; for example, a label may imply the kind of launch.
func Fewest(recs []*record.Record, axes []Axis, used ...Axis) []Axis {
	for i := len(axes) - 1; i >= 0; i-- {
		others := slices.Delete(slices.Clone(axes), i, i+1)
		implied := slices.IndexFunc(Left(recs, append(slices.Clone(used), others...)...), func(a Axis) bool { return a.Name == axes[i].Name }) < 0
		if implied {
			axes = others
		}
	}
	return axes
}

// usualPlaces maps axes to their usual places, which texts leave out.
func usualPlaces() map[string]string {
	usual := map[string]string{"cache": "hot", "graph": "direct"}
	for _, a := range axis.Columns() {
		if place, ok := a.Usual(); ok {
			usual[cmp.Or(a.Column, a.Name)] = place
		}
	}
	return usual
}

// Place formats r's places on axes, as in "H=512 resets=3%". It leaves out usual places, unless all
// are usual.
func Place(r *record.Record, axes []Axis) string {
	var all, words []string
	usual := usualPlaces()
	for _, a := range axes {
		all = append(all, a.Tag(r))
		if a.Text(r) != usual[a.Name] {
			words = append(words, a.Tag(r))
		}
	}
	if words == nil {
		words = all
	}
	return strings.Join(words, " ")
}

// Common formats the places that all records share, for a subtitle: "lstm · forward · B=64 ·
// T=100". It leaves out the axes in except, and usual places.
func Common(recs []*record.Record, except ...string) string {
	if len(recs) == 0 {
		return ""
	}
	varying := map[string]bool{}
	for _, a := range Varying(recs) {
		varying[a.Name] = true
	}
	usual := usualPlaces()
	usual["impl"], usual["device"], usual["data"] = Label(recs[0]), recs[0].Device, recs[0].Mode.Data
	var words []string
	for _, a := range Axes() {
		t := a.Text(recs[0])
		if varying[a.Name] || slices.Contains(except, a.Name) || t == "" {
			continue
		}
		if u, ok := usual[a.Name]; ok && OneLine(u) == t {
			continue
		}
		switch a.Name {
		case "cache":
			words = append(words, "cache "+t)
		case "graph":
			words = append(words, "graph replay")
		default:
			words = append(words, a.Tag(recs[0]))
		}
	}
	return strings.Join(words, " · ")
}

// Reason returns in a few words why r has no result.
func Reason(r *record.Record) string {
	if r.ReasonCode != nil {
		switch *r.ReasonCode {
		case record.ReasonMemory, record.ReasonOOM, record.ReasonBackstop:
			return "out of memory"
		case record.ReasonShape:
			return "shape unsupported"
		case record.ReasonCell:
			return "cell unsupported"
		case record.ReasonStreams:
			return "streams unsupported"
		case record.ReasonInput:
			return "input unsupported"
		case record.ReasonHistory, record.ReasonHeads, record.ReasonProjection, record.ReasonNorm, record.ReasonCalls, record.ReasonDirection,
			record.ReasonLengths, record.ReasonResets, record.ReasonPrecision, record.ReasonDevice:
			return strings.TrimPrefix(*r.ReasonCode, "unsupported_") + " unsupported"
		case record.ReasonLookahead:
			return "row convolution unsupported"
		case record.ReasonSkip:
			return "shortcuts unsupported"
		case record.ReasonLibrary:
			return "not in the library"
		case record.ReasonKnob:
			return "setting unsupported"
		case record.ReasonResource:
			if r.Reason != nil && (strings.Contains(*r.Reason, "NOT_SUPPORTED") || strings.Contains(*r.Reason, "vendor: unsupported")) {
				return "not supported by the library" // the library gives no reason
			}
			return "too large for the device"
		case record.ReasonBound:
			return "cannot be the fastest"
		case record.ReasonUnlikely:
			return "not tried"
		case record.ReasonHang:
			return "hung"
		case record.ReasonLost:
			return "worker killed"
		case record.ReasonCUDA:
			return "CUDA error"
		case record.ReasonRival:
			return "rival failed"
		case record.ReasonMismatch:
			return "wrong answer"
		case record.ReasonUnconverged:
			return "too few iterations"
		case record.ReasonPeak, record.ReasonBytes, record.ReasonGrowth:
			return "impossible time"
		case record.ReasonInterrupted:
			return "interrupted"
		case record.ReasonPanic, record.ReasonError:
			return "error"
		}
	}
	switch r.Status {
	case record.Incorrect:
		return "wrong answer"
	case record.NotConverged:
		return "too few iterations"
	case record.Impossible:
		return "impossible time"
	case record.Timeout:
		return "timed out"
	case record.OK:
		return "no time recorded"
	}
	return OneLine(string(r.Status))
}

// Reasons counts the reasons of records without a result: "3 out of memory, 2 wrong answers".
func Reasons(recs []*record.Record) string {
	count := map[string]int{}
	for _, r := range recs {
		count[Reason(r)]++
	}
	words := make([]string, 0, len(count))
	for w := range count {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b string) int {
		if c := count[b] - count[a]; c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	for i, w := range words {
		if count[w] > 1 {
			w = plural(w)
		}
		words[i] = fmt.Sprintf("%d %s", count[words[i]], w)
	}
	return strings.Join(words, ", ")
}

// plural returns a reason as that of several records: "wrong answers", "settings unsupported".
func plural(reason string) string {
	if noun, ok := strings.CutSuffix(reason, " unsupported"); ok {
		return strings.TrimSuffix(strings.Replace(noun, "history", "histories", 1), "s") + "s unsupported"
	}
	for _, noun := range []string{"answer", "error", "time"} {
		if strings.HasSuffix(reason, noun) {
			return reason + "s"
		}
	}
	return reason
}
