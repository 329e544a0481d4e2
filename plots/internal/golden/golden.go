// Package golden compares the output of tests with files of expected output.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Check compares got with a file under testdata, or writes the file if update
// is set. A failure shows the first lines that differ.
func Check(t *testing.T, name string, got []byte, update bool) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run the test with -update to write it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update accepts the new one):\n%s", path, diff(string(want), string(got)))
	}
}

// diff returns up to five lines of each text from the first line that differs.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < min(len(w), len(g)) && w[i] == g[i] {
		i++
	}
	var b strings.Builder
	show := func(sign string, lines []string) {
		for _, l := range lines[min(i, len(lines)):min(i+5, len(lines))] {
			b.WriteString(sign + l + "\n")
		}
	}
	show("- ", w)
	show("+ ", g)
	return b.String()
}
