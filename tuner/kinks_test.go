package tuner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// significand is how many bits the values of a precision have.
var significand = map[string]int{"bf16": 8, "fp16": 11, "fp32": 24}

// relu is a point of rnn-relu that is checked whole.
func relu(precision string, layers int) record.Point {
	return record.Point{Cell: "rnn-relu", Pass: "train", Hidden: 32, Input: 32, Batch: 2, Steps: 40, Layers: layers, Precision: precision}
}

// checked returns the records of techniques at a point.
func checked(t *testing.T, d *library, p record.Point, techniques ...string) []record.Record {
	t.Helper()
	d.Device, d.bits = open(t), significand[p.Precision]
	recs, err := sweep(t, once(&tuner.Sweep{Device: d}), context.Background(), []record.Point{p}, specs(t, techniques...))
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// TestLibraryAtKinks: a library that stores states in 16 bits has other gradients than the reference at kinks, even in
// layers whose states it does not show. Its answer is right, and the record counts those units.
func TestLibraryAtKinks(t *testing.T) {
	other := 0
	for _, precision := range []string{"fp32", "bf16", "fp16"} {
		for layers := 1; layers <= 3; layers++ {
			p := relu(precision, layers)
			r := checked(t, &library{}, p, "cudnn")[0]
			if r.Status != record.OK {
				t.Errorf("%v: %s, %s, %+v", p, r.Status, *r.Reason, r.Verify)
				continue
			}
			k := r.Verify.Kinks
			if k == nil || k.Units != layers*32*2*40 || k.Other > k.Near || k.Near*20 > k.Units || precision != "fp32" && k.Near == 0 {
				t.Errorf("%v: %+v", p, k)
				continue
			}
			t.Logf("%v: %v", p, k)
			other += k.Other
		}
	}
	if other < 10 {
		t.Errorf("the other gradient was granted at %d units alone", other)
	}
}

// TestGatesBesideStates: where a library's gates do not follow from the states that it shows, they are right within
// rounding of 0 and wrong beyond.
func TestGatesBesideStates(t *testing.T) {
	for from, want := range map[float64]record.Status{0x1p-9: record.OK, 0x1p-2: record.Incorrect} {
		p, closed := relu("bf16", 1), 0
		r := checked(t, &library{open: func(at unitAt) bool {
			if at.stored > 0 && at.input < from {
				closed++
			}
			return at.input >= from
		}}, p, "cudnn")[0]
		if r.Status != want || closed == 0 || want == record.OK && r.Verify.Kinks.Other == 0 {
			t.Errorf("open from %v on: %s, %+v, %d closed", from, r.Status, r.Verify, closed)
		}
	}
}

// TestLibraryOverFewerSteps: if the problem is too large for the reference, the library may differ from its peer. Then it
// is verified over fewer steps.
func TestLibraryOverFewerSteps(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 1e6)
	p, fewer := relu("fp16", 3), 0
	for seed := range uint64(6) {
		s := once(&tuner.Sweep{Device: &library{Device: open(t), bits: significand[p.Precision]}})
		s.Settings.Seed = seed
		recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "cudnn"))
		if err != nil {
			t.Fatal(err)
		}
		v := recs[0].Verify
		if recs[0].Status != record.OK {
			t.Errorf("seed %d: %+v", seed, v)
		}
		if v.Method == record.VerifyShorter {
			if fewer++; v.Steps >= p.Steps || v.Kinks == nil || v.Kinks.Units != 3*32*2*v.Steps {
				t.Errorf("seed %d: %+v", seed, v)
			}
		}
	}
	if fewer == 0 {
		t.Error("no run differs from its peer")
	}
}

