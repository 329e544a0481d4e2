// Package pickle reads the format of Python's module pickle, and runs nothing: what a pickle would
// call is an Object that names it. It reads the binary opcodes of protocols 2 to 5, in which
// PyTorch writes.
package pickle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// A value is nil, a bool, an int64, a Long, a float64, a string, Bytes, a Tuple, a Global, a
// Persistent or an *Object. Objects may hold each other in circles.
type (
	// A Long is an integer of more than 64 bits: little-endian, in two's complement.
	Long string

	// Bytes are bytes, not text. The strings of Python 2 are strings.
	Bytes string

	Tuple []any

	// A Global is the name of a class or a function.
	Global struct{ Module, Name string }

	// A Persistent stands for a value outside of the pickle.
	Persistent struct{ ID any }
)

func (g Global) String() string { return g.Module + "." + g.Name }

// An Object is a list, a dict, a set, or what a class or a function would make.
type Object struct {
	Class any   // what would be called: a Global, as a rule; of lists, dicts and sets that of Python
	Args  Tuple // what with
	State any   // of an instance: its attributes, as a rule

	Items []any  // of lists and sets, and of what extends them
	Pairs []Pair // of dicts, and of what extends them, in order; a key may come again
}

// A Pair is an entry of a dict.
type Pair struct{ Key, Value any }

// Is reports whether o would be made by the class or function of that name.
func (o *Object) Is(module, name string) bool { return o.Class == Global{module, name} }

// Get returns the value of a dict's key; nil: there is none.
func (o *Object) Get(key string) any {
	for i := len(o.Pairs) - 1; i >= 0; i-- {
		if o.Pairs[i].Key == key {
			return o.Pairs[i].Value
		}
	}
	return nil
}

// A Pickle is what one pickle holds.
type Pickle struct {
	Value      any
	Persistent []any // the IDs of all Persistent, in order
}

// most is how many bytes the values of a Reader may take, roughly: millions of values.
const most = 1 << 28

// A Reader reads pickles one after the other.
type Reader struct {
	r    *bufio.Reader
	at   int64
	left int // bytes that values may still take
	err  error
}

// NewReader returns a Reader of r, which may hold something else after the pickles.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReader(r), left: most} }

// Offset is the number of bytes that the pickles so far take.
func (r *Reader) Offset() int64 { return r.at }

// Read reads the next pickle.
func (r *Reader) Read() (Pickle, error) {
	m := machine{Reader: r, memo: map[int64]any{}}
	for r.err == nil {
		op := m.byte()
		if op == stop {
			break
		}
		if do := operations[op]; do != nil {
			do(&m)
		} else {
			m.fail("opcode %#02x at byte %d is not one that PyTorch writes", op, r.at-1)
		}
	}
	value := m.pop()
	if len(m.stack) > 0 {
		m.fail("it ends with %d values too many", len(m.stack))
	}
	if errors.Is(r.err, io.EOF) || errors.Is(r.err, io.ErrUnexpectedEOF) {
		r.err = errors.New("it is truncated")
	}
	if r.err != nil {
		return Pickle{}, fmt.Errorf("pickle: %w", r.err)
	}
	return Pickle{value, m.persistent}, nil
}

// fail keeps the first error.
func (r *Reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// take counts bytes that a value takes.
func (r *Reader) take(bytes int) {
	if r.left -= bytes; r.left < 0 {
		r.fail("its values take more than %d MiB", most>>20)
	}
}

func (r *Reader) byte() byte {
	if r.err != nil {
		return stop
	}
	b, err := r.r.ReadByte()
	if err != nil {
		r.err = err
		return stop
	}
	r.at++
	return b
}

// uint reads a little-endian number of so many bytes.
func (r *Reader) uint(bytes int) uint64 {
	var n uint64
	for i := range bytes {
		n |= uint64(r.byte()) << (8 * i)
	}
	return n
}

// text reads n bytes.
func (r *Reader) text(n uint64) string {
	if n > uint64(max(0, r.left)) {
		r.take(r.left + 1)
		return ""
	}
	r.take(int(n) + 16)
	if r.err != nil {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(r.r, int64(n)))
	r.at += int64(len(b))
	if err == nil && len(b) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if r.err == nil {
		r.err = err
	}
	return string(b)
}

// line reads to the end of a line.
func (r *Reader) line() string {
	var b []byte
	for r.err == nil && len(b) <= 1000 {
		c := r.byte()
		if r.err != nil || c == '\n' {
			return string(b)
		}
		b = append(b, c)
	}
	r.fail("a name has more than 1000 characters")
	return ""
}
