package table

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"rnnbench/internal/safe"
	"rnnbench/plots/quantity"
	"rnnbench/results"
)

// JSONL writes the records as they are, a line each.
func JSONL(w io.Writer, recs []results.Record) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	for i := range recs {
		if err := e.Encode(&recs[i]); err != nil {
			return fmt.Errorf("table: record %d: %w", recs[i].Seq, err)
		}
	}
	return b.Flush()
}

// Benchfmt writes every sample as a line of the Go benchmark format, so that
// benchstat can be asked for a second opinion. Records without samples are left
// out.
func Benchfmt(w io.Writer, recs []results.Record) error {
	b := bufio.NewWriter(w)
	device := ""
	knobs := varyingKnobs(quantity.Latest(recs))
	for i := range recs {
		r := &recs[i]
		if r.Status != results.OK || r.Samples == nil {
			continue
		}
		if d := quantity.OneLine(r.Device); d != device {
			fmt.Fprintf(b, "device: %s\n", d)
			device = d
		}
		name := "BenchmarkRNN/impl=" + word(quantity.Label(r))
		for _, a := range quantity.Axes() {
			if a.Name != "impl" && a.Name != "device" && a.Text(r) != "" {
				name += "/" + a.Name + "=" + word(a.Text(r))
			}
		}
		for _, k := range knobs {
			if v, ok := r.Impl.Knobs[k]; ok {
				name += "/" + word(k) + "=" + strconv.Itoa(v)
			}
		}
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
			fmt.Fprintf(b, "%s\t%d\t%s ns/op\t%s flop/s\n", name, iters, plain(1e9*s), plain(float64(r.Work.Flops)/s))
		}
	}
	return b.Flush()
}

// word makes s one component of a benchmark's name.
func word(s string) string {
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '/' || c == '=' || safe.Hidden(c) {
			return '_'
		}
		return c
	}, s)
}

func plain(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }
