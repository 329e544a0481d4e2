// Package input opens and reads files from elsewhere: files that a user names, and files that another
// process or machine wrote. It reads no more than the caller allows, and text comes out as UTF-8.
package input

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// A SizeError says that a file is larger than what is read of it.
type SizeError struct {
	Name string
	Most int64 // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s is larger than the limit of %s", e.Name, size(e.Most))
}

func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// containers are formats that hold text and that are not unpacked, with how to unpack them.
var containers = []struct{ magic, name, remedy string }{
	{"PK\x03\x04", "a zip archive", "unpack it first, with unzip"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it first, with zstd -d"},
	{"\xfd7zXZ\x00", "compressed with xz", "unpack it first, with xz -d"},
	{"BZh", "compressed with bzip2", "unpack it first, with bzip2 -d"},
}

// Text returns a reader of the text in r as UTF-8 without a byte-order mark. It decodes UTF-16 that
// begins with a mark, and unpacks gzip. It refuses other containers, and UTF-32, by their names. name
// is for errors.
func Text(r io.Reader, name string) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	head, err := b.Peek(8)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, c := range containers {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return nil, fmt.Errorf("%s is %s: %s", name, c.name, c.remedy)
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("%s is damaged gzip: %w", name, err)
		}
		return Text(z, name)
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")), bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff")):
		return nil, fmt.Errorf("%s is text in UTF-32: save it as UTF-8", name)
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, err := b.Discard(3)
		return b, err
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return transform.NewReader(b, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder()), nil
	case wide(head, 0), wide(head, 1):
		return nil, fmt.Errorf("%s looks like text in UTF-16 without a byte-order mark: save it as UTF-8", name)
	}
	return b, nil
}

// wide reports whether head looks like ASCII text in UTF-16: characters at every other byte from first
// on, and zeros between them.
func wide(head []byte, first int) bool {
	for i, b := range head {
		if i%2 == first && (b < '\t' || b > '~') || i%2 != first && b != 0 {
			return false
		}
	}
	return len(head) == 8
}

// ReadAll reads r to its end, at most most bytes; of more it returns a SizeError. name is for errors.
func ReadAll(r io.Reader, most int64, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, &SizeError{name, most}
	}
	return data, nil
}

// ReadText reads the text in r, as Text does, of at most most bytes.
func ReadText(r io.Reader, most int64, name string) ([]byte, error) {
	t, err := Text(r, name)
	if err != nil {
		return nil, err
	}
	return ReadAll(t, most, name)
}

// ReadNamed reads a text file that a user named, of at most most bytes. It may be a pipe.
func ReadNamed(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadText(f, most, path)
}

// Open opens a regular file. It refuses everything else, such as a pipe, on which reading could wait
// forever, or a device, which may have no end.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // first, since opening a pipe may wait
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregular(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, irregular(path), f.Close())
	}
	return f, nil
}

// ErrIrregular says that a file is not a regular one.
var ErrIrregular = errors.New("it is not a regular file")

func irregular(path string) error {
	return &fs.PathError{Op: "read", Path: path, Err: ErrIrregular}
}

// ReadFile reads a regular file of at most most bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, most, path)
}

// ReadTextFile reads a regular text file, as Text does, of at most most bytes.
func ReadTextFile(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadText(f, most, path)
}
