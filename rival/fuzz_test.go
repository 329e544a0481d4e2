package rival

import (
	"math"
	"strings"
	"testing"
	"time"

	"rnnbench/internal/safe"
)

// FuzzAnswer: whatever line a rival sends is refused or is safe to use.
func FuzzAnswer(f *testing.F) {
	for _, line := range []string{
		`{"name":"pytorch","version":"2.11.0+cu130","devices":["cpu","cuda:0"],"knobs":[{"name":"compile","values":[0,1]}],"precisions":["fp32","bf16"]}`,
		`{"devices":["cpu"],"precisions":["fp32"],"directions":["both"],"lengths":true}`, `{"directions":["both","both"],"lengths":"yes"}`,
		`{"ok":true,"device":"NVIDIA H200"}`, `{"ok":true,"memory":123456}`, `{"unsupported":"no peepholes"}`, `{"error":"\u001b[2J\n"}`,
		`{"wall_s":0.001,"device_s":0.0009}`, `{"wall_s":1e-320}`, `{"wall_s":1e308,"device_s":-1}`, `{"wall_s":NaN}`, `[]`, `null`, ``, `{`, "\xff\xfe",
		`{"knobs":[{"name":"a","values":[]},{"name":"a","values":[1,1]},{"name":"A b","values":[9999999999]}]}`,
	} {
		f.Add([]byte(line), int64(time.Second))
	}
	f.Fuzz(func(t *testing.T, line []byte, took int64) {
		a, err := parse(line)
		if err != nil {
			return
		}
		for _, s := range []string{a.Unsupported, a.Error, a.Version} {
			if len(s) > mostText+len("… ") || strings.ContainsFunc(s, safe.Hidden) {
				t.Errorf("a text of %d bytes goes on: %q", len(s), s)
			}
		}
		if wall, own, err := a.times(time.Duration(took & math.MaxInt64)); err == nil && (wall <= 0 || own < 0) {
			t.Errorf("times of %v and %v go on", wall, own)
		}
		if ways, err := a.directions(); err == nil && len(ways) == 0 {
			t.Error("a rival without a direction goes on")
		}
		knobs, err := a.knobs()
		if err != nil {
			return
		}
		for _, k := range knobs {
			if len(k.Values) == 0 || !k.Accepts(k.Values[0]) {
				t.Errorf("a knob without a default goes on: %v", k)
			}
		}
	})
}
