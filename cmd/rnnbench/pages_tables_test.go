package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/plots/table"
	"rnnbench/report"
)

// recordedPage has a table for each machine with recorded experiments, between two
// comments that name it. make figures writes them again.
const recordedPage = "../../results/README.md"

// claimsOf is the table of what the papers found and what records of a machine
// say, in Markdown.
func claimsOf(t *testing.T, machine string) string {
	t.Helper()
	p := &program{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	var list []report.Reproduction
	for _, e := range experiments.All() {
		dir := filepath.Join("../../results", machine, e.ID)
		if _, err := os.Stat(filepath.Join(dir, "records.jsonl")); err != nil {
			continue
		}
		r := report.Reproduction{Experiment: e}
		if err := read(p, &r, dir); err != nil {
			t.Fatal(err)
		}
		e.ID = fmt.Sprintf("%s, %s", e.ID, r.Set.Manifest.Started.Format("2006-01-02"))
		r.Experiment = e
		list = append(list, r)
	}
	if len(list) == 0 {
		t.Fatalf("%s has no records of %s", recordedPage, machine)
	}
	var b bytes.Buffer
	if err := report.Verdicts(list).Write(&b, "markdown", table.Options{}); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("-{4,}").ReplaceAllString(regexp.MustCompile(" {2,}").ReplaceAllString(b.String(), " "), "---")
	for _, r := range list {
		id, date, _ := strings.Cut(r.Experiment.ID, ", ")
		text = strings.Replace(text, r.Experiment.ID, fmt.Sprintf("[%s](%s/%s/report.md), %s", id, machine, id, date), 1)
	}
	return text
}

// TestRecordedTables holds the page's tables to the records that they are made from.
func TestRecordedTables(t *testing.T) {
	old, err := os.ReadFile(recordedPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- recorded: ", "<!-- end -->\n"
	var text strings.Builder
	rest, tables := string(old), 0
	for {
		head, tail, found := strings.Cut(rest, begin)
		text.WriteString(head)
		if !found {
			break
		}
		machine, tail, named := strings.Cut(tail, " -->\n")
		_, after, closed := strings.Cut(tail, end)
		if !named || !closed {
			t.Fatalf("%s: a table begins with %q and does not end", recordedPage, begin+machine)
		}
		text.WriteString(begin + machine + " -->\n" + claimsOf(t, machine) + end)
		rest = after
		tables++
	}
	if tables == 0 {
		t.Errorf("%s has no recorded table", recordedPage)
	}
	switch {
	case *update:
		if err := os.WriteFile(recordedPage, []byte(text.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	case text.String() != string(old):
		t.Errorf("tables of %s are not what the records say: make figures rewrites them", recordedPage)
	}
}

// TestYardsticks holds that the page on performance has each ratio over cuDNN that the
// recorded tables have.
func TestYardsticks(t *testing.T) {
	recorded, err := os.ReadFile(recordedPage)
	if err != nil {
		t.Fatal(err)
	}
	ratios := regexp.MustCompile(`: ([0-9.]+)× as fast as cuDNN`).FindAllStringSubmatch(string(recorded), -1)
	if len(ratios) == 0 {
		t.Fatalf("%s has no ratio over cuDNN", recordedPage)
	}
	text := page(t, "docs/performance.md")
	for _, r := range ratios {
		if !strings.Contains(text, "| "+r[1]+" |") {
			t.Errorf("docs/performance.md lacks %s× over cuDNN, which %s has", r[1], recordedPage)
		}
	}
}
