package main

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/bench"
)

// openEnded is the directive for words that the user goes on to write, such as a key without its value.
const openEnded = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace

// chosenDevice returns the device that a command line being completed measures on; "": it names none.
func chosenDevice(cmd *cobra.Command) string {
	f := cmd.Flags().Lookup("device")
	if f == nil {
		return ""
	}
	if t, ok := f.Value.(*texts); ok && t.list != nil {
		return t.list[len(t.list)-1]
	}
	return cmp.Or(os.Getenv("RNNBENCH_DEVICE"), "cpu")
}

// deviceCompletions completes devices: GPUs only where their worker is installed.
var deviceCompletions = described(func() [][2]string {
	list := [][2]string{{"cpu", "this machine's processor"}}
	if _, err := bench.FindWorker(); err == nil {
		list = append(list, [2]string{"cuda:0", "the first NVIDIA GPU; the next one is cuda:1"})
	}
	return list
})

// knobsOf lists a technique's knobs, then the knobs of a device; "": of every kind of device.
func knobsOf(technique, device string) []knob.Knob {
	var own []knob.Knob
	if t := impl.Lookup(technique); t != nil {
		own = exampleKnobs(t)
	}
	switch {
	case device == "cpu":
		return slices.Concat(own, cpu.Vocabulary())
	case bench.IsGPU(device):
		return slices.Concat(own, cuda.Vocabulary())
	}
	return slices.Concat(own, cpu.Vocabulary(), cuda.Vocabulary())
}

// settingCompletions completes the settings of the last technique of a list, as in
// naive,cudnnstyle:fused=0:overlap=, on a device. It returns false if no colon follows that technique.
func settingCompletions(start, device string) ([]cobra.Completion, bool) {
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
	for _, k := range knob.Public(knobsOf(name, device)) {
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
	case "impl":
		return implNames()
	}
	if a, ok := axis.Named(key); ok {
		return a.Values()
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
	for _, a := range axis.All() {
		add(a.Name, a.Help)
	}
	for _, d := range [][2]string{{"impl", "technique"}, {"mem", "bytes"}, {"flops", "operations of a run"}, {"intensity", "operations per byte"}} {
		add(d[0], d[1])
	}
	return list, openEnded
}

// completeAxis completes the values of an axis that are words.
func completeAxis(a axis.Axis) completer {
	return func(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		list, directive := described(func() [][2]string { return valuesOf(a) })(cmd, args, start)
		if a.Open && !strings.Contains(start, ",") {
			directive = cobra.ShellCompDirectiveDefault // a file, too
		}
		return list, directive
	}
}

// valuesOf lists the values of an axis that are words, with their descriptions.
func valuesOf(a axis.Axis) (list [][2]string) {
	if a.Sized() {
		if a.Zero != "" {
			list = append(list, [2]string{a.Zero, a.Help})
		}
		return list
	}
	words := wordsOf(a.Name)
	if words == nil {
		words = []string{a.Default} // its other values are known while something is measured
	}
	for _, w := range words {
		doc := ""
		if c := cell.Lookup(w); a.Name == "cell" && c != nil {
			doc = c.Doc
		}
		list = append(list, [2]string{w, doc})
	}
	return list
}

// pointCompletions completes the axes of a point by their letters, as in H=512,B=, and their values
// that are words, as in H=512,cell=gru.
func pointCompletions(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	last := start[strings.LastIndexByte(start, ',')+1:]
	key, _, valued := strings.Cut(last, "=")
	list, directive := described(func() (list [][2]string) {
		for _, a := range axis.All() {
			switch {
			case !valued:
				list = append(list, [2]string{cmp.Or(a.Letter, a.Name) + "=", a.Help})
			case key == a.Name || key == a.Letter:
				for _, v := range valuesOf(a) {
					list = append(list, [2]string{key + "=" + v[0], v[1]})
				}
			}
		}
		return list
	})(cmd, args, start)
	if !valued {
		directive = openEnded
	}
	return list, directive
}

// zipCompletions completes lists of axes.
var zipCompletions = described(func() (list [][2]string) {
	for _, a := range axis.All() {
		list = append(list, [2]string{a.Name, a.Help})
	}
	return list
})

func cellNames() []string { return bench.Words().Words["cell"] }

func implNames() []string { return bench.Words().Impls }

// example returns a point with a short schedule at which every knob applies.
func example() record.Point {
	return record.Point{Cell: "lstm", Pass: "train", Hidden: 512, Input: 512, Layers: 4, Batch: 64, Steps: 100, Precision: "fp32"}
}

// exampleKnobs lists the knobs of a technique: those for the example, then others of sequences with
// lengths of their own.
func exampleKnobs(t rnn.Technique) []knob.Knob {
	at := example()
	var all []knob.Knob
	for _, at.Lengths = range []axis.SequenceLengths{"", "uniform:50%"} {
		problem, err := tuner.Problem(at)
		if err != nil {
			continue
		}
		for _, k := range t.Knobs(problem) {
			if knob.Find(all, k.Name) == nil {
				all = append(all, k)
			}
		}
	}
	return all
}
