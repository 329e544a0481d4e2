package turns

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOrder: programs take turns evenly, in an order that depends on the seed.
func TestOrder(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(20) {
		list := order(5, seed)
		if !slices.Equal(list, order(5, seed)) || len(list) != 10 {
			t.Fatalf("seed %d: %v", seed, list)
		}
		seen[list[0]] = true
		for i := 0; i < len(list); i += 2 {
			if list[i] == list[i+1] {
				t.Errorf("seed %d: %v", seed, list)
			}
		}
	}
	if len(seen) != 2 {
		t.Error("one program is always the first")
	}
}

// script writes a shell script to dir.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := exec.Command(path).Run(); err != nil && !errors.As(err, &exit) {
		t.Skipf("no scripts run here: %v", err)
	}
	return path
}

// TestFails: the error says which program failed in which run, and why.
func TestFails(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"echo hello >&2; echo rnnbench: no such cell >&2; exit 2": " failed in run 1: no such cell",
		"echo Bus error >&2; exit 1":                              " failed in run 1: exit status 1: Bus error",
		"exit 1":                                                  " failed in run 1: exit status 1",
		"exit 3":                                                  " failed in run 1: its run cannot be read: ", // exit code 3: some points failed, which is allowed
	} {
		path := script(t, dir, "program", text)
		f := &Turns{Programs: [2]Program{{"a", path}, {"b", path}}, Runs: 3, Command: []string{"sweep"}, Failures: 3}
		if err := errors.Join(f.Find(), f.MakeFolder(dir, time.Now())); err != nil {
			t.Fatal(err)
		}
		err := f.Run(t.Context(), func(Turn) { t.Error("a run is finished") })
		if err == nil || !strings.Contains(err.Error(), want) || len(f.Done[0]) > 0 {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	f := &Turns{Programs: [2]Program{{"a", filepath.Join(dir, "program")}, {"b", "no-such-program"}}}
	if err := f.Find(); err == nil || !strings.Contains(err.Error(), "cannot run program b") {
		t.Error(err)
	}
}
