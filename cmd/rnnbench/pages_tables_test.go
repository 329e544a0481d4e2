package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/plots/table"
	"rnnbench/report"
)

// Pages with tables of recorded experiments, each table between two comments that name it.
// make figures rewrites the tables.
const (
	recordedPage    = "../../results/README.md"
	differencesPage = "../../docs/differences.md"
)

// claimsOf returns the Markdown table of the papers' findings beside the records of a machine. It
// marks records of other commits than newest.
func claimsOf(t *testing.T, from readings, machine, newest string) string {
	t.Helper()
	var list []report.Reproduction
	for _, e := range experiments.All() {
		found := from.at(t, machine, e)
		if found == nil {
			continue
		}
		r := *found
		r.Experiment.ID = fmt.Sprintf("%s, %s", e.ID, r.Set.Manifest.Started.Format("2006-01-02"))
		if report.EarlierProgram(r, newest) {
			r.Experiment.ID += ", earlier program"
		}
		list = append(list, r)
	}
	text := narrow(t, report.Verdicts(list))
	for _, r := range list {
		id, date, _ := strings.Cut(r.Experiment.ID, ", ")
		text = strings.Replace(text, r.Experiment.ID, fmt.Sprintf("[%s](%s/%s/report.md), %s", id, machine, id, date), 1)
	}
	return text
}

// readings are what machines recorded of experiments, each read once for all tables.
type readings map[[2]string]*report.Reproduction

func (all readings) at(t *testing.T, machine string, e study.Experiment) *report.Reproduction {
	t.Helper()
	key := [2]string{machine, e.ID}
	if _, known := all[key]; !known {
		all[key] = recordedAt(t, machine, e)
	}
	return all[key]
}

