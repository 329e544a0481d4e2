package tuner_test

import (
	"strconv"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// renamed is a device under another name. The name decides whether it counts as a GPU.
type renamed struct {
	device.Device
	name string
}

func (d renamed) Info() device.Info {
	i := d.Device.Info()
	i.Name = d.name
	return i
}

// TestDefaultsOfLaunches: a scan without settings takes all steps at once on a GPU, and blocks of
// 512 rows on a CPU. Explicit settings hold on both.
func TestDefaultsOfLaunches(t *testing.T) {
	own, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	p := record.Point{Cell: "gilr", Pass: "forward", Input: 1, Hidden: 64, Layers: 1, Batch: 4, Steps: 1000, Precision: "fp32"}
	for _, test := range []struct {
		device string
		knobs  map[string]int
		want   int
	}{{"cpu", nil, 128}, {"cuda:0", nil, 0}, {"cpu", map[string]int{"inputbatch": 32}, 32}, {"cuda:0", map[string]int{"inputbatch": 32}, 32}} {
		l, err := tuner.LayOut(renamed{own, test.device}, impl.All(), p, grid.Spec{Name: "scan", Knobs: test.knobs})
		if err != nil || l.Reason != "" {
			t.Fatal(l.Reason, err)
		}
		if got := l.Knobs["inputbatch"]; got != test.want {
			t.Errorf("%s %v: blocks of %d steps, want %d", test.device, test.knobs, got, test.want)
		}
		launched := test.device != "cpu"
		for n, of := range map[int]bool{0: true, 128: false} { // the default of one kind is a setting on the other
			want := "scan"
			if launched != of {
				want += ":inputbatch=" + strconv.Itoa(n)
			}
			if got := tuner.FormatSpec(impl.All(), nil, launched, "scan", map[string]int{"inputbatch": n}, p); got != want {
				t.Errorf("%s: %s, want %s", test.device, got, want)
			}
		}
	}
}
