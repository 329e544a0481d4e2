package speech

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// options make 10 ms frames of 40 bands.
func options(batch, steps int) Options {
	return Options{Spectrogram: Spectrogram{Bands: 40, Hop: 0.01}, Batch: batch, Steps: steps, Seed: 3}
}

func newTask(t *testing.T, c Corpus, o Options) *Task {
	t.Helper()
	task, err := NewTask(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func next(t *testing.T, task *Task) *Minibatch {
	t.Helper()
	m := &Minibatch{Frames: slices.Repeat([]float32{7}, task.Steps*task.Batch*task.Bands)}
	if err := task.Next(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMinibatches: frames lie before each utterance's length and zeros after it. Labels are letters,
// and an epoch has every utterance once. Equal seeds give equal minibatches, and a task continues
// from its position.
func TestMinibatches(t *testing.T) {
	g := Generated{Seed: 5, Utterances: 12, Phonemes: 4}
	o := options(3, 120)
	task, same := newTask(t, g, o), newTask(t, g, o)
	var states [][]byte
	var all []*Minibatch
	seen := map[string]int{}
	for range 8 { // two epochs
		states = append(states, task.State())
		m := next(t, task)
		if all = append(all, m); !reflect.DeepEqual(m, next(t, same)) {
			t.Fatal("the same seed gives other data")
		}
		for b, length := range m.Lengths {
			if n := len(m.Labels[b]); n < 1 || n > 4 || slices.Min(m.Labels[b]) < 1 || slices.Max(m.Labels[b]) >= task.Classes() || length < n {
				t.Errorf("%d frames have labels %v of %d", length, m.Labels[b], task.Classes())
			}
			for step := range o.Steps {
				row := m.Frames[(step*o.Batch+b)*o.Bands:][:o.Bands]
				if silent := !slices.ContainsFunc(row, func(v float32) bool { return v != 0 }); silent != (step >= length) {
					t.Fatalf("step %d of an utterance of %d frames is %v", step, length, row)
				}
			}
			seen[fmt.Sprint(m.Labels[b], length, m.Frames[b*o.Bands])]++
		}
	}
	for u, n := range seen {
		if n != 2 || len(seen) != 12 {
			t.Errorf("of %d utterances in two epochs, one comes %d times: %s", len(seen), n, u)
		}
	}
	for _, i := range []int{7, 0, 4} {
		if err := task.Restore(states[i]); err != nil || !reflect.DeepEqual(next(t, task), all[i]) {
			t.Errorf("from position %d on the data are others: %v", i, err)
		}
	}
	if err := task.Restore([]byte{1}); err == nil {
		t.Error("a position of one byte is accepted")
	}
}

// TestTaskRefuses: too few steps for the longest utterance are refused, with the number it takes.
func TestTaskRefuses(t *testing.T) {
	g := Generated{Utterances: 400, Phonemes: 3}
	_, err := NewTask(g, options(1, 10))
	if err == nil || !strings.Contains(err.Error(), "set steps to 90, or raise hop") {
		t.Fatal(err)
	}
	task := newTask(t, g, options(400, 90))
	if longest := slices.Max(next(t, task).Lengths); longest > 90 || longest < 60 {
		t.Errorf("of up to 90 frames, the longest utterance has %d", longest)
	}
}
