package main

import (
	"encoding/json"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/tuner/advise"
)

// TestAdvise: advice on a model's file has a row for each shape of its layers, and the lines that use it.
func TestAdvise(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("RNNBENCH_WISDOM", "wisdom.toml")
	modelFile(t, "m.safetensors",
		"enc.rnn.weight_ih_l0", 12, 5, "enc.rnn.weight_hh_l0", 12, 4, "dec.weight_ih_l0", 12, 5, "dec.weight_hh_l0", 12, 4,
		"top.weight_ih_l0", 16, 4, "top.weight_hh_l0", 16, 4)
	const quick = " --effort quick --rounds 2 --max-rounds 2 --min-time 100us --warmup 0s"
	o := rnnbench(t, "advise --model m.safetensors -o json"+quick)
	o.want(t, exit.Done, nil, nil)
	var all []advise.Advice
	if err := json.Unmarshal([]byte(o.out), &all); err != nil || len(all) != 2 {
		t.Fatalf("%v: %s", err, o.out)
	}
	for _, a := range all {
		if a.Best == nil || a.Best.Seconds <= 0 || a.Point.Batch != 1 || a.Point.Steps != 1 || a.Memory <= 0 {
			t.Errorf("%+v", a)
		}
	}
	o = rnnbench(t, "advise --model m.safetensors --layer top -B 2 -T 3 -o markdown"+quick)
	o.want(t, exit.Done, []string{"top: lstm 4→4", "model.top = LSTM.from_torch(model.top)", "Neither PyTorch nor ONNX Runtime was found"}, nil)
	if strings.Contains(o.out, "gru") {
		t.Errorf("a layer that was not named is in\n%s", o.out)
	}
	for words, want := range map[string]string{
		"advise":                    "name a model's file with --model FILE",
		"advise --model nothing.pt": "no such file",
		"advise --model m.safetensors --layer to": "did you mean top?",
		"advise --model m.safetensors -H 5":       "--hidden has no effect, because every layer of --model sets hidden",
		"sweep --layer top":                       "--layer names a layer of a model: add --model FILE",
	} {
		rnnbench(t, words).want(t, exit.Usage, nil, []string{want})
	}
}

// TestSweepModel: a sweep of a model has a row for each of its layers, and its run is resumed with the same
// weights.
func TestSweepModel(t *testing.T) {
	t.Chdir(t.TempDir())
	modelFile(t, "m.safetensors", "a.weight_ih_l0", 12, 5, "a.weight_hh_l0", 12, 4, "b.weight_ih_l0", 12, 5, "b.weight_hh_l0", 12, 4)
	const words = "sweep --model m.safetensors -B 1,2 -T 2 --impl naive --effort quick --rounds 2 --max-rounds 2 --min-time 100us --warmup 0s --out o"
	rnnbench(t, words).want(t, exit.Done, []string{"m:a", "m:b"}, nil)
	rnnbench(t, "sweep --resume o").want(t, exit.Done, []string{"m:a", "m:b"}, nil)
	modelFile(t, "m.safetensors", "a.weight_ih_l0", 12, 6, "a.weight_hh_l0", 12, 4)
	rnnbench(t, "sweep --resume o").want(t, exit.Usage, nil, []string{"plan"})
}
