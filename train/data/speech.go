package data

import (
	"fmt"
	"strings"

	"rnnbench/train/data/speech"
)

// speechKind is no task of Open, since its loss is one of whole sequences.
var speechKind = kind{
	name:  "speech",
	usual: "utterances=10000:phonemes=8:bands=40:hop=10",
	doc:   "the letters of generated utterances",
}

// OpenSpeech returns the task that spec names, such as speech:phonemes=3. Hop is the milliseconds from
// frame to frame.
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
	utterances, err := s.whole("utterances", 1, 1<<30)
	if err != nil {
		return nil, err
	}
	most, err := s.whole("phonemes", 1, 8)
	if err != nil {
		return nil, err
	}
	bands, err := s.whole("bands", 1, speech.MostBands)
	if err != nil {
		return nil, err
	}
	hop, err := s.whole("hop", 5, 18) // a short phoneme has two frames at least, since CTC may need as many
	if err != nil {
		return nil, err
	}
	c := speech.Generated{Seed: o.Seed, Utterances: utterances, Phonemes: most, Held: o.Held}
	return speech.NewTask(c, speech.Options{
		Spectrogram: speech.Spectrogram{Bands: bands, Hop: float64(hop) / 1000}, Batch: o.Batch, Steps: o.Steps, Seed: o.Seed,
	})
}
