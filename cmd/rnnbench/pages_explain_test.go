package main

import (
	"strings"
	"testing"
)

// TestPageExplains compares explain's output in kernels.md with what the program prints, row by
// row. The page leaves out some rows, and the lines between columns.
func TestPageExplains(t *testing.T) {
	_, text, ok := strings.Cut(page(t, "docs/kernels.md"), "    $ rnnbench explain ")
	line, text, _ := strings.Cut(text, "\n")
	if !ok {
		t.Fatal("the page does not show the command")
	}
	t.Chdir(t.TempDir())
	words := func(row string) string { return strings.Join(strings.Fields(strings.ReplaceAll(row, "|", " ")), " ") }
	printed := map[string]bool{}
	for row := range strings.Lines(rnnbench(t, "explain "+line).out) {
		printed[words(row)] = true
	}
	rows := 0
	for row := range strings.Lines(text) {
		row, shown := strings.CutPrefix(row, "    ")
		if !shown {
			break
		}
		if rows++; !printed[words(row)] {
			t.Errorf("the page shows a row that is not printed: %s", row)
		}
	}
	if rows < 8 {
		t.Errorf("%d rows are shown", rows)
	}
}
