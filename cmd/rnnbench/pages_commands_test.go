package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// shown lists the commands that a page shows, in blocks of code and in its text.
func shown(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line, ok := strings.CutPrefix(line, "    "); ok {
			line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " 2>")
			if command.MatchString(line) {
				list = append(list, line)
			}
			continue
		}
		for _, m := range code.FindAllStringSubmatch(line, -1) {
			if command.MatchString(m[1]) {
				list = append(list, m[1])
			}
		}
	}
	return list
}

var (
	command = regexp.MustCompile(`^(rnnbench|make|scripts/[\w-]+|go)( |$)`)
	targets = regexp.MustCompile(`(?m)^([a-z][\w-]*):`)
)

// TestPageCommands parses every command that a page shows: make targets, scripts and commands of
// rnnbench exist. It also plans commands that measure, by --dry-run.
func TestPageCommands(t *testing.T) {
	makefile := page(t, "Makefile")
	made := map[string]bool{}
	for _, m := range targets.FindAllStringSubmatch(makefile, -1) {
		made[m[1]] = true
	}
	seen, planned := map[string]int{}, 0
	texts := map[string]string{}
	for _, name := range pages(t) {
		texts[name] = page(t, name)
	}
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS("cells", os.DirFS(filepath.Join(repository, "cells"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RNNBENCH_WISDOM", filepath.Join(t.TempDir(), "wisdom.toml"))
	known := map[string]bool{}
	for name, text := range texts {
		for _, line := range shown(text) {
			words := shell(line)
			seen[words[0]]++
			if known[line] {
				continue
			}
			known[line] = true
			switch {
			case words[0] == "make":
				for _, w := range words[1:] {
					if !strings.Contains(w, "=") && !made[w] {
						t.Errorf("%s: %s: the Makefile has no target %s", name, line, w)
					}
				}
			case words[0] == "rnnbench":
				did, err := tried(t, words[1:])
				if err != nil {
					t.Errorf("%s: %s: %v", name, line, err)
				}
				planned += did
			case strings.HasPrefix(words[0], "scripts/") && !exists(filepath.Join(repository, words[0])):
				t.Errorf("%s: %s: there is no such script", name, line)
			}
		}
	}
	if seen["rnnbench"] < 40 || seen["make"] < 15 || planned < 10 {
		t.Errorf("the pages show %v, and %d were planned: are they still read?", seen, planned)
	}
}

// tried parses a command as the program would, and plans it if it measures. did is 1 if it was
// planned.
func tried(t *testing.T, args []string) (did int, err error) {
	if slices.Contains(args, "COMMAND") {
		args = slices.DeleteFunc(slices.Clone(args), func(w string) bool { return w == "COMMAND" })
		args = append([]string{"sweep"}, args...)
	}
	for i, w := range args {
		if w == "ID" {
			args = slices.Clone(args)
			args[i] = "appleyard-table1"
		}
	}
	p := &program{args: args, in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	root := p.root()
	if err := p.checkHyphens(root); err != nil {
		return 0, err
	}
	cmd, rest, err := root.Find(bareResume(args))
	if slices.Contains(rest, "--help") {
		return 0, err
	}
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		return 0, err
	}
	if cmd.Name() == "compare" { // it runs another command
		if i := slices.Index(args, "--"); i >= 0 {
			return tried(t, args[i+1:])
		}
	}
	if i := slices.Index(args, "--"); i >= 0 && args[0] == "submit" { // it submits another command
		o := rnnbenchWith(t.Context(), "", dryly(args)...)
		if o.code != exit.Done {
			return 0, fmt.Errorf("exit code %d with --dry-run: %s", o.code, o.errors)
		}
		return tried(t, args[i+1:])
	}
	if cmd.Flags().Lookup("dry-run") == nil || unplanned(args) != "" {
		return 0, nil
	}
	if cmd.Name() == "tune" {
		args = append(slices.Clone(args), "--depth", "1") // fewer candidates to lay out
	}
	o := rnnbenchWith(t.Context(), "", append(slices.Clone(args), "--dry-run")...)
	if o.code != exit.Done {
		return 0, fmt.Errorf("exit code %d with --dry-run: %s", o.code, o.errors)
	}
	return 1, nil
}

// unplanned returns why a command that measures is only parsed; "": it is planned.
func unplanned(args []string) string {
	for _, x := range []struct{ word, why string }{
		{"--resume", "it needs a run to go on with"},
		{"cuda:0", "it needs a GPU"},
		{"--rival", "it needs the rival's library"},
		{"--regret", "it needs wisdom of the points"},
	} {
		if slices.Contains(args, x.word) {
			return x.why
		}
	}
	if testing.Short() && slices.Contains(args, "all") {
		return "it lays out every experiment, which takes seconds"
	}
	if slices.Equal(args, []string{"reproduce"}) {
		return "it lists experiments"
	}
	if len(args) == 1 {
		return "it is a name in the text, of what the page goes on to show"
	}
	return ""
}

// TestGuideRuns runs the guide's commands one after the other, as a reader would, but
// with few and short samples.
func TestGuideRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the whole tour")
	}
	text := page(t, "docs/guide.md")
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	for _, folder := range []string{"results", "modelfile"} {
		if err := os.Symlink(filepath.Join(checkout, folder), folder); err != nil {
			t.Skip("the folders of recorded runs and of models cannot be linked: ", err)
		}
	}
	t.Setenv("RNNBENCH_WISDOM", filepath.Join(dir, "wisdom.toml"))
	ran := 0
	for _, line := range shown(text) {
		args := shell(line)
		if args[0] != "rnnbench" || notRun(args[1:]) != "" {
			continue
		}
		args = args[1:]
		c, _, err := (&program{}).root().Find(args)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"effort": "quick", "rounds": "2", "max-rounds": "2", "warmup": "0s", "min-time": "0s", "depth": "1"} {
			if c.Flags().Lookup(name) != nil && !slices.Contains(args, "--"+name) && c.Name() != "explain" {
				args = append(slices.Clone(args), "--"+name, value)
			}
		}
		if o := rnnbenchWith(t.Context(), "", args...); o.code != exit.Done {
			t.Errorf("%s: exit code %d: %s", line, o.code, o.errors)
		}
		ran++
	}
	if ran < 20 {
		t.Errorf("%d commands of the guide ran: is it still read?", ran)
	}
}

// notRun returns why a command of the guide is not run; "": it is run.
func notRun(args []string) string {
	for _, x := range []struct{ word, why string }{
		{"--ab", "it needs two programs"},
		{"bisect", "it needs two programs"},
		{"ci", "it needs two programs"},
		{"nightly/", "it needs many runs"},
		{"--git", "it needs a repository of runs"},
		{"compare", "it needs two runs of those names"},
		{"cuda:0", "it needs a GPU"},
		{"all", "it takes minutes"},
		{"--regret", "it takes minutes at that size"},
		{"--progress", "it tunes large layers"},
		{"doctor", "it watches the machine for seconds, and TestManage runs it"},
	} {
		if slices.Contains(args, x.word) {
			return x.why
		}
	}
	if len(args) == 1 && args[0] != "reproduce" {
		return "it is a name in the text"
	}
	return ""
}
