package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/rnn/axis"
	"rnnbench/tuner/grid"
)

// misused makes err a usage error that names the command that helps. A failure stays as it is.
func misused(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	var f *exit.Failure
	if errors.As(err, &f) {
		return err
	}
	hint := cmd.CommandPath() + " --help"
	for _, w := range []struct{ noun, list string }{
		{"cell", "cells"}, {"technique", "techniques"}, {"preset", "presets"}, {"network", "networks"}, {"knob", "knobs"}, {"axis", "axes"}, {"key", "axes"}, {"metric", "metrics"},
	} {
		if strings.Contains(err.Error(), "unknown "+w.noun+" ") {
			hint = "rnnbench list " + w.list
		}
	}
	if strings.Contains(err.Error(), ": knob ") {
		hint = "rnnbench list knobs"
	}
	return exit.Misuse(err, hint)
}

// flagError explains an error of parsing flags, and suggests the name that was probably meant.
func (p *program) flagError(cmd *cobra.Command, err error) error {
	hint := cmd.CommandPath() + " --help"
	if word := p.firstWord(cmd); cmd == cmd.Root() && word != "" {
		return exit.Misuse(grid.Unknown("command", word, commandNames(cmd)), hint)
	}
	var missing *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &missing) && missing.GetSpecifiedShortnames() != "":
		if axis := axisOf(missing.GetSpecifiedName()); axis != "" && cmd.Flags().Lookup(axis) != nil {
			return exit.Misuse(fmt.Errorf("%s has no flag -%s: did you mean --%s?", cmd.Name(), missing.GetSpecifiedName(), axis), hint)
		}
		return exit.Misuse(fmt.Errorf("%s has no flag -%s", cmd.Name(), missing.GetSpecifiedName()), hint)
	case errors.As(err, &missing):
		name := missing.GetSpecifiedName()
		if near := grid.Nearest(name, flagNames(cmd)); near != "" {
			if near == "direction" && strings.HasPrefix(name, "bi") {
				near = "direction both"
			}
			return exit.Misuse(fmt.Errorf("%s has no flag --%s: did you mean --%s?", cmd.Name(), name, near), hint)
		}
		var others []string
		for _, c := range cmd.Root().Commands() {
			if c.Flags().Lookup(name) != nil {
				others = append(others, c.Name())
			}
		}
		if len(others) > 0 {
			return exit.Misuse(fmt.Errorf("%s has no flag --%s: it belongs to %s", cmd.Name(), name, strings.Join(others, ", ")), hint)
		}
		return exit.Misuse(fmt.Errorf("%s has no flag --%s", cmd.Name(), name), hint)
	case errors.As(err, &empty):
		return exit.Misuse(fmt.Errorf("--%s needs a value", empty.GetFlag().Name), hint)
	case errors.As(err, &invalid):
		cause := errors.Unwrap(invalid)
		switch invalid.GetFlag().Value.Type() {
		case "bool":
			cause = fmt.Errorf("%q must be true or false", invalid.GetValue())
		case "float64", "int":
			cause = fmt.Errorf("%q is not a number", invalid.GetValue())
		}
		return exit.Misuse(fmt.Errorf("--%s: %w", invalid.GetFlag().Name, cause), hint)
	}
	return exit.Misuse(err, hint)
}

// axisOf returns the axis with this letter; "": no axis has it.
func axisOf(letter string) string {
	for _, a := range axis.All() {
		if a.Letter == letter {
			return a.Name
		}
	}
	return ""
}

// firstWord returns the word in the place of a command: the first one after root flags that
// take no value. It returns "" if there is none.
func (p *program) firstWord(root *cobra.Command) string {
	for _, a := range p.args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
		name := strings.TrimLeft(a, "-")
		f := root.PersistentFlags().Lookup(name)
		if len(name) == 1 {
			f = root.PersistentFlags().ShorthandLookup(name)
		}
		if !strings.Contains(a, "=") && (f == nil || f.NoOptDefVal == "") {
			return ""
		}
	}
	return ""
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return names
}

// checkHyphens returns an error for a long flag with a single hyphen, which would be read as a
// group of short flags.
func (p *program) checkHyphens(root *cobra.Command) error {
	if len(p.args) > 0 && strings.HasPrefix(p.args[0], "__complete") {
		return nil
	}
	cmd, rest, err := root.Find(p.args)
	if err != nil {
		return err
	}
	for _, a := range rest {
		if a == "--" {
			break
		}
		if !strings.HasPrefix(a, "-") || strings.HasPrefix(a, "--") {
			continue
		}
		name, _, _ := strings.Cut(a[1:], "=")
		if len(name) > 1 && slices.Contains(flagNames(cmd), name) {
			return exit.Misuse(fmt.Errorf("-%s is a group of short flags: did you mean --%s?", name, name), cmd.CommandPath()+" --help")
		}
	}
	return nil
}

// errEmpty refuses an empty value, which an unset variable of the shell leaves.
var errEmpty = errors.New("the value is empty: write a value, or omit the flag")

// A filled is a flag's value that rejects the empty text, which would look like an omitted flag.
type filled struct{ pflag.Value }

func (f filled) Set(s string) error {
	if s == "" {
		return errEmpty
	}
	return f.Value.Set(s)
}

// A choice is a flag that takes one of a few words.
type choice struct {
	value   *string
	kind    string
	choices []string
}

func (c choice) String() string { return *c.value }
func (c choice) Type() string   { return "WORD" }
func (c choice) Set(s string) error {
	if !slices.Contains(c.choices, s) {
		return grid.Unknown(c.kind, s, c.choices)
	}
	*c.value = s
	return nil
}
