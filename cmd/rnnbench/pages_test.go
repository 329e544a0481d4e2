package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	sentenceWords = 35 // the limit; 25 is the aim
	root          = "../.."
)

// pages returns the names of all pages of documentation. Of the notebook, only links and names of files
// are checked.
func pages(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, filepath.ToSlash(name))
		}
	}
	return names
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prose returns the sentences of a page: without code, tables, pictures and headings.
func prose(text string) []string {
	var list []string
	for block := range strings.SplitSeq(text, "\n\n") {
		var b strings.Builder
		for line := range strings.Lines(block) {
			switch {
			case strings.HasPrefix(line, "    "), strings.HasPrefix(line, "|"), strings.HasPrefix(line, "#"), strings.HasPrefix(line, "!["), strings.HasPrefix(line, "<!--"):
				b.WriteString(". ")
			case item.MatchString(line), strings.HasPrefix(line, "**"): // an entry begins a sentence
				b.WriteString(". " + line)
			default:
				b.WriteString(line)
			}
		}
		list = append(list, ends.Split(spans.ReplaceAllString(b.String(), "$1"), -1)...)
	}
	return list
}

var (
	item  = regexp.MustCompile(`^\s*([*-]|\d+\.) `)
	ends  = regexp.MustCompile(`[.?!:;]["*)]*(\s|$)`)
	spans = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`) // a link reads as its text
)

// TestSentences: no sentence of the pages is too long.
func TestSentences(t *testing.T) {
	count := 0
	for _, name := range pages(t) {
		for _, s := range prose(page(t, name)) {
			words := strings.Fields(s)
			if count += min(1, len(words)); len(words) > sentenceWords {
				t.Errorf("%s: %d words, of at most %d: %s", name, len(words), sentenceWords, s)
			}
		}
	}
	if count < 300 {
		t.Errorf("%d sentences were found in all pages: are they still read?", count)
	}
}

// TestSentencesAreSeen: TestSentences finds long sentences.
func TestSentencesAreSeen(t *testing.T) {
	long := strings.Repeat("word ", sentenceWords+1)
	for _, text := range []string{long, "* " + long, "Short.\n" + long + ". Short.", "[" + long + "](x.md)"} {
		if !slices.ContainsFunc(prose(text), func(s string) bool { return len(strings.Fields(s)) > sentenceWords }) {
			t.Errorf("no long sentence is seen in %.40q", text)
		}
	}
	for _, text := range []string{"    " + long, "| " + long + " |", "One. " + strings.Repeat("Two words. ", 40)} {
		if slices.ContainsFunc(prose(text), func(s string) bool { return len(strings.Fields(s)) > sentenceWords }) {
			t.Errorf("a long sentence is seen in %.40q", text)
		}
	}
}

var (
	links = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code  = regexp.MustCompile("`([^`\n]+)`")
	slash = regexp.MustCompile(`^\.?[\w.-]+(/[\w.-]+)+/?$`) // a path in the repository
	marks = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors returns the headings of a page as links name them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		if h := strings.TrimLeft(line, "#"); h != line && strings.HasPrefix(h, " ") {
			h = marks.ReplaceAllString(strings.ToLower(strings.TrimSpace(h)), "")
			all[strings.ReplaceAll(h, " ", "-")] = true
		}
	}
	return all
}

// broken lists a page's links and file names that lead nowhere.
func broken(name, text string) []string {
	var wrong []string
	for _, m := range links.FindAllStringSubmatch(text, -1) {
		path, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(path, "://") {
			continue
		}
		target := filepath.Join(root, filepath.Dir(name), path)
		if path == "" {
			target = filepath.Join(root, name)
		}
		if !exists(target) {
			wrong = append(wrong, "no file is at "+m[1])
			continue
		}
		if anchor == "" {
			continue
		}
		if there, err := os.ReadFile(target); err != nil || !anchors(string(there))[anchor] {
			wrong = append(wrong, "no heading is at "+m[1])
		}
	}
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		word := m[1]
		if slices.Contains(notFiles, word) || !slash.MatchString(word) || strings.ContainsAny(word, "A") && strings.ToUpper(word) == word {
			continue
		}
		if first, _, _ := strings.Cut(word, "/"); first == "bin" || first == "out" {
			continue // a build makes it
		}
		if path := strings.ReplaceAll(word, "NAME", "gru"); !exists(filepath.Join(root, path)) {
			wrong = append(wrong, "no file is at "+word)
		}
	}
	return wrong
}

// notFiles are words with a slash that are not paths.
var notFiles = []string{"impl/PACKAGE"}

// TestLinks: links between pages work, and the files that pages name exist. Recorded reports are pages,
// and their figures are links.
func TestLinks(t *testing.T) {
	names := append(pages(t), "results/README.md")
	notebook, err := filepath.Glob(filepath.Join(root, "docs/notebook/*.md"))
	if err != nil || len(notebook) == 0 {
		t.Fatalf("%d pages of the notebook, %v", len(notebook), err)
	}
	for _, path := range notebook {
		names = append(names, "docs/notebook/"+filepath.Base(path))
	}
	for _, of := range []string{"results/*/*/report.md", "results/*/again/*/report.md"} {
		reports, err := fs.Glob(os.DirFS(root), of)
		if err != nil || len(reports) == 0 && !strings.Contains(of, secondRuns) {
			t.Fatalf("%s: %d reports, %v", of, len(reports), err)
		}
		names = append(names, reports...)
	}
	for _, name := range names {
		for _, w := range broken(name, page(t, name)) {
			t.Errorf("%s: %s", name, w)
		}
	}
	if n := len(broken("docs/guide.md", "[a](none.md) [b](guide.md#none) [c](#none) `device/none/none.go` [d](guide.md)")); n != 4 {
		t.Errorf("%d of 4 broken links are seen", n)
	}
}
