// Package data provides tasks that networks are trained on. All are seeded: the same task, options
// and seed give the same minibatches on any machine. Without a file, text is that of the installed
// Go, so it depends on the version of Go.
package data

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"rnnbench/train/data/speech"
)

// A Source yields minibatches of a task without end. It is for one goroutine.
type Source interface {
	// Shape is what the task asks of a network.
	Shape() Shape

	// Next fills x, steps·batch × features or, where one-hot, symbols, and target, steps·batch × 1
	// classes. Row t·batch+b belongs to step t of sequence b. With an embedding, a row of x is a
	// symbol, then features. Where Weighted, a step with a class below 0 does not count. With
	// transcripts, row b of target has the steps of sequence b, the classes of its labels, and zeros
	// behind them.
	Next(x, target []float32)

	// State is the position after the last Next, for a checkpoint. Restore returns to it, in a
	// source opened with the same spec and options. Both are exact.
	State() []byte
	Restore(state []byte) error
}

// A Preparer is a source with work to do once. Without Prepare, Next does it when it is needed.
type Preparer interface {
	Prepare() error
}

// A Reader is a source that reads files as it goes. Err is what went wrong in the last Next, whose
// values then mean nothing.
type Reader interface {
	Err() error
}

// A Shape is what a task asks of a network.
type Shape struct {
	Input      int  // features a step, or symbols where OneHot
	OneHot     bool // the input is one symbol a step
	Output     int  // classes
	Symbols    int  // rows of an embedding, which gives the first Embedding of Input; 0: none
	Embedding  int
	Groups     int  // groups of classes, each with a softmax of its own; 0: one
	Weighted   bool // some steps do not count; the loss is the mean over the others
	Transcript int  // labels of a sequence, at most; the loss is that of CTC, whose blank is class 0; 0: none

	Continues bool // each minibatch continues the one before, so states are carried over
}

// Given is the number of values of x for each step of a sequence.
func (s Shape) Given() int {
	switch {
	case s.OneHot:
		return 1
	case s.Symbols > 0:
		return 1 + s.Input - s.Embedding
	}
	return s.Input
}

// Targets is the number of values of target for so many sequences.
func (s Shape) Targets(batch, steps int) int {
	if s.Transcript > 0 {
		return batch * (1 + s.Transcript)
	}
	return batch * steps
}

// Options are what a source is opened for.
type Options struct {
	Batch, Steps int
	Seed         uint64
	Held         bool // the held-out part, which is not trained on
}

// check reports sizes that no task can have.
func (o Options) check() error {
	switch {
	case o.Batch < 1 || o.Steps < 1:
		return fmt.Errorf("a batch of %d sequences of %d steps: both must be at least 1", o.Batch, o.Steps)
	case o.Batch > mostRows || o.Steps > mostRows/o.Batch:
		return fmt.Errorf("a batch of %d sequences of %d steps: together they must be at most %d", o.Batch, o.Steps, mostRows)
	}
	return nil
}

// A kind is one of the tasks.
type kind struct {
	name  string
	usual string // its options with their defaults
	path  string // the option that may be given without its name; empty: none
	doc   string
	open  func(s settings, o Options) (Source, error)
}

func kinds() []kind {
	return []kind{
		{"copy", "delay=10:length=10:symbols=8", "", "remember symbols over a delay, then repeat them (Hochreiter & Schmidhuber 1997; Arjovsky et al. 2016)", openCopy},
		{"adding", "classes=20", "", "add two marked values; the class is an interval of the sum (Hochreiter & Schmidhuber 1997)", openAdding},
		{"text", "file=:vocabulary=255:classes=0:shuffle=0", "file", "the next character of a text; without a file, of Go's documentation and sources", openText},
		{"words", "file=:vocabulary=10000:classes=0:shuffle=0", "file", "the next word of a text; without a file, of Go's documentation and sources", openWords},
		{"events", "ahead=50:burnin=30:dimension=40:recordings=2000:threshold=16", "", "the pixel of a later event, from a simulated event camera that pans over digits", openEvents},
		{"n-mnist", "dir=:ahead=50:burnin=30:dimension=40:recordings=2000", "dir", "the same from real N-MNIST recordings, in the folders Train and Test (Orchard et al. 2015)", openNMNIST},
		{"speech", "dir=:utterances=10000:phonemes=8:alphabet=" + string(speech.English) + ":bands=40:hop=10", "dir", "the letters of utterances: recordings NAME.wav of a folder with transcripts NAME.txt, or generated ones", openSpeech},
		{"echo", "symbols=3", "", "the symbol of the step before: a task for tests", openEcho},
	}
}

// Names returns a line of help for each task, with its options and their defaults.
func Names() []string {
	var lines []string
	for _, k := range kinds() {
		lines = append(lines, fmt.Sprintf("%s:%s  %s", k.name, k.usual, k.doc))
	}
	return lines
}

// settings are the options of a task as spelled.
type settings map[string]string

// whole reads a whole number from least to most.
func (s settings) whole(key string, least, most int) (int, error) {
	n, err := strconv.Atoi(s[key])
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q: it must be a whole number from %d to %d", key, s[key], least, most)
	}
	return n, nil
}

// mostRows bounds the steps of all sequences of a minibatch.
const mostRows = 1 << 30

// Open returns the source that spec names, such as copy:delay=20, text:book.txt or
// words:book.txt:vocabulary=500.
func Open(spec string, o Options) (Source, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	k, s, err := parse(spec)
	if err != nil {
		return nil, err
	}
	source, err := k.open(s, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.name, err)
	}
	return source, nil
}

// Check reports whether spec names a task and options that it has, without opening its files.
func Check(spec string) error {
	_, _, err := parse(spec)
	return err
}

// parse reads a spec.
func parse(spec string) (kind, settings, error) {
	name, rest, _ := strings.Cut(spec, ":")
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
	if i < 0 {
		var names []string
		for _, k := range all {
			names = append(names, k.name)
		}
		if info, err := os.Stat(spec); err == nil && info.Mode().IsRegular() {
			return kind{}, nil, fmt.Errorf("there is no task %q, which is a file: write text:%s to learn its characters, or words:%s", name, spec, spec)
		}
		return kind{}, nil, fmt.Errorf("there is no task %q: choose one of %s", name, strings.Join(names, ", "))
	}
	s, err := all[i].read(rest)
	return all[i], s, err
}

// read reads the options that follow a task's name. Parts that name no option belong to the path.
func (k kind) read(spec string) (settings, error) {
	s, set := settings{}, map[string]bool{}
	for part := range strings.SplitSeq(k.usual, ":") {
		key, value, _ := strings.Cut(part, "=")
		s[key] = value
	}
	if spec == "" {
		return s, nil
	}
	var path []string
	for part := range strings.SplitSeq(spec, ":") {
		key, value, ok := strings.Cut(part, "=")
		if _, known := s[key]; known && ok {
			if set[key] {
				return nil, fmt.Errorf("%s: option %s is set twice", k.name, key)
			}
			s[key], set[key] = value, true
			continue
		}
		if k.path == "" {
			return nil, fmt.Errorf("%s has no option %q: write it as %s:%s", k.name, part, k.name, k.usual)
		}
		path = append(path, part)
	}
	if path != nil {
		if set[k.path] {
			return nil, fmt.Errorf("%s: option %s is set twice", k.name, k.path)
		}
		s[k.path] = strings.Join(path, ":")
	}
	return s, nil
}
