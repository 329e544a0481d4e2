package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/internal/safe"
)

// TestHostileRecords shows records whose technique has a hostile name and label. Every format
// prints them so that terminals, spreadsheets and pages treat them as text.
func TestHostileRecords(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, "sweep --impl naive -H 4 -B 1 -T 2 --rounds 1 --max-rounds 1 --warmup 0s --min-time 0s --out out -q").want(t, exit.Done, nil, nil)
	runs, err := filepath.Glob("out/*/records.jsonl")
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	text, err := os.ReadFile(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	evil := strings.NewReplacer(`"name":"naive"`, `"name":"na:i=ve"`, `"label":"naive"`, `"label":"=cmd|<b>\u001b[31mx\u202e"`).Replace(string(text))
	if err := os.WriteFile(runs[0], []byte(evil), 0o666); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"table": "=cmd|<b>", "csv": "'=cmd", "markdown": `=cmd\|&lt;b&gt;`, "benchfmt": "impl: =cmd|<b>",
	} {
		r := rnnbench(t, "show out -o "+format)
		r.want(t, exit.Done, []string{want}, nil)
		if strings.ContainsFunc(r.out, func(c rune) bool { return c != '\n' && c != '\t' && safe.Hidden(c) }) {
			t.Errorf("%s: %q", format, r.out)
		}
	}
	rnnbench(t, "show out --where impl!=naive").want(t, exit.Done, []string{"=cmd"}, nil)
}
