package table

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"rnnbench/internal/synthetic"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// TestBenchfmt reads the output with the format's own reader. Every sample is there, names have
// only axes that vary, and constants are lines of configuration.
func TestBenchfmt(t *testing.T) {
	all := synthetic.Sweep([]int{512, 4096}, []int{64, 128})
	all[1].Samples.Wall[0], all[1].Samples.Device = math.NaN(), nil
	one := all[0]
	one.Impl.Label, one.Point.Cell = "naive:a=1 b/c\nd", "lstm\x1b"
	for _, c := range []struct {
		name  string
		recs  []record.Record
		parts string // of names
	}{
		{"a sweep", all, "impl hidden batch"},
		{"one technique", synthetic.Sweep([]int{512, 4096}, []int{64})[:1], ""},
		{"a name that breaks lines", []record.Record{one}, ""},
		{"nothing", nil, ""},
	} {
		var b bytes.Buffer
		if err := Benchfmt(&b, c.recs); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{} // samples by technique
		for i := range c.recs {
			if r := &c.recs[i]; r.Status == record.OK {
				for _, s := range r.Samples.Wall {
					if s > 0 { // and not NaN
						want[word(quantity.Label(r))]++
					}
				}
			}
		}
		r := benchfmt.NewReader(&b, c.name)
		for r.Scan() {
			res, ok := r.Result().(*benchfmt.Result)
			if !ok {
				t.Fatalf("%s: %v", c.name, r.Result())
			}
			_, parts := res.Name.Parts()
			var keys []string
			impl := word(res.GetConfig("impl"))
			for _, p := range parts {
				key, value, _ := strings.Cut(strings.TrimPrefix(string(p), "/"), "=")
				keys = append(keys, key)
				if key == "impl" {
					impl = value
				}
				if res.GetConfig(key) != "" {
					t.Errorf("%s: %s is in a name and in the configuration", c.name, key)
				}
			}
			if got := strings.Join(keys, " "); got != c.parts {
				t.Errorf("%s: the name %s has %q, want %q", c.name, res.Name, got, c.parts)
			}
			if res.GetConfig("device") == "" || res.GetConfig("pass") == "" || res.GetConfig("precision") == "" {
				t.Errorf("%s: the configuration lacks constants: %v", c.name, res.Config)
			}
			if ns, ok := res.Value("sec/op"); !ok || !(ns > 0) {
				t.Errorf("%s: %v", c.name, res.Values)
			}
			want[impl]--
		}
		if err := r.Err(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for impl, n := range want {
			if n != 0 {
				t.Errorf("%s: %d samples of %s are missing", c.name, n, impl)
			}
		}
	}
}
