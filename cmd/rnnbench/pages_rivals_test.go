package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/tuner/config"
)

// TestRivalsPage: docs/rivals.md shows the example that TestRival runs, a table that config can
// read, and messages in valid JSON.
func TestRivalsPage(t *testing.T) {
	text := page(t, "docs/rivals.md")
	source, err := os.ReadFile(filepath.Join(root, "rival/testdata/example/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, ok := strings.Cut(text, "It ends so:\n\n")
	plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if !ok || len(example) < 100 || !strings.Contains(plain(string(source)), plain(example)) {
		t.Errorf("the page's example is not in main.go:\n%s", example)
	}
	if lines := strings.Count(string(source), "\n"); lines > 100 {
		t.Errorf("the example has %d lines: is it still short?", lines)
	}

	_, table, _ := strings.Cut(text, "\n    # rivals/pytorch.toml\n")
	table, _, _ = strings.Cut(table, "\n\n")
	l, err := config.Parse([]byte(strings.ReplaceAll("\n"+table, "\n    ", "\n")), filepath.Join(root, "rivals/pytorch.toml"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := config.ReadRivals(filepath.Join(root, "rivals/pytorch.toml"))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := config.Resolve(l)
	if err != nil {
		t.Fatal(err)
	}
	file, err := config.Resolve(kept)
	if err != nil || len(shown.Rivals) != 1 || shown.Rivals[0].Command[1] != file.Rivals[0].Command[1] {
		t.Errorf("the page shows %v, and the file has %v: %v", shown.Rivals, file.Rivals, err)
	}

	messages := 0
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(m[1], "{") {
			messages++
			if full := strings.ReplaceAll(m[1], "{…}", "{}"); !json.Valid([]byte(full)) {
				t.Errorf("%s is no JSON", m[1])
			}
		}
	}
	if messages < 10 {
		t.Errorf("the page shows %d messages: are they still read?", messages)
	}
}
