package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"rnnbench/internal/exit"
	"rnnbench/rnn/axis"
)

// commands returns the commands that are not hidden.
func commands() []*cobra.Command {
	p := &program{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	return slices.DeleteFunc(p.root().Commands(), func(c *cobra.Command) bool { return c.Hidden })
}

func TestHelp(t *testing.T) {
	for _, c := range commands() {
		o := rnnbench(t, c.Name()+" --help")
		o.want(t, exit.Done, []string{"Usage:", "Examples:"}, nil)
		golden(t, "help-"+c.Name(), o.out)
		if by := rnnbench(t, "help "+c.Name()); by.out != o.out {
			t.Errorf("help %s is not %s --help", c.Name(), c.Name())
		}
	}
	for _, line := range []string{"", "--help", "help"} {
		o := rnnbench(t, line)
		o.want(t, exit.Done, []string{"Measure:", "Manage:"}, nil)
		golden(t, "help", o.out)
	}
	sweep := rnnbench(t, "sweep --help")
	for _, a := range axis.All() {
		sweep.want(t, exit.Done, []string{"--" + a.Name + " LIST "}, nil)
	}
	rnnbench(t, "--version").want(t, exit.Done, []string{"rnnbench "}, nil)
}

// TestExamples parses every example of the help as a shell would.
func TestExamples(t *testing.T) {
	check := func(c *cobra.Command, example string) int {
		n := 0
		for line := range strings.Lines(example) {
			line = strings.TrimSpace(line)
			if i := strings.Index(line, "rnnbench "); i < 0 || strings.HasPrefix(line, "python3") {
				n++
				continue
			} else {
				line = strings.ReplaceAll(line[i+len("rnnbench "):], ")", " )")
			}
			n++
			args := bareResume(shell(line))
			p := &program{args: args, in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
			root := p.root()
			if err := p.checkHyphens(root); err != nil {
				t.Errorf("%s: %q: %v", c.Name(), line, err)
				continue
			}
			cmd, rest, err := root.Find(args)
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil && !strings.Contains(line, "--version") && args[0] != "help" {
				t.Errorf("%s: %q: %v", c.Name(), line, err)
			}
		}
		return n
	}
	for _, c := range commands() {
		if n := check(c, c.Example); n < 3 {
			t.Errorf("%s has %d examples, want 3 or more", c.Name(), n)
		}
		if c.GroupID == "" {
			t.Errorf("%s is in no group", c.Name())
		}
	}
}

// shell splits a line at spaces outside quotes, up to a comment or an operator.
func shell(line string) []string {
	var words []string
	word, open, quote := "", false, rune(0)
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ':
			if open || word != "" {
				words = append(words, word)
			}
			word, open = "", false
		case strings.ContainsRune("#|>&;)", r) && word == "":
			return words
		default:
			word += string(r)
		}
	}
	return words
}

// TestHelpFits: no line of any help is wider than a terminal, which wraps within words.
func TestHelpFits(t *testing.T) {
	for _, line := range []string{"", "submit slurm ", "submit kubernetes ", "submit status ", "wisdom show ", "wisdom lookup ", "wisdom merge ", "wisdom prune ", "wisdom export "} {
		checkFits(t, line+"--help")
	}
	for _, c := range commands() {
		checkFits(t, c.Name()+" --help")
	}
}

func checkFits(t *testing.T, line string) {
	t.Helper()
	for text := range strings.Lines(rnnbench(t, line).out) {
		if text = strings.TrimRight(text, "\n"); len([]rune(text)) > 80 {
			t.Errorf("%s has a line of %d columns: %s", line, len([]rune(text)), text)
		}
	}
}

// TestFlow: texts and commands fit a width, and commands still say the same.
func TestFlow(t *testing.T) {
	const text = "One sentence that is\nbroken.\n\n  - an item that goes on\n    and on\n  name  its meaning and more\n  0  none\nThe end."
	const want = "One sentence that is\nbroken.\n\n  - an item that\n    goes on and on\n  name  its meaning\n        and more\n  0  none\nThe end."
	if got := flow(text, 20); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	for _, c := range []struct{ from, want string }{
		{"  short", "  short"},
		{"  rnnbench a --flag value --other value", "  rnnbench a --flag value \\\n      --other value"},
		{"  rnnbench a | b -c dddddddddddd", "  rnnbench a \\\n      | b -c dddddddddddd"},
		{"  rnnbench 'quoted words are never broken'", "  rnnbench \\\n      'quoted words are never broken'"},
		{"  rnnbench with a comment     # of some words", "  rnnbench with a comment     # of some words"},
	} {
		if got := commandLines(c.from, 30); got != c.want {
			t.Errorf("\n%s\nwant\n%s", got, c.want)
		}
	}
}
