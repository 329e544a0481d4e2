package main

import (
	"os"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// block returns a page's first indented block with a line that begins so, without the indent.
func block(t *testing.T, name, begin string) string {
	t.Helper()
	_, rest, found := strings.Cut(page(t, name), "\n    "+begin)
	if !found {
		t.Fatalf("%s shows nothing that begins with %s", name, begin)
	}
	var b strings.Builder
	for line := range strings.Lines("    " + begin + rest) {
		code, indented := strings.CutPrefix(line, "    ")
		if !indented && line != "\n" {
			break
		}
		b.WriteString(code)
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// TestPageFiles: files that pages print are those that their commands read, and work.
func TestPageFiles(t *testing.T) {
	if cell := block(t, "docs/cells.md", "# Light GRU"); cell != page(t, "cells/ligru.cell") {
		t.Errorf("docs/cells.md shows another cell than cells/ligru.cell:\n%s", cell)
	}
	network := block(t, "docs/training.md", "# speech.toml")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("speech.toml", []byte(network), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "verify --network speech.toml -H 8 -B 1 -T 3 --impl cudnnstyle").want(t, exit.Done, []string{"norm=batch", "ok"}, nil)
}