// TestEqualDepth: at a large problem with kinks, the states of every technique are compared at all steps, and
// the gradients of every technique over the same fewer steps, whatever else is checked of some. A library whose
// states are wrong at a late step alone is found out.
func TestEqualDepth(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 2e6) // a stepwise check of all steps, and no whole one
	p, parted := relu("fp16", 3), 0
	for seed := range uint64(6) {
		for _, late := range []bool{false, true} {
			d := &library{Device: open(t), bits: significand[p.Precision]}
			if late {
				d.spoil = map[string]func([]float32){"y": func(v []float32) { v[len(v)-1] += 1 }}
			}
			s := once(&tuner.Sweep{Device: d})
			s.Settings.Seed = seed
			recs, err := sweep(t, s, context.Background(), []record.Point{p}, specs(t, "persistent", "cudnnstyle", "cudnn"))
			if err != nil {
				t.Fatal(err)
			}
			fewer := -1
			for _, r := range recs {
				v := r.Verify
				if late && r.Impl.Name == "cudnn" {
					if r.Status != record.Incorrect {
						t.Errorf("seed %d: states that are wrong at the last step pass: %+v", seed, v)
					}
					continue
				}
				if r.Status != record.OK {
					t.Fatalf("seed %d: %s: %s, %+v", seed, r.Impl.Label, r.Status, v)
				}
				states, gradients := v.Steps, v.Shorter
				if v.Method == record.VerifyShorter {
					states, gradients = v.States, v.Steps
					parted++
				}
				if states != p.Steps || gradients == 0 || fewer >= 0 && gradients != fewer {
					t.Errorf("seed %d: %s: states over %d steps, gradients over %d: %+v", seed, r.Impl.Label, states, gradients, v)
				}
				fewer = gradients
				if part := v.Method == record.VerifyShorter; part != slices.Contains(r.Warnings, record.WarnPart) {
					t.Errorf("seed %d: %s: %s has the warnings %v", seed, r.Impl.Label, v.Method, r.Warnings)
				}
			}
		}
	}
	if parted == 0 {
		t.Error("the gradients of no technique were checked over fewer steps alone")
	}
}

// TestLibraryWithFaults plants faults beside kinks: a wrong gate away from 0, and gradients off by a hundredth.
func TestLibraryWithFaults(t *testing.T) {
	scaled := func(v []float32) {
		for i := range v {
			v[i] *= 1.01
		}
	}
	for _, name := range []string{"dW0", "dW2", "dR0", "dR1", "dR2", "dbx0", "dbr1", "dx", "dh0"} {
		r := checked(t, &library{spoil: map[string]func([]float32){name: scaled}}, relu("fp32", 3), "cudnn")[0]
		if r.Status != record.Incorrect {
			t.Errorf("%s scaled by 1.01: %s, %+v", name, r.Status, r.Verify)
		}
	}
	for layer := range 3 {
		for _, precision := range []string{"fp32", "bf16", "fp16"} {
			wrong := 0
			r := checked(t, &library{open: func(at unitAt) bool {
				if at.layer == layer && at.unit == 5 && at.input > 0.2 {
					wrong++
					return false
				}
				return at.stored > 0
			}}, relu(precision, 3), "cudnn")[0]
			if r.Status != record.Incorrect || wrong == 0 {
				t.Errorf("%s: a unit of layer %d without %d of its gradients: %s, %+v", precision, layer, wrong, r.Status, r.Verify)
			} else if precision == "bf16" && !strings.Contains(*r.Reason, "ReLU inputs") {
				t.Errorf("the reason tells of no kinks: %s", *r.Reason)
			}
		}
	}
}

// TestManyKinks: of a deep network with normalised products many units are near the kink. Techniques that show the
// states of all layers are right, and gradients that are off by more than their tolerance are wrong.
func TestManyKinks(t *testing.T) {
	p := relu("bf16", 4)
	p.Batch, p.Steps, p.Output, p.Skip, p.Norm = 3, 20, 15, 2, "batch"
	run := func(spoil string) []record.Record {
		d := watched{open(t), func(name string, v []float32) {
			for i := range v {
				if name == spoil {
					v[i] *= 1.3
				}
			}
		}}
		recs, err := sweep(t, once(&tuner.Sweep{Device: d}), context.Background(), []record.Point{p}, specs(t, "cudnnstyle", "persistent"))
		if err != nil {
			t.Fatal(err)
		}
		return recs
	}
	for _, spoil := range []string{"", "dW0", "dR1", "dR3", "dWout"} {
		for _, r := range run(spoil) {
			k := r.Verify.Kinks
			if (r.Status == record.OK) != (spoil == "") || k.Near*20 < k.Units || k.Shown != k.Near || k.Other == 0 {
				t.Errorf("%s with %q scaled: %s, %+v, %v", r.Impl.Label, spoil, r.Status, r.Verify, k)
			}
		}
	}
}

// TestKinksOfTechniques: units near the kink are counted for our own techniques too, checked whole or step by step. They
// are counted only in training and for cells with a kink.
func TestKinksOfTechniques(t *testing.T) {
	for _, flops := range []float64{1e12, 1e6} {
		tuner.SetReferenceFLOPs(t, flops)
		for _, precision := range []string{"fp32", "bf16"} {
			for _, technique := range []string{"naive", "cudnnstyle", "persistent", "scc"} {
				r := checked(t, &library{}, relu(precision, 2), technique)[0]
				if r.Status == record.Skipped {
					continue
				}
				v := r.Verify
				if r.Status != record.OK || v.Method != record.VerifyPeer && (v.Kinks == nil || v.Kinks.Units == 0 || precision == "bf16" && v.Kinks.Near == 0) {
					t.Errorf("%s %s: %s, %+v", technique, precision, r.Status, v)
				}
			}
		}
	}
	p := relu("fp32", 1)
	p.Pass = "forward"
	if v := checked(t, &library{}, p, "naive")[0].Verify; v.Kinks != nil {
		t.Errorf("forward: %+v", v.Kinks)
	}
	if v := checked(t, &library{}, small(), "naive")[0].Verify; v.Kinks != nil {
		t.Errorf("lstm: %+v", v.Kinks)
	}
}

