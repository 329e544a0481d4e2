package layer_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"rnnbench/device"
	"rnnbench/layer"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// TestChainedPlans: a sequence in two plans, with states passed on and their gradients passed back,
// has the answer and the gradients of the whole sequence in one plan.
func TestChainedPlans(t *testing.T) {
	d := open(t)
	for _, description := range []string{
		"cell=lstm,input=5,hidden=7,layers=3", "cell=gru,input=9,hidden=18,layers=2", "cell=slstm,input=4,hidden=8", "cell=lstm-peephole,input=6,hidden=17",
		"cell=sru,input=6,hidden=6,layers=2", "cell=mingru,input=6,hidden=9,layers=2", "cell=rnn-relu,input=4,hidden=8,layers=2",
	} {
		for _, technique := range []string{"auto", "naive", "cudnnstyle", "persistent", "persistent:streams=4", "scan"} {
			chain(t, d, description, technique)
		}
	}
}

func chain(t *testing.T, d *layer.Device, description, technique string) {
	t.Helper()
	const batch, first, second = 3, 4, 3
	l, err := d.NewLayer(description)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	plan := func(steps int) *host {
		p, err := l.Plan(layer.Request{Batch: batch, Steps: steps, Pass: "train", Technique: technique})
		if errors.Is(err, schedule.ErrUnsupported) && technique != "auto" {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		return hosted(t, p)
	}
	whole, one, two := plan(first+second), plan(first), plan(second)
	if whole == nil {
		return
	}
	draw(whole, one, two)
	if err := whole.plan.Forward(0); err != nil {
		t.Fatal(err)
	}
	if err := one.plan.Forward(0); err != nil {
		t.Fatal(err)
	}
	share := func(from *host, source string, to *host, target string) {
		to.tensors[target] = from.tensors[source]
		if err := to.plan.Bind(target, unsafe.Pointer(&to.tensors[target][0]), device.Float32); err != nil {
			t.Fatal(err)
		}
	}
	var states []string
	for _, s := range whole.slots {
		if name, ok := strings.CutSuffix(s.Name, "_0"); ok && s.Kind == rnn.ForwardGiven {
			states = append(states, name)
		}
	}
	for _, s := range states {
		share(one, s+"_n", two, s+"_0")
		share(two, "grad_"+s+"_0", one, "grad_"+s+"_n")
	}
	two.run(t)
	for _, h := range []*host{whole, one} {
		if err := h.plan.Backward(0); err != nil {
			t.Fatal(err)
		}
	}
	compareChain(t, description+", "+technique, whole, one, two, states)
}

// draw draws the tensors of the whole sequence, and deals them to the plans of its parts.
func draw(whole, one, two *host) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range whole.slots {
		for i := range whole.tensors[s.Name] {
			whole.tensors[s.Name][i] = float32(rng.NormFloat64()) / 2
			if s.Name == "n_0" { // sLSTM divides by it
				whole.tensors[s.Name][i] = 1 + rng.Float32()
			}
		}
	}
	for name, v := range whole.tensors {
		switch name {
		case "input", "grad_output": // step by step
			n := copy(one.tensors[name], v)
			copy(two.tensors[name], v[n:])
		default:
			copy(one.tensors[name], v)
			copy(two.tensors[name], v)
		}
	}
}

// compareChain compares the answers of the parts with those of the whole.
func compareChain(t *testing.T, what string, whole, one, two *host, states []string) {
	t.Helper()
	check := func(name string, got, want []float32) {
		t.Helper()
		wide := make([]float64, len(want))
		for i, x := range want {
			wide[i] = float64(x)
		}
		if err := near(got, wide); err != nil {
			t.Errorf("%s: %s: %v", what, name, err)
		}
	}
	check("output", slices.Concat(one.tensors["output"], two.tensors["output"]), whole.tensors["output"])
	check("grad_input", slices.Concat(one.tensors["grad_input"], two.tensors["grad_input"]), whole.tensors["grad_input"])
	for _, s := range states {
		check(s+"_n", two.tensors[s+"_n"], whole.tensors[s+"_n"])
		check("grad_"+s+"_0", one.tensors["grad_"+s+"_0"], whole.tensors["grad_"+s+"_0"])
	}
	for _, name := range []string{"grad_weight_ih_l0", "grad_weight_hh_l0", "grad_bias_ih_l0", "grad_weight_ih_l1", "grad_bias_hh_l1", "grad_peephole_l0"} {
		if _, ok := whole.tensors[name]; !ok {
			continue
		}
		sum := slices.Clone(one.tensors[name])
		for i, x := range two.tensors[name] {
			sum[i] += x
		}
		check(name, sum, whole.tensors[name])
	}
}
