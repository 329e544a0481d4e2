package data

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"rnnbench/internal/input"
)

// readText reads a file or, if path is empty, Go's documentation and sources.
func readText(path string) (string, error) {
	if path != "" {
		file, err := input.ReadNamed(path, mostNamed)
		return string(file), err
	}
	root, err := distribution()
	if err != nil {
		return "", err
	}
	text, err := readTree(root)
	if err != nil {
		return "", fmt.Errorf("the documentation and sources of Go cannot be read: %w: %s", err, remedy)
	}
	if text == "" {
		return "", fmt.Errorf("%s has no documentation or sources of Go: %s", root, remedy)
	}
	return text, nil
}

// mostNamed bounds a text that the user names, in bytes.
const mostNamed = 1 << 30

// remedy says what to do where there is no text.
const remedy = "set GOROOT to a Go distribution, or name a text, as in text:book.txt"

// distribution is the folder of the Go distribution.
func distribution() (string, error) {
	if root := os.Getenv("GOROOT"); root != "" {
		return root, nil
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return "", errors.New("there is no Go distribution to read: " + remedy)
	}
	return root, nil
}

// mostText bounds how much of the distribution is read, in bytes.
const mostText = 8 << 20

// readTree reads the pages of doc, then the Go files of src without tests, commands and generated
// files. Both are read in the order of their names.
func readTree(root string) (string, error) {
	var b strings.Builder
	for _, part := range []string{"doc", "src"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && d == nil:
				return nil
			case err != nil:
				return err
			case b.Len() >= mostText:
				return fs.SkipAll
			case d.IsDir() && slices.Contains([]string{"testdata", "vendor", "cmd"}, d.Name()):
				return fs.SkipDir
			case d.IsDir() || !slices.Contains([]string{".go", ".html", ".md"}, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := os.ReadFile(path)
			if err == nil && utf8.Valid(file) && !generated(file) {
				b.Write(file)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// generated reports whether a line marks the file as generated, in the form of Go's tools.
func generated(file []byte) bool {
	return bytes.HasPrefix(file, []byte("// Code generated ")) || bytes.Contains(file, []byte("\n// Code generated "))
}
