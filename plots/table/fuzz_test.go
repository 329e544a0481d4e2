package table

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"rnnbench/internal/synthetic"
)

// axisName matches the key of a line of configuration.
var axisName = regexp.MustCompile(`^[a-z]+$`)

// FuzzBenchfmt: whatever the names in records, each line is configuration, or has a name without
// spaces whose parts have a key and a value. The format's own reader can read all.
func FuzzBenchfmt(f *testing.F) {
	f.Add("naive", "cpu", "fused", 1e-3)
	f.Add("a/b = \x1b[31m\u202e", "d\nevil: 1", "k=1/2", 1e300)
	f.Fuzz(func(t *testing.T, label, device, knob string, seconds float64) {
		recs := synthetic.Sweep([]int{512}, []int{64})
		for i := range recs {
			recs[i].Impl.Label, recs[i].Device = label, device
			recs[i].Impl.Knobs = map[string]int{knob: i}
			if recs[i].Samples != nil {
				recs[i].Samples.Wall[0] = seconds
			}
		}
		var b bytes.Buffer
		if err := Benchfmt(&b, recs); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if key, _, ok := strings.Cut(line, ": "); ok && axisName.MatchString(key) {
				continue
			}
			fields := strings.Fields(line)
			if len(fields) != 6 || !strings.HasPrefix(fields[0], "BenchmarkRNN") {
				t.Fatalf("line %q", line)
			}
			for _, part := range strings.Split(fields[0], "/")[1:] {
				if strings.Count(part, "=") != 1 {
					t.Fatalf("part %q of %q", part, line)
				}
			}
		}
		for r := benchfmt.NewReader(&b, "fuzz"); r.Scan(); {
			if bad, ok := r.Result().(*benchfmt.SyntaxError); ok {
				t.Fatal(bad)
			}
		}
	})
}
