package data

import (
	"rnnbench/train/data/speech"
)

// utterances is a task whose loss is that of CTC. A row of the target has the frames of an utterance and
// the classes of its letters.
type utterances struct {
	task  *speech.Task
	batch speech.Minibatch
	err   error
}

// openSpeech opens recordings or generated speech. Hop is the milliseconds from frame to frame.
// Generated utterances have letters of their own.
func openSpeech(s settings, o Options) (Source, error) {
	bands, err := s.whole("bands", 1, speech.MostBands)
	if err != nil {
		return nil, err
	}
	hop, err := s.whole("hop", 5, 18) // a short phoneme has two frames at least, since CTC may need as many
	if err != nil {
		return nil, err
	}
	c, err := corpus(s, o)
	if err != nil {
		return nil, err
	}
	task, err := speech.NewTask(c, speech.Options{
		Spectrogram: speech.Spectrogram{Bands: bands, Hop: float64(hop) / 1000}, Batch: o.Batch, Steps: o.Steps, Seed: o.Seed,
	})
	if err != nil {
		return nil, err
	}
	return &utterances{task: task}, nil
}

// corpus opens a folder or, without one, generates speech.
func corpus(s settings, o Options) (speech.Corpus, error) {
	if s["dir"] != "" {
		alphabet := speech.Alphabet(s["alphabet"])
		if err := alphabet.Check(); err != nil {
			return nil, err
		}
		return speech.OpenFolder(s["dir"], alphabet, o.Held)
	}
	utterances, err := s.whole("utterances", 1, 1<<30)
	if err != nil {
		return nil, err
	}
	most, err := s.whole("phonemes", 1, 8)
	return speech.Generated{Seed: o.Seed, Utterances: utterances, Phonemes: most, Held: o.Held}, err
}

// Shape implements Source.
func (u *utterances) Shape() Shape {
	return Shape{Input: u.task.Bands, Output: u.task.Classes(), Transcript: u.task.Longest()}
}

// Next implements Source.
func (u *utterances) Next(x, target []float32) {
	u.batch.Frames = x
	if u.err = u.task.Next(&u.batch); u.err != nil {
		return
	}
	clear(target)
	cols := 1 + u.task.Longest()
	for b, labels := range u.batch.Labels {
		row := target[b*cols:][:cols]
		row[0] = float32(u.batch.Lengths[b])
		for i, class := range labels {
			row[1+i] = float32(class)
		}
	}
}

// Err implements Reader.
func (u *utterances) Err() error { return u.err }

// State implements Source.
func (u *utterances) State() []byte { return u.task.State() }

// Restore implements Source.
func (u *utterances) Restore(state []byte) error { return u.task.Restore(state) }
