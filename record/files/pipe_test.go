//go:build unix

package files

import (
	"os"
	"syscall"
	"testing"
)

// TestWritePipe: a pipe's reader gets what is written, and the pipe stays.
func TestWritePipe(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe", 0o666); err != nil {
		t.Skip(err) // not every file system has them
	}
	if err := os.Symlink("pipe", "link"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"pipe", "link"} {
		got := make(chan string, 1)
		go func() {
			data, err := os.ReadFile("pipe")
			if err != nil {
				t.Error(err)
			}
			got <- string(data)
		}()
		if err := Writable(path); err != nil {
			t.Error(err)
		}
		if err := Write(path, text("hello")); err != nil {
			t.Fatal(err)
		}
		if s := <-got; s != "hello" {
			t.Errorf("%s: the reader got %q", path, s)
		}
		if info, err := os.Stat("pipe"); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Fatalf("the pipe was replaced, %v", err)
		}
	}
	leaves(t, ".", "link", "pipe")
}
