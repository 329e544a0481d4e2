package plots

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestWithTemp: if TMPDIR is not usable, withTemp finds another folder, and restores the variable
// afterwards.
func TestWithTemp(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the variable has another name")
	}
	gone := filepath.Join(t.TempDir(), "gone")
	t.Setenv("TMPDIR", gone)
	err := withTemp(func() error {
		made, err := os.MkdirTemp("", "test-")
		return errors.Join(err, os.Remove(made))
	})
	if err != nil || os.Getenv("TMPDIR") != gone {
		t.Errorf("%v; TMPDIR is %s", err, os.Getenv("TMPDIR"))
	}
}
