//go:build unix

package input

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipeIsRefused: reading a file that nobody named does not wait for the writer of a pipe.
func TestPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Skip(err) // not every file system has them
	}
	if _, err := ReadFile(path, 1<<10); !errors.Is(err, ErrIrregular) {
		t.Errorf("a pipe: %v", err)
	}
}
