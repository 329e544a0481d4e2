package diamos

import (
	"math"
	"testing"

	"rnnbench/model"
	"rnnbench/record"
)

// TestPredictedStep: the geometry of the kernel that ran decides what is predicted. A layer in
// one cluster does not pay for the exchange over the GPU.
func TestPredictedStep(t *testing.T) {
	m, err := model.Load("h200")
	if err != nil {
		t.Fatal(err)
	}
	p := record.Point{Cell: "rnn-tanh", Pass: "forward", Hidden: 256, Input: 16, Batch: 4, Layers: 1, Steps: 1000, Precision: "fp32"}
	kernel := record.Kernel{Name: "k", Grid: &[3]int{64, 1, 1}, Launches: 1, Group: &record.Group{Blocks: 16, Samples: 1, Steps: 1000}}
	step := func(rec *record.Record) float64 {
		s, err := predictedStep(m, p, rec)
		if err != nil {
			t.Fatal(err)
		}
		return s.Time
	}
	measured := 357e-9 // as recorded of this layer, in clusters of 16 blocks
	within := func(s float64) bool { return math.Abs(measured/s-1) <= 0.25 }
	product := record.Kernel{Name: "product", Launches: 1}
	if s := step(&record.Record{Kernels: []record.Kernel{product, kernel}}); !within(s) {
		t.Errorf("in clusters, %v s are predicted", s)
	}
	kernel.Group.Spread = true
	for name, rec := range map[string]*record.Record{"spread": {Kernels: []record.Kernel{kernel}}, "of an old record": {}, "without a record": nil} {
		if s := step(rec); within(s) || s < 0.85e-6 {
			t.Errorf("%s, %v s are predicted", name, s)
		}
	}
}