// TestStepwiseGates: a state is wrongly 0, within the tolerance of states but beyond rounding. That does not make a
// gradient of 0 right.
func TestStepwiseGates(t *testing.T) {
	tuner.SetReferenceFLOPs(t, 2.3e7) // of 2.4e7: enough for all units of the last steps
	p := relu("bf16", 1)
	p.Hidden, p.Input, p.Batch = 128, 128, 3
	seen := map[string][]float32{}
	run := func(spoil func(name string, v []float32)) record.Record {
		recs, err := sweep(t, once(&tuner.Sweep{Device: watched{open(t), spoil}}), context.Background(), []record.Point{p}, specs(t, "cudnnstyle"))
		if err != nil {
			t.Fatal(err)
		}
		return recs[0]
	}
	if r := run(func(name string, v []float32) { seen[name] = append([]float32(nil), v...) }); r.Status != record.OK || r.Verify.Method != record.VerifyStepwise {
		t.Fatalf("%s, %+v", r.Status, r.Verify)
	}
	states, gradients := seen["h0"], seen["d(x·W)0"]
	at, least, most := -1, float32(0), slices.Max(gradients)
	for i := (p.Steps - 2) * p.Batch * p.Hidden; i < len(gradients); i++ { // enough to show here and nowhere else
		if h, g := states[p.Batch*p.Hidden+i], gradients[i]; h > 0.02 && h < 0.06 && g > most/5 && (at < 0 || g < least) {
			at, least = i, g
		}
	}
	if at < 0 {
		t.Fatal("there is no unit near 0 with a gradient")
	}
	r := run(func(name string, v []float32) {
		switch name {
		case "h0":
			v[p.Batch*p.Hidden+at] = 0
		case "d(x·W)0":
			v[at] = 0
		}
	})
	if r.Status != record.Incorrect || r.Verify.Tensor != "d(x·W)_l0" {
		t.Errorf("%s, %+v", r.Status, r.Verify)
	}
}

// A watched device passes what is read from its programs to a function that may change it.
type watched struct {
	device.Device
	see func(name string, values []float32)
}

type watchedProgram struct {
	device.Program
	see func(name string, values []float32)
}

func (d watched) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return watchedProgram{p, d.see}, err
}

func (p watchedProgram) Read(m *schedule.Matrix, dst []float32) error {
	err := p.Program.Read(m, dst)
	p.see(m.Name, dst)
	return err
}

// TestStepwiseTooManyKinks: where most units are at the kink, only the reference's gradients count, whatever the run's
// states say.
func TestStepwiseTooManyKinks(t *testing.T) {
	p := rnn.Problem{Cell: cell.RNNReLU, Pass: rnn.Train, Input: 3, Hidden: 20, Layers: 1, Batch: 2, Steps: 4}
	d := rnn.NewData(p, 1, 2, "zeros")
	clear(d.Get("h0_l0"))
	clear(d.Get("weight_hh_l0"))
	for u := range p.Hidden {
		d.Get("bias_ih_l0")[u], d.Get("bias_hh_l0")[u] = 0.5, -0.5
	}
	d.Get("bias_hh_l0")[0] = 0.5 // one unit sets the scale of the states
	plan, s, err := rnn.Layout(impl.Lookup("cudnnstyle"), p, knob.Params{})
	if err != nil {
		t.Fatal(err)
	}
	prog, err := watched{open(t), func(name string, v []float32) {
		if name == "h0" {
			for i := range v {
				v[i] = max(v[i], 1e-9)
			}
		}
	}}.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, d), prog.Prepare()); err != nil {
		t.Fatal(err)
	}
	if _, err := prog.Run(1); err != nil {
		t.Fatal(err)
	}
	got, _, err := oracle.ReadDistinct(plan, prog, d)
	if err != nil {
		t.Fatal(err)
	}
	dev, covered, err := oracle.Stepwise{FLOPs: 1e9}.Check(plan, prog, d, got)
	if k := covered.Kinks; err != nil || !dev.OK() || !k.TooMany() || k.Other != 0 {
		t.Errorf("%v, %+v, %v", dev, k, err)
	}
}
