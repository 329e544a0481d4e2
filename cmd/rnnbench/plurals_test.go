package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

var (
	oneOfMany = regexp.MustCompile(`\b1 ([a-z]+s)\b`)
	manyOfOne = regexp.MustCompile(`\b(?:[02-9]|[1-9][0-9]+) (record|point|technique|candidate|sample|run|layer|worker|thread|core|step|shard|knob|experiment|winner|measurement|iteration|place|cell|way|doubling)\b[^-=]`)
)

// wrongPlurals lists what a text counts wrongly, as in "1 points" or "2 point".
func wrongPlurals(text string) (wrong []string) {
	others := []string{"is", "was", "has", "needs", "as", "ns", "ms", "us", "less", "runs", "works"} // verbs and units
	for _, at := range oneOfMany.FindAllStringSubmatchIndex(text, -1) {
		// Points after a letter, as in 2.1, or parts of a number, as in 0.1, are not counts.
		if before := text[max(0, at[0]-1):at[0]]; strings.Trim(before, ".,-=:²") != before || slices.Contains(others, text[at[2]:at[3]]) {
			continue
		}
		wrong = append(wrong, text[max(0, at[0]-20):min(len(text), at[1]+20)])
	}
	return append(wrong, manyOfOne.FindAllString(text, -1)...)
}

// TestPlurals: what exists once is counted in the singular, in all that commands print and write.
func TestPlurals(t *testing.T) {
	for text, want := range map[string]int{"at 1 points:": 1, "2 point of": 1, "1 point, 2 points, 0.1 units, 1 is": 0, "10 record of 1 thread": 1} {
		if got := wrongPlurals(text); len(got) != want {
			t.Errorf("%q: found %q", text, got)
		}
	}
	t.Chdir(t.TempDir())
	t.Setenv("RNNBENCH_WISDOM", "wisdom.toml")
	one := " -H 8 -B 1 -T 2 --threads 1" + quickly
	for _, line := range []string{
		"sweep --impl naive,scan --dry-run --budget 1h" + one, "sweep --impl naive,scan --label first" + one, "sweep --impl naive,persistent --label second" + one,
		"show", "show --pivot batch,impl", "compare first second", "compare first first", "report -f r.html", "report first second -f s.html",
		"plot -f l.svg", "plot --kind roofline -f roof.svg", "plot first second -f s.svg",
		"tune --impl scc --effort quick --depth 1 -H 8 -B 1 -T 2 --threads 1", "tune --impl naive --dry-run -H 8 -B 1 -T 2", "wisdom show", "wisdom lookup -H 8 -B 1 -T 2 --threads 1", "wisdom lookup -H 16 -B 1 -T 2 --threads 1", "tune --from first --dry-run",
		"explain -H 8 -B 1 -T 1 --threads 1 --impl naive,persistent", "verify -H 8 -B 1 -T 1 --threads 1 --impl naive,scan", "graph lstm -H 1 --layers 1 --out -",
		"train --data adding -H 4 -B 1 -T 8 --iterations 1 --threads 1", "sweep --resume first --retry-failed",
		"sweep --impl naive --shard 1/1 --label part" + one, "show part", "wisdom prune --incomplete --dry-run",
	} {
		o := rnnbench(t, line)
		if o.code == exit.Usage {
			t.Errorf("%s: %s", line, o.errors)
		}
		if wrong := wrongPlurals(o.out + o.errors); len(wrong) > 0 {
			t.Errorf("%s: %q", line, wrong)
		}
	}
	tags := regexp.MustCompile(`(?s)<style.*?</style>|<[^>]*>`)
	for _, name := range []string{"r.html", "s.html", "l.svg", "roof.svg", "s.svg"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := wrongPlurals(tags.ReplaceAllString(string(text), "\n")); len(wrong) > 0 {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}
