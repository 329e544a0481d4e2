package input

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// zipped packs s by gzip.
func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

// utf16 encodes ASCII text as UTF-16.
func utf16(s string, low bool) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if low {
			b.Write([]byte{c, 0})
		} else {
			b.Write([]byte{0, c})
		}
	}
	return b.String()
}

func TestText(t *testing.T) {
	const text = "{\"a\": 1}\nsecond\n"
	for name, in := range map[string]string{
		"plain":         text,
		"mark":          "\xef\xbb\xbf" + text,
		"little endian": "\xff\xfe" + utf16(text, true),
		"big endian":    "\xfe\xff" + utf16(text, false),
		"gzip":          zipped(text),
		"gzip, mark":    zipped("\xef\xbb\xbf" + text),
	} {
		got, err := ReadText(strings.NewReader(in), 1<<20, "f")
		if err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for in, want := range map[string]string{
		"PK\x03\x04rest":                "f is a zip archive: unpack it first, with unzip",
		"\x28\xb5\x2f\xfdrest":          "compressed with zstd",
		"\xfd7zXZ\x00rest":              "compressed with xz",
		"BZh91AY":                       "compressed with bzip2",
		"\xff\xfe\x00\x00a\x00\x00\x00": "UTF-32",
		utf16(text, true):               "UTF-16 without a byte-order mark",
		utf16(text, false):              "UTF-16 without a byte-order mark",
		"\x1f\x8brubbish":               "damaged gzip",
	} {
		if _, err := ReadText(strings.NewReader(in), 1<<20, "f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v; want %q", in, err, want)
		}
	}
	for _, in := range []string{"", "a", "ab"} {
		if got, err := ReadText(strings.NewReader(in), 1<<20, "f"); err != nil || string(got) != in {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
}

// endless is a stream without an end, as /dev/zero is.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestBounds(t *testing.T) {
	var large *SizeError
	if _, err := ReadText(endless{}, 1<<20, "f"); !errors.As(err, &large) || err.Error() != "f is larger than the limit of 1 MiB" {
		t.Errorf("a stream without an end: %v", err)
	}
	if _, err := ReadText(strings.NewReader(zipped(strings.Repeat("a", 1<<20))), 1<<10, "f"); !errors.As(err, &large) {
		t.Errorf("a small file that unpacks to a large one: %v", err)
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 1<<10), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path, 1<<10); err != nil {
		t.Errorf("a file as large as the limit: %v", err)
	}
	if _, err := ReadFile(path, 1<<10-1); !errors.As(err, &large) {
		t.Errorf("a file larger than the limit: %v", err)
	}
	if _, err := ReadFile(filepath.Dir(path), 1); !errors.Is(err, ErrIrregular) {
		t.Errorf("a folder: %v", err)
	}
}
