package data

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A text is a sequence of symbols, each to be predicted from those before. Each sequence of a batch
// reads a stretch of its own, from minibatch to minibatch, and then starts over.
type text struct {
	Options
	shape   Shape
	symbols []int32
	at      int // position within each stretch
}

// A form says how a text becomes symbols.
type form struct {
	vocabulary int // so many of the most frequent parts have a number each; all others share the next one
	classes    int // number of classes; the rarer numbers share the last; 0: all
	shuffle    int // size of the pieces whose order is shuffled; 0: no shuffling
}

// readForm reads the options of a text, and the text.
func readForm(s settings) (f form, read string, err error) {
	if f.vocabulary, err = s.whole("vocabulary", 1, 1<<20); err != nil {
		return f, "", err
	}
	if f.classes, err = s.whole("classes", 0, 1<<20); err != nil {
		return f, "", err
	}
	if f.classes == 1 {
		return f, "", errors.New("classes is 1: there must be 2 to tell apart, or 0 for all")
	}
	if f.shuffle, err = s.whole("shuffle", 0, 1<<30); err != nil {
		return f, "", err
	}
	read, err = readText(s["file"])
	return f, read, err
}

// openText reads characters, or bytes if the text is not in UTF-8.
func openText(s settings, o Options) (Source, error) {
	f, read, err := readForm(s)
	if err != nil {
		return nil, err
	}
	return newText(characters(read), f, o)
}

func characters(read string) []rune {
	if utf8.ValidString(read) {
		return []rune(read)
	}
	all := make([]rune, len(read))
	for i := range all {
		all[i] = rune(read[i])
	}
	return all
}

// openWords reads words: letters, digits and underscores in a row, or any other character but space.
func openWords(s settings, o Options) (Source, error) {
	f, read, err := readForm(s)
	if err != nil {
		return nil, err
	}
	return newText(words(read), f, o)
}

func words(read string) []string {
	var all []string
	begin := -1 // of the present word; -1: outside words
	for i, r := range read {
		inside := inWord(r)
		if !inside && begin >= 0 {
			all = append(all, read[begin:i])
			begin = -1
		}
		switch {
		case inside && begin < 0:
			begin = i
		case !inside && !unicode.IsSpace(r):
			_, n := utf8.DecodeRuneInString(read[i:]) // a broken character is one byte
			all = append(all, read[i:i+n])
		}
	}
	if begin >= 0 {
		all = append(all, read[begin:])
	}
	return all
}

func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// newText numbers the parts of a text. The last tenth is held out. The most frequent of the rest
// get a number each, and all others share one.
func newText[T cmp.Ordered](parts []T, f form, o Options) (Source, error) {
	cut := len(parts) - len(parts)/10
	number := map[T]int32{} // in order of appearance
	symbols := make([]int32, len(parts))
	var different []T
	var count []int
	for i, p := range parts {
		n, known := number[p]
		if !known {
			n = int32(len(different))
			number[p], different, count = n, append(different, p), append(count, 0)
		}
		if symbols[i] = n; i < cut {
			count[n]++
		}
	}
	var order []int32 // by frequency
	for n, c := range count {
		if c > 0 {
			order = append(order, int32(n))
		}
	}
	if len(order) < 2 {
		return nil, fmt.Errorf("the text has %d different symbols to train on: at least 2 are needed", len(order))
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(different[a], different[b]))
	})
	order = order[:min(f.vocabulary, len(order))]
	rank := slices.Repeat([]int32{int32(len(order))}, len(different))
	for i, n := range order {
		rank[n] = int32(i)
	}
	if o.Held {
		symbols = symbols[cut:]
	} else {
		symbols = shuffled(symbols[:cut], f.shuffle, o.Seed)
	}
	for i, n := range symbols {
		symbols[i] = rank[n]
	}
	size := len(order) + 1
	if f.classes > size {
		return nil, fmt.Errorf("classes is %d, but the text has %d symbols: set fewer, or 0 for all", f.classes, size)
	}
	return openStreams(symbols, Shape{Input: size, OneHot: true, Output: cmp.Or(f.classes, size), Continues: true}, o)
}

// shuffled returns symbols with pieces of so many in random order; 0: as they are.
func shuffled(symbols []int32, piece int, seed uint64) []int32 {
	if piece == 0 {
		return symbols
	}
	pieces := slices.Collect(slices.Chunk(symbols, piece))
	rng := rand.New(rand.NewPCG(seed, shuffleStream))
	rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	return slices.Concat(pieces...)
}

// shuffleStream separates the generator of the order from others with the same seed.
const shuffleStream = 0x7e87

// openStreams divides symbols among the sequences of a batch.
func openStreams(symbols []int32, shape Shape, o Options) (Source, error) {
	t := &text{Options: o, shape: shape, symbols: symbols}
	if t.stretch() < o.Steps+1 {
		part := "to train on"
		if o.Held {
			part = "held out"
		}
		return nil, fmt.Errorf("the text has %d symbols %s, but %d sequences of %d steps take %d: name a longer text, or set fewer steps or a smaller batch", len(symbols), part, o.Batch, o.Steps, o.Batch*(o.Steps+1))
	}
	return t, nil
}

// stretch is the number of symbols that each sequence has to itself.
func (t *text) stretch() int { return len(t.symbols) / t.Batch }

func (t *text) Shape() Shape { return t.shape }

func (t *text) Next(x, target []float32) {
	if t.at+t.Steps+1 > t.stretch() {
		t.at = 0
	}
	for b := range t.Batch {
		from := t.symbols[b*t.stretch()+t.at:]
		for i := range t.Steps {
			x[i*t.Batch+b], target[i*t.Batch+b] = float32(from[i]), float32(min(int(from[i+1]), t.shape.Output-1))
		}
	}
	t.at += t.Steps
}

func (t *text) State() []byte { return binary.LittleEndian.AppendUint64(nil, uint64(t.at)) }

func (t *text) Restore(state []byte) error {
	if len(state) != 8 {
		return errors.New("the position is not one in a text")
	}
	at := binary.LittleEndian.Uint64(state)
	if at > uint64(t.stretch()) {
		return fmt.Errorf("the position is %d, beyond the %d symbols of a sequence: the text was longer", at, t.stretch())
	}
	t.at = int(at)
	return nil
}
