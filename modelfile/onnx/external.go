package onnx

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// An Opener opens a file that a model names. The caller closes it.
type Opener func(location string) (*os.File, error)

// ExternalData opens files in the folder of the model at path, or below. A link may lead to the folder that
// the model itself is a link to, as in caches of downloads, and nowhere else.
func ExternalData(path string) Opener {
	return func(location string) (*os.File, error) {
		local := filepath.FromSlash(location)
		if !filepath.IsLocal(local) {
			return nil, fmt.Errorf("the values lie in the file %q, which is not beside the model", short(location))
		}
		file, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(path), local))
		if err != nil {
			return nil, fmt.Errorf("the values lie in the file %q, which cannot be found beside the model", short(location))
		}
		own, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		if !within(folder, file) && !within(filepath.Dir(own), file) {
			return nil, fmt.Errorf("the values lie in the file %q, which is a link away from the model", short(location))
		}
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("the values lie in %q, which is no file", short(location))
		}
		return os.Open(file)
	}
}

// within reports whether a file lies in a folder, or below.
func within(folder, file string) bool {
	rel, err := filepath.Rel(folder, file)
	return err == nil && filepath.IsLocal(rel)
}

// readExternal reads n values of so many bytes each from where entries say.
func (m *Model) readExternal(entries [][]byte, n, size int) ([]byte, error) {
	location, offset, length := "", int64(0), int64(n)*int64(size)
	for _, raw := range entries {
		key, err := m.first(raw, entryKey)
		if err != nil {
			return nil, err
		}
		text, err := m.first(raw, entryValue)
		if err != nil {
			return nil, err
		}
		number := func() int64 {
			v, failed := strconv.ParseInt(string(text), 10, 64)
			if failed != nil || v < 0 {
				err = fmt.Errorf("the %s of values in another file is %q, which is no size", key, short(string(text)))
			}
			return v
		}
		switch string(key) {
		case "location":
			location = string(text)
		case "offset":
			offset = number()
		case "length":
			length = number()
		}
		if err != nil {
			return nil, err
		}
	}
	if length != int64(n)*int64(size) {
		return nil, fmt.Errorf("a tensor has %d bytes of values in another file, not %d", length, int64(n)*int64(size))
	}
	return m.readRange(location, offset, length)
}

// readRange reads a part of a file beside the model.
func (m *Model) readRange(location string, offset, length int64) ([]byte, error) {
	if m.opener == nil {
		return nil, errors.New("the values lie in another file")
	}
	f, err := m.opener(location)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if offset > info.Size() || length > info.Size()-offset {
		return nil, fmt.Errorf("the file %q ends before the values that the model says it has", short(location))
	}
	if !m.external[location] {
		m.external[location] = true
		m.allow(int(min(info.Size(), math.MaxInt32)))
	}
	if err := m.Spend(int(length / 4)); err != nil {
		return nil, err
	}
	b := make([]byte, length)
	if _, err := f.ReadAt(b, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b, nil
}
