package record

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestEncodedRecords: records are the same with a byte-order mark, in UTF-16, and compressed by gzip.
func TestEncodedRecords(t *testing.T) {
	text := line(t, func(*Record) {}) + "\n" + line(t, func(r *Record) { r.Seq = 1 }) + "\n"
	wide := []byte{0xff, 0xfe}
	for _, c := range utf16.Encode([]rune(text)) {
		wide = append(wide, byte(c), byte(c>>8))
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"plain": []byte(text), "mark": []byte("\ufeff" + text), "UTF-16": wide, "gzip": packed.Bytes()} {
		records, warnings, err := ReadRecords(bytes.NewReader(data), "f")
		if err != nil || len(records) != 2 || len(warnings) > 0 {
			t.Errorf("%s: %d records, %v, %v", name, len(records), warnings, err)
		}
	}
	for in, want := range map[string]string{"PK\x03\x04....": "zip archive", "[\n  {\"cell\": \"lstm\"}\n]\n": "show -o json"} {
		if _, _, err := ReadRecords(strings.NewReader(in), "f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", in, err, want)
		}
	}
}

// endless is a stream of zeros, as /dev/zero is.
type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestEndlessRecords: reading stops where no line ends.
func TestEndlessRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("long: reads as much as the longest line may have")
	}
	if _, _, err := ReadRecords(endless{}, "f"); err == nil || !strings.Contains(err.Error(), "a line is longer than 64 MiB") {
		t.Errorf("zeros without an end: %v", err)
	}
}

// TestFilesOfRunsAreRegular: a run whose files are something else is refused, not waited for.
func TestFilesOfRunsAreRegular(t *testing.T) {
	for _, name := range []string{manifestFile, recordsFile, latestFile} {
		dir := t.TempDir()
		run, err := Create(dir, Manifest{})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Finish(0); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(run.Dir(), name)
		if name == latestFile {
			path = filepath.Join(dir, name)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o777); err != nil { // as irregular as a pipe, on every system
			t.Fatal(err)
		}
		s, warnings, err := ReadAll([]string{dir})
		if err == nil && len(warnings) == 0 {
			t.Errorf("a folder as %s is read as %+v", name, s)
		}
	}
}
