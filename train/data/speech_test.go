package data_test

import (
	"strings"
	"testing"

	"rnnbench/train/data"
	"rnnbench/train/data/speech"
)

// TestOpenSpeech: options reach the task, and held-out data are others.
func TestOpenSpeech(t *testing.T) {
	o := data.Options{Batch: 2, Steps: 40, Seed: 7}
	spec := "speech:phonemes=2:hop=18:bands=13:utterances=30"
	frames := func(o data.Options) float32 {
		task, err := data.OpenSpeech(spec, o)
		if err != nil {
			t.Fatal(err)
		}
		m := speech.Minibatch{Frames: make([]float32, 40*2*13)}
		if err := task.Next(&m); err != nil || task.Epoch() != 30 || task.Bands != 13 || len(m.Labels) != 2 || len(m.Labels[0]) > 2 {
			t.Errorf("%d utterances, %d bands, labels %v, %v", task.Epoch(), task.Bands, m.Labels, err)
		}
		return m.Frames[0]
	}
	held := o
	held.Held = true
	if a, b, c := frames(o), frames(o), frames(held); a != b || a == c {
		t.Errorf("the first values are %g, again %g, and %g of held-out data", a, b, c)
	}
	for spec, want := range map[string]string{
		"speech:phonemes=9": "whole number from 1 to 8", "speech:hop=19": "whole number", "speech:bands=81": "from 1 to 80", "speech:utterances=0": "whole number",
		"speech": "set steps to", "speech:/nowhere": "there is no folder /nowhere", "speech:alphabet=aba:dir=/nowhere": "twice", "speech:alphabet=:dir=/nowhere": "no letters",
		"speech:phonemes=2:phonemes=2": "twice",
	} {
		if _, err := data.OpenSpeech(spec, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
	if _, err := data.OpenSpeech("speech", data.Options{Batch: 1 << 20, Steps: 1 << 20}); err == nil {
		t.Error("too large a batch is accepted")
	}
}
