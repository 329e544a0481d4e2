package layer_test

import (
	"errors"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/layer"
)

// TestForwardAllocatesNothing runs a small layer step by step, as a streaming host program does.
// Garbage would bring the collector, whose work delays calls of a microsecond. One worker is enough:
// the others are handed their work by closures.
func TestForwardAllocatesNothing(t *testing.T) {
	t.Setenv("RNNBENCH_WISDOM", t.TempDir()+"/wisdom.toml")
	d, err := layer.Open("cpu:1", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	type layerBy struct{ description, technique string }
	tests := []layerBy{{"cell=lstm,input=20,hidden=33,layers=2", "naive"}, {"cell=gru,input=20,hidden=33", "naive"}}
	if simd.Detect() > simd.Generic { // without assembly, cells are interpreted in memory of each call
		tests = append(tests, layerBy{"cell=lstm,input=20,hidden=33,layers=2", "cudnnstyle"}, layerBy{"cell=gru,input=20,hidden=33", "persistent"})
	}
	for _, test := range tests {
		l, err := d.NewLayer(test.description)
		if err != nil {
			t.Fatal(err)
		}
		p, err := l.Plan(layer.Request{Batch: 1, Steps: 1, Pass: "forward", Technique: test.technique})
		if err != nil {
			t.Fatal(err)
		}
		h := hosted(t, p)
		h.run(t)
		var failed error
		if n := testing.AllocsPerRun(100, func() { failed = errors.Join(failed, p.Forward(0)) }); n != 0 || failed != nil {
			t.Errorf("%s, %s: a call allocates %v times; %v", test.description, test.technique, n, failed)
		}
	}
}
