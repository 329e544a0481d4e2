package data

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text is a sequence of symbols, each of which is to be told from those before. Each
// sequence of a batch reads a stretch of its own, from minibatch to minibatch.
type text struct {
	Options
	shape   Shape
	symbols []int32
	at      int // of the first sequence, below the length of a stretch
}

// openText reads characters. The rarest of more than 255 count as one.
func openText(s settings, o Options) (Source, error) {
	read, err := readText(s["file"])
	if err != nil {
		return nil, err
	}
	return newText([]rune(read), 255, o)
}

// openWords reads words: letters and digits in a row, or any other character but space.
func openWords(s settings, o Options) (Source, error) {
	size, err := s.whole("vocabulary", 2, 1<<20)
	if err != nil {
		return nil, err
	}
	read, err := readText(s["file"])
	if err != nil {
		return nil, err
	}
	return newText(words(read), size-1, o)
}

func words(read string) []string {
	var all []string
	inside := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	for read != "" {
		r, n := utf8.DecodeRuneInString(read)
		if inside(r) {
			if n = strings.IndexFunc(read, func(r rune) bool { return !inside(r) }); n < 0 {
				n = len(read)
			}
		}
		if !unicode.IsSpace(r) {
			all = append(all, read[:n])
		}
		read = read[n:]
	}
	return all
}

// newText numbers what a text consists of, the most frequent first; all beyond so many share a
// number. The last tenth is held out.
func newText[T cmp.Ordered](parts []T, most int, o Options) (Source, error) {
	count := map[T]int{}
	for _, p := range parts {
		count[p]++
	}
	order := slices.SortedFunc(maps.Keys(count), func(a, b T) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	number := map[T]int32{}
	for i, p := range order {
		number[p] = int32(min(i, most))
	}
	size := min(len(order), most+1)
	if size < 2 {
		return nil, fmt.Errorf("the text has %d different symbols: at least 2 are needed", size)
	}
	symbols := make([]int32, len(parts))
	for i, p := range parts {
		symbols[i] = number[p]
	}
	cut := len(symbols) - len(symbols)/10
	if symbols = symbols[:cut]; o.Held {
		symbols = make([]int32, 0, len(parts)-cut)
		for _, p := range parts[cut:] {
			symbols = append(symbols, number[p])
		}
	}
	t := &text{Options: o, shape: Shape{Input: size, OneHot: true, Output: size, Continues: true}, symbols: symbols}
	if t.stretch() < o.Steps+1 {
		return nil, fmt.Errorf("the text has %d symbols to read: %d sequences of %d steps take %d", len(symbols), o.Batch, o.Steps, o.Batch*(o.Steps+1))
	}
	return t, nil
}

// stretch is how many symbols each sequence has to itself.
func (t *text) stretch() int { return len(t.symbols) / t.Batch }

func (t *text) Shape() Shape { return t.shape }

func (t *text) Next(x, target []float32) {
	if t.at+t.Steps+1 > t.stretch() {
		t.at = 0
	}
	for b := range t.Batch {
		from := t.symbols[b*t.stretch()+t.at:]
		for i := range t.Steps {
			x[i*t.Batch+b], target[i*t.Batch+b] = float32(from[i]), float32(from[i+1])
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

// readText reads a file, or without one the sources of Go's standard library.
func readText(path string) (string, error) {
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if !utf8.Valid(data) {
			return "", fmt.Errorf("%s is no text in UTF-8", path)
		}
		return string(data), nil
	}
	root, err := sources()
	if err != nil {
		return "", err
	}
	return readTree(root)
}

// sources is the folder of Go's standard library.
func sources() (string, error) {
	root := os.Getenv("GOROOT")
	if root == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return "", errors.New("the sources of Go are not found: set GOROOT, or name a text, as in text:file=book.txt")
		}
		root = strings.TrimSpace(string(out))
	}
	return filepath.Join(root, "src"), nil
}

// mostText is how much of a tree is read, in bytes.
const mostText = 8 << 20

// readTree reads the Go files of the packages below root, but for tests, in the order of their
// names.
func readTree(root string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case b.Len() >= mostText:
			return fs.SkipAll
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor" || d.Name() == "cmd"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && utf8.Valid(data) {
			b.Write(data)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("the sources of Go cannot be read: %w: set GOROOT, or name a text, as in text:file=book.txt", err)
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("%s has no sources of Go: set GOROOT, or name a text, as in text:file=book.txt", root)
	}
	return b.String(), nil
}
