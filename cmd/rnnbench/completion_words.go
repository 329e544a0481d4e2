package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// openEnded is the directive for words that the user goes on to write, such as a key without its value.
const openEnded = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace

// knobsOf lists a technique's knobs, then the knobs of every kind of device.
func knobsOf(technique string) []knob.Knob {
	var own []knob.Knob
	if problem, err := tuner.Problem(example()); err == nil {
		if t := impl.Lookup(technique); t != nil {
			own = t.Knobs(problem)
		}
	}
	return slices.Concat(own, cpu.Vocabulary(), cuda.Vocabulary())
}

// settingCompletions completes the settings of the last technique of a list, as in
// naive,cudnnstyle:fused=0:overlap=. It returns false if no colon follows that technique.
func settingCompletions(start string) ([]cobra.Completion, bool) {
	last := start[strings.LastIndexByte(start, ',')+1:]
	name, settings, ok := strings.Cut(last, ":")
	if !ok {
		return nil, false
	}
	name = name[strings.LastIndexByte(name, '=')+1:] // behind a label
	at := strings.LastIndexByte(start, ':') + 1
	set := strings.Split(settings, ":")
	var list []cobra.Completion
	key, _, valued := strings.Cut(start[at:], "=")
	for _, k := range knobsOf(name) {
		switch {
		case valued && k.Name == key:
			for _, v := range k.Values {
				list = append(list, cobra.CompletionWithDesc(start[:at]+key+"="+strconv.Itoa(v), k.Doc))
			}
		case !valued && !slices.ContainsFunc(set[:len(set)-1], func(s string) bool { return strings.HasPrefix(s, k.Name+"=") }):
			list = append(list, cobra.CompletionWithDesc(start[:at]+k.Name+"=", k.Doc))
		}
	}
	return list, true
}

// wordsOf lists the values of impl, or of an axis whose values are words; nil: another axis.
func wordsOf(key string) []string {
	switch key {
	case "cell":
		return cellNames()
	case "pass":
		return rnn.Passes()
	case "precision":
		return rnn.Precisions()
	case "direction":
		return rnn.Directions()
	case "lengths":
		return []string{"full", "uniform:50%"}
	case "onehot", "weighted":
		return []string{"false", "true"}
	case "impl":
		return implNames()
	}
	return nil
}

// whereCompletions completes a condition: its key, then its value if that is a word.
func whereCompletions(_ *cobra.Command, _ []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var list []cobra.Completion
	if i := strings.IndexAny(start, "=!<>"); i >= 0 {
		value := i + len(start[i:]) - len(strings.TrimLeft(start[i:], "=!<>"))
		for _, w := range wordsOf(start[:i]) {
			list = append(list, start[:value]+w)
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	add := func(key, doc string) {
		op := "<="
		if wordsOf(key) != nil {
			op = "="
		}
		list = append(list, cobra.CompletionWithDesc(key+op, doc))
	}
	for _, a := range grid.Axes() {
		add(a.Name, a.Doc)
	}
	for _, d := range [][2]string{{"impl", "technique"}, {"mem", "bytes"}, {"flops", "operations of a run"}, {"intensity", "operations per byte"}} {
		add(d[0], d[1])
	}
	return list, openEnded
}

// pointCompletions completes the axes of a point by their letters: H=512,B=.
func pointCompletions(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	list, _ := described(func() (list [][2]string) {
		for _, a := range grid.Axes() {
			name := a.Letter
			if name == "" {
				name = a.Name
			}
			list = append(list, [2]string{name + "=", a.Doc})
		}
		return list
	})(cmd, args, start)
	return list, openEnded
}

// zipCompletions completes lists of axes.
var zipCompletions = described(func() (list [][2]string) {
	for _, a := range grid.Axes() {
		list = append(list, [2]string{a.Name, a.Doc})
	}
	return list
})