// recordedAt returns what a machine recorded of an experiment; nil: nothing.
func recordedAt(t *testing.T, machine string, e study.Experiment) *report.Reproduction {
	t.Helper()
	dir := filepath.Join("../../results", machine, e.ID)
	if _, err := os.Stat(filepath.Join(dir, "records.jsonl")); err != nil {
		return nil
	}
	p := &program{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	r := &report.Reproduction{Experiment: e}
	if err := readReproduction(p, r, dir); err != nil {
		t.Fatal(err)
	}
	return r
}

// narrow returns a table in Markdown without the padding of its columns.
func narrow(t *testing.T, of *table.Table) string {
	t.Helper()
	var b bytes.Buffer
	if err := of.Write(&b, "markdown", table.Options{}); err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("-{4,}").ReplaceAllString(regexp.MustCompile(" {2,}").ReplaceAllString(b.String(), " "), "---")
}

// everyMachine stands in place of a machine for the tables of all machines, each below a heading.
const everyMachine = "every machine"

// machineTables returns a heading and the table of claims of each machine.
func machineTables(t *testing.T, from readings) string {
	t.Helper()
	var text strings.Builder
	newest := report.NewestCommit(recordings(t, from))
	for _, machine := range machines(t) {
		if slices.ContainsFunc(experiments.All(), func(e study.Experiment) bool { return from.at(t, machine, e) != nil }) {
			fmt.Fprintf(&text, "\n## On %s\n\n%s", machine, claimsOf(t, from, machine, newest))
		}
	}
	return text.String()
}

// machines returns the machines of recorded runs, in the order of their names.
func machines(t *testing.T) (names []string) {
	t.Helper()
	found, err := filepath.Glob("../../results/*-*")
	if err != nil || len(found) == 0 {
		t.Fatalf("%d machines, %v", len(found), err)
	}
	for _, dir := range found {
		names = append(names, filepath.Base(dir))
	}
	return names
}

// differences stands in place of a machine for the table of claims that differ from the papers'.
const differences = "differences"

// differing returns the table of what differs from the papers on the machine of each experiment's
// newest records, with the cause and a link to the report.
func differing(t *testing.T, all []report.Recording) string {
	t.Helper()
	of := report.Differences(all)
	text := narrow(t, of)
	for _, row := range of.Rows {
		at := row[0].Text // such as appleyard-fig1 on nvidia-h200
		id, machine, _ := strings.Cut(at, " on ")
		text = strings.Replace(text, "| "+at+" |", fmt.Sprintf("| [%s](../results/%s/%s/report.md) |", at, machine, id), 1)
	}
	return text
}

// everything stands in place of a machine for the table of all experiments.
const everything = "every experiment"

// secondRuns is the folder of a machine that has second runs, of another day.
const secondRuns = "again"

// recordings returns all experiments with their newest records.
func recordings(t *testing.T, from readings) (list []report.Recording) {
	t.Helper()
	for _, e := range experiments.All() {
		x := report.Recording{Experiment: e}
		for _, machine := range machines(t) {
			found := from.at(t, machine, e)
			if found == nil {
				continue
			}
			r := &report.Recorded{Reproduction: *found}
			if more := recordedAt(t, filepath.Join(machine, secondRuns), e); more != nil {
				r.Again = more.Set.Records
			}
			x.Add(r)
		}
		list = append(list, x)
	}
	return list
}

// TestRecordedTables compares the pages' tables with the records from which they are made.
func TestRecordedTables(t *testing.T) {
	from := readings{}
	all := recordings(t, from)
	for _, page := range []string{recordedPage, differencesPage} {
		old, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := withTables(t, from, page, string(old), all)
		switch {
		case *update:
			if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		case text != string(old):
			t.Errorf("tables of %s are not what the records say: make figures rewrites them", page)
		}
	}
}

// withTables is a page with its tables made anew.
func withTables(t *testing.T, from readings, page, old string, all []report.Recording) string {
	t.Helper()
	const begin, end = "<!-- recorded: ", "<!-- end -->\n"
	var text strings.Builder
	rest, tables := old, 0
	for {
		head, tail, found := strings.Cut(rest, begin)
		text.WriteString(head)
		if !found {
			break
		}
		of, tail, named := strings.Cut(tail, " -->\n")
		_, after, closed := strings.Cut(tail, end)
		if !named || !closed {
			t.Fatalf("%s: a table begins with %q and does not end", page, begin+of)
		}
		var made string
		switch of {
		case everything:
			made = narrow(t, report.Coverage(all))
		case differences:
			made = differing(t, all)
		case everyMachine:
			made = machineTables(t, from)
		default:
			t.Fatalf("%s has a table %q: there are %q, %q and %q", page, of, everything, everyMachine, differences)
		}
		text.WriteString(begin + of + " -->\n" + made + end)
		rest = after
		tables++
	}
	if tables == 0 {
		t.Errorf("%s has no recorded table", page)
	}
	return text.String()
}

// TestYardsticks: the page on performance has each ratio over cuDNN of the recorded tables, but for
// those of earlier programs.
func TestYardsticks(t *testing.T) {
	ratio := regexp.MustCompile(`: ([0-9.]+)× as fast as cuDNN`)
	text, earlier, read := page(t, "docs/performance.md"), false, 0
	for line := range strings.Lines(page(t, "results/README.md")) {
		if !strings.HasPrefix(line, "| |") { // another experiment
			earlier = strings.Contains(line, ", earlier program |")
		}
		for _, r := range ratio.FindAllStringSubmatch(line, -1) {
			if read++; !earlier && !strings.Contains(text, "| "+r[1]+" |") {
				t.Errorf("docs/performance.md lacks %s× over cuDNN, which results/README.md has", r[1])
			}
		}
	}
	if n := strings.Count(page(t, "results/README.md"), "× as fast as cuDNN"); n > 0 && read == 0 {
		t.Errorf("results/README.md has %d ratios over cuDNN, and none is read", n)
	}
}

// TestPerformanceTable: the ratios of the page's table of rivals are in the reports that it links. A
// row without a link goes on with the report of the row above.
func TestPerformanceTable(t *testing.T) {
	number := regexp.MustCompile(`^(?:from )?([0-9]+\.[0-9]+)(?: to ([0-9]+\.[0-9]+))?$`)
	_, text, _ := strings.Cut(page(t, "docs/performance.md"), "\n| rival |")
	text, _, _ = strings.Cut(text, "\n\n")
	report, ratios, rows := "", 0, -2 // below the heading and its line
	for line := range strings.Lines(text) {
		rows++
		if m := links.FindStringSubmatch(line); m != nil {
			if report = reportAt("docs", m[1]); report == "" {
				t.Errorf("docs/performance.md: there is no %s: record it, or take the row out", m[1])
			}
		}
		for cell := range strings.SplitSeq(line, "|") {
			m := number.FindStringSubmatch(strings.TrimSpace(cell))
			for _, n := range m[min(1, len(m)):] {
				if n == "" {
					continue
				}
				if ratios++; !strings.Contains(report, n+"×") {
					t.Errorf("docs/performance.md: %s× is not in the report of this row: %s", n, line)
				}
			}
		}
	}
	if rows < 1 || ratios < rows {
		t.Errorf("the table has %d ratios in %d rows: are they still read?", ratios, rows)
	}
}

// reportAt is the text of the report that a page in a folder links; "": there is none.
func reportAt(folder, link string) string {
	text, _ := os.ReadFile(filepath.Join(root, folder, link)) // TestLinks says which are missing
	return string(text)
}

// quoted are links to reports whose text is a ratio, such as [3.5 to 5.7 times as fast](…/report.md).
var quoted = regexp.MustCompile(`\[([0-9.]+)(?: to ([0-9.]+))? times[^\]]*\]\(([^)]*results/[^)]*/report\.md)\)`)

// TestQuotedRatios: the ratios that README.md and the page on performance quote beside a link to a report are in that
// report, to the decimals that are quoted.
func TestQuotedRatios(t *testing.T) {
	ratio := regexp.MustCompile(`([0-9]+\.[0-9]+)×`)
	read := 0
	for _, name := range []string{"README.md", "docs/performance.md"} {
		for _, m := range quoted.FindAllStringSubmatch(page(t, name), -1) {
			text := reportAt(filepath.Dir(name), m[3])
			for _, n := range m[1:3] {
				if n == "" {
					continue
				}
				_, decimals, _ := strings.Cut(n, ".")
				if read++; !slices.ContainsFunc(ratio.FindAllStringSubmatch(text, -1), func(r []string) bool {
					v, err := strconv.ParseFloat(r[1], 64)
					return err == nil && strconv.FormatFloat(v, 'f', len(decimals), 64) == n
				}) {
					t.Errorf("%s: %s times is not in %s", name, n, m[3])
				}
			}
		}
	}
	if strings.Contains(page(t, "README.md"), "times as fast](results/") && read == 0 {
		t.Error("no ratio was read")
	}
}
