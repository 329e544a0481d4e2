//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rnnbench/internal/exit"
)

// TestSignalBeforeWork: a signal that comes while nothing is measured yet ends the program with a
// sentence and the exit code of an interruption.
func TestSignalBeforeWork(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			continue // as nohup has it, and the program leaves it so
		}
		dir := t.TempDir()
		pipe := filepath.Join(dir, "pipe")
		if err := syscall.Mkfifo(pipe, 0o666); err != nil {
			t.Skip(err) // not every file system has them
		}
		var said bytes.Buffer
		cmd := exec.Command(os.Args[0], asProgram, "wisdom", "merge", "--wisdom", filepath.Join(dir, "book"), pipe)
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the program reads
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the exit code says how it went
		if code := cmd.ProcessState.ExitCode(); code != exit.Interrupted || !strings.Contains(said.String(), "rnnbench: interrupted") {
			t.Errorf("%v: exit code %d: %q", sig, code, said.String())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
