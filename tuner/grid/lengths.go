package grid

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"rnnbench/internal/input"
	"rnnbench/rnn"
)

// ReadLengths returns the value of --lengths as one word. The lengths of a file become a list.
func ReadLengths(text string) (string, error) {
	l, wrong := rnn.ParseLengths(text)
	if wrong == nil {
		return l.String(), nil
	}
	info, err := os.Stat(text)
	switch {
	case errors.Is(err, fs.ErrNotExist) && looksLikeFile(text):
		return "", fmt.Errorf("%s: no such file: name a file with one length per line, or write full, uniform:50%% or a list such as 2*3+5+9", text)
	case err != nil:
		return "", wrong
	case info.IsDir():
		return "", fmt.Errorf("%s: it is a folder: name a file with one length per line", text)
	}
	f, err := os.Open(text)
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines, err := input.Text(f, text)
	if err != nil {
		return "", err
	}
	if l, err = rnn.ReadLengths(text, lines); err != nil {
		return "", err
	}
	return l.String(), nil
}

// looksLikeFile reports whether text is probably a file's name, not a list or a distribution.
func looksLikeFile(text string) bool {
	return strings.ContainsAny(text, "./") || !strings.ContainsAny(text, "0123456789:%")
}
