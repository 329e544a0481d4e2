package data_test

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/train/data"
)

// TestSpeech: options reach the task, a row of the target is an utterance's frames and labels, and
// held-out data are others.
func TestSpeech(t *testing.T) {
	o := data.Options{Batch: 3, Steps: 40, Seed: 7}
	const spec = "speech:phonemes=2:hop=18:bands=13:utterances=30"
	s := open(t, spec, o)
	if want := (data.Shape{Input: 13, Output: 15, Transcript: 2}); s.Shape() != want {
		t.Errorf("%+v, want %+v", s.Shape(), want)
	}
	minibatch := func(s data.Source) (x, target []float32) {
		x, target = make([]float32, 40*3*13), make([]float32, s.Shape().Targets(3, 40))
		for i := range target {
			target[i] = 99 // must be overwritten
		}
		s.Next(x, target)
		return x, target
	}
	start := s.State()
	x, target := minibatch(s)
	for row := range slices.Chunk(target, 3) {
		frames, labels := int(row[0]), row[1:]
		if frames < 5 || frames > 40 || labels[0] < 1 || slices.Max(labels) > 14 || slices.Min(labels) < 0 {
			t.Errorf("%v is no utterance", row)
		}
	}
	if again, _ := minibatch(s); slices.Equal(again, x) {
		t.Error("two minibatches are the same")
	}
	if err := s.Restore(start); err != nil {
		t.Fatal(err)
	}
	if again, labels := minibatch(s); !slices.Equal(again, x) || !slices.Equal(labels, target) {
		t.Error("from its first position the data are others")
	}
	o.Held = true
	if held, _ := minibatch(open(t, spec, o)); slices.Equal(held, x) {
		t.Error("held-out data are those to train on")
	}
}

// TestSpeechRefuses: what no task can be is refused with the reason.
func TestSpeechRefuses(t *testing.T) {
	o := data.Options{Batch: 2, Steps: 40, Seed: 7}
	for spec, want := range map[string]string{
		"speech:phonemes=9": "whole number from 1 to 8", "speech:hop=19": "whole number", "speech:bands=81": "from 1 to 80", "speech:utterances=0": "whole number",
		"speech": "set steps to", "speech:/nowhere": "there is no folder /nowhere", "speech:alphabet=aba:dir=/nowhere": "twice", "speech:alphabet=:dir=/nowhere": "no letters",
		"speech:phonemes=2:phonemes=2": "twice",
	} {
		if _, err := data.Open(spec, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
}
