package table

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Benchfmt writes every sample as a line of the Go benchmark format, for tools such as benchstat.
// The device and all axes on which records agree become lines of configuration. Other axes become
// parts of names. Benchfmt leaves out records without samples.
func Benchfmt(w io.Writer, recs []record.Record) error {
	return BenchfmtOf(w, []record.Set{{Records: recs}})
}

// BenchfmtOf writes the samples of several runs. Each begins with a line that says which it is, if it has
// a label, as for benchstat -col run.
func BenchfmtOf(w io.Writer, sets []record.Set) error {
	b := bufio.NewWriter(w)
	var printed []*record.Record
	first := map[*record.Record]string{} // labels of the runs, by their first record
	for _, s := range sets {
		at := len(printed)
		for i := range s.Records {
			if r := &s.Records[i]; r.Status == record.OK && r.Samples != nil {
				printed = append(printed, r)
			}
		}
		if at < len(printed) {
			first[printed[at]] = s.Label
		}
	}
	varying := quantity.Varying(printed)
	axes := slices.DeleteFunc(quantity.Axes(), func(a quantity.Axis) bool { return a.Name == "device" })
	var named []quantity.Axis
	for _, a := range axes {
		switch {
		case slices.ContainsFunc(varying, func(v quantity.Axis) bool { return v.Name == a.Name }):
			named = append(named, a)
		case len(printed) > 0 && quantity.OneLine(a.Text(printed[0])) != "":
			fmt.Fprintf(b, "%s: %s\n", a.Name, quantity.OneLine(a.Text(printed[0])))
		}
	}
	// The technique comes first.
	if i := slices.IndexFunc(named, func(a quantity.Axis) bool { return a.Name == "impl" }); i > 0 {
		named = slices.Insert(slices.Delete(slices.Clone(named), i, i+1), 0, named[i])
	}
	device := ""
	knobs := varyingKnobs(printed)
	for _, r := range printed {
		if label := first[r]; label != "" {
			fmt.Fprintf(b, "run: %s\n", quantity.OneLine(label))
		}
		if d := quantity.OneLine(r.Device); d != device {
			fmt.Fprintf(b, "device: %s\n", d)
			device = d
		}
		benchLines(b, benchName(r, named, knobs), r)
	}
	return b.Flush()
}

// benchName returns the name of r's benchmark, with its places on axes and its knobs.
func benchName(r *record.Record, axes []quantity.Axis, knobs []string) string {
	name := "BenchmarkRNN"
	part := map[string]string{}
	for _, a := range axes {
		if text := a.Text(r); text != "" {
			part[a.Name] = word(text)
			name += "/" + a.Name + "=" + word(text)
		}
	}
	for _, k := range knobs {
		if v, ok := r.Impl.Knobs[k]; ok && part[k] != strconv.Itoa(v) {
			name += "/" + word(k) + "=" + strconv.Itoa(v)
		}
	}
	return name
}

// benchLines writes r's samples: device times if events timed them, else wall times.
func benchLines(w io.Writer, name string, r *record.Record) {
	samples := r.Samples.Wall
	if r.Mode.Timer == "event" && len(r.Samples.Device) > 0 {
		samples = r.Samples.Device
	}
	for j, s := range samples {
		if !(s > 0) || math.IsInf(s, 0) {
			continue
		}
		iters := 1
		if j < len(r.Samples.Iters) {
			iters = max(1, r.Samples.Iters[j])
		}
		fmt.Fprintf(w, "%s\t%d\t%s ns/op\t%s flop/s\n", name, iters, plain(1e9*s), plain(float64(r.Work.Flops)/s))
	}
}

// word returns s as one component of a benchmark's name.
func word(s string) string {
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '/' || c == '=' {
			return '_'
		}
		return c
	}, quantity.OneLine(s))
}

func plain(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }
