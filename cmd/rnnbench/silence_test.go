package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"rnnbench/tuner/progress"
)

// TestNoVerbIsSilent: a command that has said nothing for too long says that it is at work, before anything
// else. The list has each command, with arguments that end it soon.
func TestNoVerbIsSilent(t *testing.T) {
	t.Chdir(t.TempDir())
	lines := map[string]string{
		"advise": "-H 8 --device none", "sweep": "--print-config", "tune": "--print-config", "train": "--print-config", "verify": "--impl none", "reproduce": "list",
		"submit slurm": "-- none", "submit kubernetes": "-- none", "submit status": "none", "merge": "none", "compare": "none none", "history": "none", "bisect": "--programs none,none -- sweep", "ci": "--base ./none -- sweep", "show": "none",
		"plot": "none", "report": "none", "site": "none -o none", "explain": "--impl none", "graph": "none", "model": "none", "export": "--impl none",
		"wisdom show": "--wisdom none.toml", "wisdom lookup": "-H 8 --wisdom none.toml", "wisdom merge": "none --wisdom none.toml", "wisdom export": "--wisdom none.toml", "wisdom prune": "--stale --wisdom none.toml", "list": "cells", "doctor": "--device none",
		"version": "", "completion": "bash",
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		words := strings.TrimPrefix(cmd.CommandPath(), "rnnbench ")
		if cmd.HasSubCommands() || cmd.Hidden || cmd.Name() == "help" {
			return
		}
		args, ok := lines[words]
		if !ok {
			t.Errorf("no line for %s", words)
			return
		}
		var stdout, stderr bytes.Buffer
		p := newProgram(strings.Fields(words+" "+args), strings.NewReader(""), &stdout, &stderr)
		p.silence.most = time.Nanosecond
		execute(t.Context(), p)
		if first, _, _ := strings.Cut(stderr.String(), "\n"); first != "rnnbench "+words+" is at work" {
			t.Errorf("%s %s says first: %q", words, args, first)
		}
	}
	walk((&program{}).root())
}

// TestSilence: a command is silent for the time that it may be, once it has spoken, with --quiet, and once it
// has ended. The clock is the test's.
func TestSilence(t *testing.T) {
	const most = 2 * progress.Moment
	for name, c := range map[string]struct {
		took  time.Duration
		quiet bool
		says  string
		want  string
	}{
		"short":  {took: most - 1},
		"long":   {took: most + 1, want: "rnnbench show is at work\n"},
		"quiet":  {took: most + 1, quiet: true},
		"spoken": {took: most + 1, says: "a note", want: "a note\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var stderr bytes.Buffer
			p := newProgram(nil, strings.NewReader(""), &stderr, &stderr)
			p.silence.most, p.quiet = most, c.quiet
			root := &cobra.Command{Use: "rnnbench"}
			show := &cobra.Command{Use: "show"}
			root.AddCommand(show)
			done := breakSilence(p, show)
			if c.says != "" {
				p.Note("%s", c.says)
			}
			time.Sleep(c.took)
			done()
			time.Sleep(2 * most)
			if got := stderr.String(); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		})
	}
}
