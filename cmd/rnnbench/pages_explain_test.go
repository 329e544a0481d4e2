package main

import (
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// TestPageExplains compares explain's output in kernels.md with what the program prints, row by
// row. The page leaves out some rows, and the lines between columns.
func TestPageExplains(t *testing.T) {
	text := page(t, "docs/kernels.md")
	t.Chdir(t.TempDir())
	if rows := holdShown(t, text, "explain "); rows < 8 {
		t.Errorf("%d rows are shown", rows)
	}
}

// TestGuideRecords compares what the guide shows of recorded runs with what the program prints.
func TestGuideRecords(t *testing.T) {
	text := page(t, "docs/guide.md")
	t.Chdir(root)
	if rows := holdShown(t, text, "show results/nvidia") + holdShown(t, text, "compare results/"); rows < 14 {
		t.Errorf("%d rows are shown", rows)
	}
}

// holdShown runs the commands of a page that begin so, and holds each row that the page shows below
// one to the rows that are printed. It returns the number of rows.
func holdShown(t *testing.T, text, begin string) (rows int) {
	t.Helper()
	words := func(row string) string { return strings.Join(strings.Fields(strings.ReplaceAll(row, "|", " ")), " ") }
	for _, after := range strings.Split(text, "    $ rnnbench "+begin)[1:] {
		line, after, _ := strings.Cut(after, "\n")
		o := rnnbenchWith(t.Context(), "", shell(begin+line)...)
		if o.code != exit.Done {
			t.Errorf("%s: exit code %d: %s", line, o.code, o.errors)
		}
		printed := map[string]bool{}
		for row := range strings.Lines(o.out) {
			printed[words(row)] = true
		}
		for row := range strings.Lines(after) {
			row, shown := strings.CutPrefix(row, "    ")
			if !shown || strings.HasPrefix(row, "$ ") {
				break
			}
			if rows++; !printed[words(row)] {
				t.Errorf("the page shows a row that is not printed: %s", row)
			}
		}
	}
	return rows
}
