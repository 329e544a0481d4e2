// Package data has tasks that networks are trained on. All are seeded: the same task, options
// and seed give the same minibatches on any machine.
package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A Source yields minibatches of a task without end. It is for one goroutine.
type Source interface {
	// Shape is what the task asks of a network.
	Shape() Shape

	// Next fills x, steps·batch × features or, where one-hot, symbols, and target, steps·batch ×
	// 1 classes. Row t·batch+b belongs to step t of sequence b.
	Next(x, target []float32)

	// State is where the source is after the last Next; Restore goes there, exactly.
	State() []byte
	Restore(state []byte) error
}

// A Shape is what a task asks of a network.
type Shape struct {
	Input     int  // features a step, or symbols where OneHot
	OneHot    bool // the input is one symbol a step
	Output    int  // classes
	Continues bool // each minibatch goes on where the one before ended, so that states are carried
}

// Options are what a source is opened for.
type Options struct {
	Batch, Steps int
	Seed         uint64
	Held         bool // the held-out part, on which nothing is trained
}

// A kind is one of the tasks.
type kind struct {
	name, usual, doc string
	open             func(s settings, o Options) (Source, error)
}

func kinds() []kind {
	return []kind{
		{"copy", "delay=10:length=5:symbols=8", "remember symbols over a delay, then repeat them (Hochreiter & Schmidhuber 1997; Arjovsky et al. 2016)", openCopy},
		{"adding", "classes=20", "add the two values that are marked (Hochreiter & Schmidhuber 1997), as one of some classes", openAdding},
		{"text", "file=", "the next character of a text; without a file, of the sources of Go", openText},
		{"words", "file=:vocabulary=10000", "the next word of a text; without a file, of the sources of Go", openWords},
	}
}

// Names is a line of help on each task, with its options and what they usually are.
func Names() []string {
	var lines []string
	for _, k := range kinds() {
		lines = append(lines, fmt.Sprintf("%s:%s  %s", k.name, k.usual, k.doc))
	}
	return lines
}

// settings are the options of a task as spelled.
type settings map[string]string

// whole reads a whole number of at least least.
func (s settings) whole(key string, least, most int) (int, error) {
	n, err := strconv.Atoi(s[key])
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q: it must be a whole number from %d to %d", key, s[key], least, most)
	}
	return n, nil
}

// Open returns the source that spec names, such as copy:delay=20 or text:file=book.txt.
func Open(spec string, o Options) (Source, error) {
	if o.Batch < 1 || o.Steps < 1 {
		return nil, fmt.Errorf("a batch of %d sequences of %d steps: both must be at least 1", o.Batch, o.Steps)
	}
	name, rest, _ := strings.Cut(spec, ":")
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
	if i < 0 {
		var names []string
		for _, k := range all {
			names = append(names, k.name)
		}
		return nil, fmt.Errorf("there is no task %q: choose one of %s", name, strings.Join(names, ", "))
	}
	s := settings{}
	for part := range strings.SplitSeq(all[i].usual, ":") {
		key, value, _ := strings.Cut(part, "=")
		s[key] = value
	}
	for part := range strings.SplitSeq(rest, ":") {
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		if _, known := s[key]; !known || !ok {
			return nil, fmt.Errorf("%s has no option %q: write it as %s:%s", name, part, name, all[i].usual)
		}
		s[key] = value
	}
	source, err := all[i].open(s, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return source, nil
}

// drawn is a task whose minibatches are drawn anew: its position is their number.
type drawn struct {
	Options
	shape Shape
	at    uint64
	fill  func(rng *rand.Rand, o Options, x, target []float32)
}

// apart keeps held-out minibatches from being trained on.
const apart = 1 << 63

func (d *drawn) Shape() Shape { return d.shape }

func (d *drawn) Next(x, target []float32) {
	stream := d.at
	if d.Held {
		stream |= apart
	}
	d.at++
	clear(x)
	clear(target)
	d.fill(rand.New(rand.NewPCG(d.Seed, stream)), d.Options, x, target)
}

func (d *drawn) State() []byte { return binary.LittleEndian.AppendUint64(nil, d.at) }

func (d *drawn) Restore(state []byte) error {
	if len(state) != 8 {
		return errors.New("the position is not one of this task")
	}
	d.at = binary.LittleEndian.Uint64(state)
	return nil
}
