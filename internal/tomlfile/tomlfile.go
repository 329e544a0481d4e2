// Package tomlfile reads TOML from untrusted sources. Decoding time grows with the square
// of the number of keys. The package therefore scans a file first, and refuses one that
// would take more than a second or two.
package tomlfile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"rnnbench/internal/input"
)

// MaxBytes is the largest size of a file, in bytes.
const MaxBytes = 4 << 20

// Bounds of what a file may hold.
const (
	maxParts  = 16        // of a dotted key
	maxDepth  = 64        // of tables within each other
	maxLength = 256       // bytes of a part of a key
	maxCost   = 400 << 20 // comparisons of keys
	maxWrong  = 20        // keys that are reported
)

// ReadFile reads the text of the file at path, unless it is larger than MaxBytes.
func ReadFile(path string) ([]byte, error) {
	return input.ReadNamed(path, MaxBytes)
}

// An Unknown is a key of the file for which the struct has no field.
type Unknown struct {
	Line, Column int
	Width        int // in bytes, of all parts
	Key          []string
}

// An UnknownError lists the first unknown keys, at least one.
type UnknownError []Unknown

func (e UnknownError) Error() string {
	return fmt.Sprintf("line %d: unknown key %q", e[0].Line, strings.Join(e[0].Key, "."))
}

// A LimitError says where a file exceeds a limit of this package.
type LimitError struct {
	Line int
	Text string
}

func (e *LimitError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// Decode reads text into v, a pointer to a struct. It returns the decoder's errors or a
// LimitError. If it returns an UnknownError, v has been read.
func Decode(text []byte, v any) error {
	unknown, err := look(text, v)
	if err != nil {
		return err
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).Decode(v); err != nil {
		return err
	}
	if len(unknown) > 0 {
		return UnknownError(unknown)
	}
	return nil
}

// Check returns the LimitError that Decode would return before decoding.
func Check(text []byte) error {
	_, err := look(text, nil)
	return err
}

// Lines holds where the lines of a text begin, to find the line and column of an offset.
type Lines []int

// NewLines finds where the lines of text begin.
func NewLines(text []byte) Lines {
	l := Lines{0}
	for i, b := range text {
		if b == '\n' {
			l = append(l, i+1)
		}
	}
	return l
}

// At returns the line and column of the byte at offset, both from 1.
func (l Lines) At(offset int) (line, column int) {
	i, found := slices.BinarySearch(l, offset)
	if !found {
		i--
	}
	return i + 1, offset - l[i] + 1
}
