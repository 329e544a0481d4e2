package main

import (
	"slices"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/config"
)

// TestIsolate: a worker process measures what this process measures, and records name the same
// device.
func TestIsolate(t *testing.T) {
	t.Chdir(t.TempDir())
	var keys [2][]string
	var devices [2]record.Device
	for i, isolate := range []string{"off", "on"} {
		rnnbench(t, tiny+" --threads 1 --simd generic --isolate "+isolate).want(t, exit.Done, nil, []string{"4 ok"})
		m, recs, _, err := record.Read(config.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			keys[i] = append(keys[i], r.Device+" "+r.Key())
		}
		slices.Sort(keys[i])
		devices[i] = m.Devices[0]
	}
	if !slices.Equal(keys[0], keys[1]) {
		t.Errorf("records %q, isolated %q", keys[0], keys[1])
	}
	if here, there := devices[0], devices[1]; here.Key != there.Key || here.Facts["simd"] != there.Facts["simd"] || there.Peak == nil {
		t.Errorf("device %+v, isolated %+v", here, there)
	}
	rnnbench(t, tiny+" --device cuda:0 --isolate off").want(t, exit.Usage, nil, []string{"always needs a worker process"})
	rnnbench(t, "worker --threads none").want(t, exit.Done, []string{"rnnbench worker"}, nil) // the error goes to its caller
}
