package data

import (
	"fmt"
	"strings"

	"rnnbench/train/data/speech"
)

// speechKind is no task of Open, since its loss is one of whole sequences.
var speechKind = kind{
	name:  "speech",
	usual: "dir=:utterances=10000:phonemes=8:alphabet=" + string(speech.English) + ":bands=40:hop=10",
	path:  "dir",
	doc:   "the letters of utterances: recordings NAME.wav of a folder with transcripts NAME.txt, or generated ones",
}

// OpenSpeech returns the task that spec names, such as speech:phonemes=3 or speech:DIR. Hop is the
// milliseconds from frame to frame. Generated utterances have letters of their own.
func OpenSpeech(spec string, o Options) (*speech.Task, error) {
	s, err := speechKind.read(strings.TrimPrefix(strings.TrimPrefix(spec, speechKind.name), ":"))
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	task, err := openSpeech(s, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", speechKind.name, err)
	}
	return task, nil
}

func openSpeech(s settings, o Options) (*speech.Task, error) {
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
	return speech.NewTask(c, speech.Options{
		Spectrogram: speech.Spectrogram{Bands: bands, Hop: float64(hop) / 1000}, Batch: o.Batch, Steps: o.Steps, Seed: o.Seed,
	})
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
