package table

import (
	"strings"
	"testing"

	"rnnbench/record"
)

// TestDifferences: other environments, other speeds of a device and other rivals are reported.
func TestDifferences(t *testing.T) {
	set := func(label, version string, peak float64) record.Set {
		s := record.Set{Label: label}
		s.Manifest.Environment.Tool.Go = version
		s.Manifest.Devices = []record.Device{{Key: "cpu-x", Name: "a processor", Peak: &peak}}
		return s
	}
	rival := func(s record.Set, version string) record.Set {
		s.Manifest.Devices[0].Facts = map[string]string{record.RivalFact + "pytorch": version}
		return s
	}
	for _, c := range []struct {
		b    record.Set
		want string
	}{
		{set("b", "go1", 95e9), ""},
		{set("b", "go1", 80e9), "a processor changed between a and b: its peak was 100 GFLOP/s, then 80.0 GFLOP/s"},
		{set("b", "go2", 100e9), "the environments of a and b differ: "},
		{record.Set{Label: "b"}, ""},
		{rival(set("b", "go1", 95e9), "1 compile=0,1"), ""},
		{rival(set("b", "go1", 95e9), "2 compile=0,1"), "rival pytorch changed between a and b: it was 1 compile=0,1, then 2 compile=0,1"},
	} {
		got := strings.Join(Differences(rival(set("a", "go1", 100e9), "1 compile=0,1"), c.b), "\n")
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
