package speech

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnnbench/internal/input"
)

// A Folder is a corpus of recordings, each NAME.wav with its transcript NAME.txt beside it. Sound is read
// when it is needed.
type Folder struct {
	alphabet Alphabet
	all      []recording
	longest  int
}

// A recording is a file that was looked at.
type recording struct {
	path   string
	wave   wave
	text   string
	labels []int
}

// mostTranscript bounds a transcript's file, in bytes.
const mostTranscript = 1 << 20

// heldOut is the part of the recordings that is held out: one of so many, or the last of fewer.
const heldOut = 10

// OpenFolder looks at all recordings in dir and in the folders below, in the order of their paths. It
// returns those to train on, or the held-out ones. Transcripts are compared in lower case, with one space
// between words.
func OpenFolder(dir string, alphabet Alphabet, held bool) (*Folder, error) {
	paths, err := recordings(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{alphabet: alphabet}
	for i, path := range paths {
		one, err := look(path, alphabet)
		if err != nil {
			return nil, err
		}
		f.longest = max(f.longest, len(one.labels))
		if (i%heldOut == min(heldOut, len(paths))-1) == held {
			f.all = append(f.all, one)
		}
	}
	return f, nil
}

// recordings lists the WAV files below dir, at least two.
func recordings(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.EqualFold(filepath.Ext(path), ".wav") {
			paths = append(paths, path)
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder %s: name one with recordings NAME.wav and transcripts NAME.txt", dir)
	case err != nil:
		return nil, err
	case len(paths) < 2:
		return nil, fmt.Errorf("%s has %d recordings NAME.wav: there must be one to train on and one to hold out", dir, len(paths))
	}
	return paths, nil
}

// look checks a recording and its transcript.
func look(path string, alphabet Alphabet) (recording, error) {
	one := recording{path: path}
	err := one.opened(func(f *os.File) error {
		info, err := f.Stat()
		if err == nil {
			one.wave, err = readWAV(f, info.Size())
		}
		return err
	})
	if err != nil {
		return one, err
	}
	beside := strings.TrimSuffix(path, filepath.Ext(path)) + ".txt"
	text, err := input.ReadTextFile(beside, mostTranscript)
	if errors.Is(err, fs.ErrNotExist) {
		return one, fmt.Errorf("%s has no transcript %s beside it", path, filepath.Base(beside))
	}
	if err != nil {
		return one, err
	}
	if one.text = strings.Join(strings.Fields(strings.ToLower(string(text))), " "); one.text == "" {
		return one, fmt.Errorf("%s is empty: a transcript has one letter at least", beside)
	}
	if one.labels, err = alphabet.Labels(one.text); err != nil {
		return one, fmt.Errorf("%s: %w", beside, err)
	}
	return one, nil
}

// opened runs f on the recording's file. Errors name it.
func (r recording) opened(f func(*os.File) error) error {
	file, err := input.Open(r.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := f(file); err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return nil
}

// Len implements Corpus.
func (f *Folder) Len() int { return len(f.all) }

// Alphabet implements Corpus.
func (f *Folder) Alphabet() Alphabet { return f.alphabet }

// Longest implements Corpus.
func (f *Folder) Longest() int { return f.longest }

// Fits implements Corpus, by the longest recording first.
func (f *Folder) Fits(s Spectrogram, steps int) error {
	frames := func(r recording) int { return s.Frames(r.wave.samples(), r.wave.rate) }
	longest := f.all[0]
	for _, r := range f.all {
		if frames(r) > frames(longest) {
			longest = r
		}
	}
	errs := []error{s.fits(longest.path, frames(longest), nil, steps)}
	for _, r := range f.all {
		errs = append(errs, s.fits(r.path, frames(r), r.labels, steps))
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Utterance implements Corpus.
func (f *Folder) Utterance(i int) (Utterance, error) {
	r := f.all[i]
	u := Utterance{Rate: r.wave.rate, Text: r.text}
	err := r.opened(func(file *os.File) (err error) {
		u.Samples, err = r.wave.read(file)
		return err
	})
	return u, err
}
