//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestClosedStderr: a sweep whose standard error nobody reads measures everything.
func TestClosedStderr(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0], asProgram, "sweep", "--impl", "naive", "-H", "4,5", "-B", "1", "-T", "2", "--rounds", "1", "--max-rounds", "1",
		"--warmup", "0s", "--min-time", "0s", "--out", filepath.Join(t.TempDir(), "out"), "-o", "jsonl")
	cmd.Stdout, cmd.Stderr = &out, w
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}
