package auto_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/grid"
)

// A measured layer has the times of cudnnstyle and persistent as graphs on one H200, in ms; 0: unknown.
// The layers fill the GPU and are from random-layers (seeds 9101 and 9202) and deepbench-16bit.
// The persistent layers of rnn-tanh 2176 and rnn-relu 2560 at batch 64 ran with weights in local memory.
type measured struct {
	cell, pass             string
	size                   [4]int // hidden, batch, steps, layers
	precision              string
	cudnnstyle, persistent float64
}

var large16 = []measured{
	{"rnn-tanh", "forward", [4]int{768, 186, 49, 1}, "fp16", 0.3253, 0.1578},
	{"gru", "forward", [4]int{960, 91, 403, 2}, "bf16", 7.164, 3.514},
	{"gru", "forward", [4]int{1184, 67, 188, 1}, "fp16", 1.766, 1.341},
	{"lstm", "forward", [4]int{1440, 64, 77, 1}, "fp16", 0.9106, 0.6572},
	{"lstm", "forward", [4]int{1728, 106, 221, 1}, "fp16", 3.401, 3.316},
	{"rnn-tanh", "forward", [4]int{2016, 46, 74, 3}, "fp16", 1.583, 1.296},
	{"rnn-tanh", "forward", [4]int{2176, 72, 478, 1}, "bf16", 4.934, 0},
	{"rnn-relu", "forward", [4]int{2272, 18, 273, 1}, "bf16", 1.584, 1.145},
	{"lstm", "forward", [4]int{2400, 75, 86, 2}, "bf16", 4.033, 5.644},
	{"lstm", "forward", [4]int{3008, 50, 116, 1}, "bf16", 3.838, 3.748},
	{"lstm", "train", [4]int{1024, 64, 25, 1}, "bf16", 0.5277, 0.4103},
	{"gru", "train", [4]int{1024, 64, 1500, 1}, "bf16", 24.81, 13.83},
	{"lstm", "train", [4]int{1024, 128, 25, 1}, "bf16", 0.6827, 0.7191},
	{"gru", "train", [4]int{1740, 81, 65, 1}, "fp16", 5.318, 3.461},
	{"rnn-relu", "train", [4]int{1760, 64, 50, 1}, "bf16", 0.7835, 0.6},
	{"rnn-relu", "train", [4]int{1760, 128, 50, 1}, "bf16", 1.048, 0.9152},
	{"rnn-relu", "train", [4]int{2048, 16, 50, 1}, "bf16", 0.5296, 0.3963},
	{"lstm", "train", [4]int{2048, 16, 25, 1}, "bf16", 0.7346, 0.594},
	{"rnn-relu", "train", [4]int{2048, 32, 50, 1}, "bf16", 0.697, 0.492},
	{"lstm", "train", [4]int{2048, 32, 25, 1}, "bf16", 0.858, 0.8192},
	{"gru", "train", [4]int{2048, 32, 750, 1}, "bf16", 17.02, 12.83},
	{"rnn-relu", "train", [4]int{2048, 64, 50, 1}, "bf16", 0.8804, 0.7106},
	{"rnn-relu", "train", [4]int{2048, 128, 50, 1}, "bf16", 1.152, 1.067},
	{"lstm", "train", [4]int{2048, 128, 25, 1}, "bf16", 1.557, 1.98},
	{"gru", "train", [4]int{2368, 124, 54, 1}, "bf16", 3.363, 4.626},
	{"rnn-relu", "train", [4]int{2560, 16, 50, 1}, "bf16", 0.6734, 0.555},
	{"rnn-relu", "train", [4]int{2560, 32, 50, 1}, "bf16", 0.9194, 0.7185},
	{"gru", "train", [4]int{2560, 32, 750, 1}, "bf16", 24.92, 19.06},
	{"rnn-relu", "train", [4]int{2560, 64, 50, 1}, "bf16", 1.134, 0},
	{"rnn-relu", "train", [4]int{2560, 128, 50, 1}, "bf16", 1.5, 2.137},
	{"lstm", "train", [4]int{2720, 70, 59, 1}, "fp16", 4.49, 4.702},
	{"gru", "train", [4]int{2816, 32, 1500, 1}, "bf16", 63.46, 45.98},
	{"lstm", "train", [4]int{3286, 24, 72, 1}, "bf16", 10.05, 6.514},
	{"lstm", "train", [4]int{4096, 16, 25, 1}, "bf16", 2.774, 3.832},
	{"lstm", "train", [4]int{4096, 32, 25, 1}, "bf16", 3.048, 4.475},
	{"lstm", "train", [4]int{4096, 64, 25, 1}, "bf16", 3.771, 5.679},
	{"lstm", "train", [4]int{4096, 128, 25, 1}, "bf16", 5.126, 11.48},
}

// TestPredictedLarge: predictions for large 16-bit layers are near the measured times, and choices by
// these predictions are near the fastest.
func TestPredictedLarge(t *testing.T) {
	d := h200(t)
	o := oracle(d)
	var perStep, persistent, regret []float64
	for i, m := range large16 {
		if testing.Short() && i%3 != 0 {
			continue
		}
		p := point(m.cell, m.size[0], m.size[1], m.size[2], m.precision)
		p.Pass, p.Layers = m.pass, m.size[3]
		took := map[string]float64{"cudnnstyle": m.cudnnstyle, "persistent": m.persistent}
		for name, ms := range took {
			l, err := tuner.Adapt(d, impl.Own(), p, grid.Spec{Name: name}, 0)
			if err != nil || l.Reason != "" {
				t.Fatalf("%v: %s declines: %v, %v", p, name, l.Reason, err)
			}
			knobs := knob.Params{"graph": 1}
			for k, v := range l.DeviceKnobs {
				knobs[k] = v
			}
			found, err := d.(device.Predictor).Predict(l.Schedule, knobs)
			if err != nil {
				t.Fatal(err)
			}
			if ms == 0 {
				continue
			}
			e := math.Abs(math.Log(1e3 * found.Seconds / ms))
			if name == "cudnnstyle" {
				perStep = append(perStep, e)
			} else {
				persistent = append(persistent, e)
			}
		}
		if m.persistent == 0 {
			continue
		}
		s, err := o.Decide(p, grid.Spec{Name: auto.Name})
		if err != nil {
			t.Fatal(err)
		}
		r := took[s.Name] / min(m.cudnnstyle, m.persistent)
		regret = append(regret, math.Log(r))
		if !(r <= 1.10) {
			t.Errorf("%s %s %v %s: auto is %s, which took %.2f times as long as the fastest", m.cell, m.pass, m.size, m.precision, s.Name, r)
		}
	}
	check(t, "cudnnstyle", perStep, 0.08, 0.2)
	check(t, "persistent", persistent, 0.15, 0.35)
	mean := 0.0
	for _, r := range regret {
		mean += r / float64(len(regret))
	}
	if mean = math.Exp(mean); mean > 1.01 {
		t.Errorf("choices take %.3f times as long as the fastest", mean)
	}
}

// check bounds the median and the 90th percentile of errors, which are logs of predicted over measured.
func check(t *testing.T, what string, errs []float64, median, most float64) {
	t.Helper()
	slices.Sort(errs)
	half, nine := errs[len(errs)/2], errs[len(errs)*9/10]
	text := fmt.Sprintf("%s: half of %d layers are predicted to %.3f, and nine in ten to %.3f", what, len(errs), half, nine)
	t.Log(text)
	if half > median || nine > most {
		t.Errorf("%s; want %.3f and %.3f", text, median, most)
	}
}
